"""A scheduler without a cluster: a test puts objects in, the engine decides, and nothing is written."""

from __future__ import annotations

from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj, name_of
from enbloc.api.writes import WatchEvent
from enbloc.config import Config, parse, scheduler_names
from enbloc.engine.engine import Engine
from enbloc.gangs.record_digests import SIMULATED
from enbloc.runtime.translate import Translator
from enbloc.units import SECOND, format_timestamp
from support import manifests as m


class DirectScheduler:
    """Objects are known by kind and name, so all of them share one namespace."""

    def __init__(self, config: Config, plain: bool = False) -> None:
        self.scheduler = Translator(config, scheduler_names(config, alone=True), SIMULATED)
        self.engine = self.scheduler.engine = Engine(config, plain=plain)
        self.known: dict[tuple[str, str], Obj] = {}
        for name in ("root", "default"):
            self.put(m.queue(name))

    def put(self, obj: Obj, created_s: int = 0) -> Obj:
        """The object was created, or changed: UID and time of creation stay, all else is as in `obj`."""
        found = self.observe(obj, created_s)
        self.scheduler.read_changed()
        return found

    def observe(self, obj: Obj, created_s: int = 0) -> Obj:
        """The same of one of many objects that come at once: a gang is read again when all have come."""
        key = (kind_id(obj), name_of(obj))
        known = self.known.get(key)
        if known is None:
            given = {"uid": f"{key[0]}/{key[1]}", "creationTimestamp": format_timestamp(created_s * SECOND)}
        else:
            given = {name: known["metadata"][name] for name in ("uid", "creationTimestamp")}
        self.known[key] = {**obj, "metadata": {**obj["metadata"], **given}}
        self.scheduler.observe(WatchEvent("ADDED" if known is None else "MODIFIED", key[0], self.known[key]))
        return self.known[key]

    def delete(self, kind: str, name: str) -> None:
        self.scheduler.observe(WatchEvent("DELETED", kind, self.known.pop((kind, name))))
        self.scheduler.read_changed()


def knowing(*objects: Obj) -> DirectScheduler:
    """A scheduler that knows these objects and has decided nothing."""
    direct = DirectScheduler(parse(None))
    for one in objects:
        direct.observe(one)
    direct.scheduler.read_changed()
    direct.engine.state.settle()
    return direct
