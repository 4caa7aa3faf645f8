"""A cluster in this process: its parts, its start and its stop."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from enbloc.admission.settings import settings_of
from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api.datadir import DataDir, DataDirError
from enbloc.cluster.embedded.api.journal import Journal
from enbloc.cluster.embedded.api.private_files import NotPrivate, read_secret, write_private
from enbloc.cluster.embedded.api.store import OBJECT_BYTES, Store
from enbloc.cluster.embedded.cluster import make_store, provide_queues
from enbloc.cluster.embedded.http.access import Access, is_loopback
from enbloc.cluster.embedded.http.certificate import load_certificate, make_certificate
from enbloc.cluster.embedded.http.facade import Facade, Handler
from enbloc.cluster.embedded.http.kubeconfig import write_kubeconfig
from enbloc.cluster.embedded.http.listener import Listener
from enbloc.cluster.embedded.http.webhook_calls import WebhookCalls
from enbloc.cluster.embedded.nodes.node_player import NodePlayer
from enbloc.cluster.embedded.settle import Plane
from enbloc.config import Config, scheduler_names, where_alone
from enbloc.controllers.workloads.controller import WorkloadController
from enbloc.engine.engine import Engine
from enbloc.gangs.record_digests import Keyring, new_keyring, read_keys, write_keys
from enbloc.runtime.control_plane import ControlPlane
from enbloc.runtime.cycle_metrics import CycleMetrics
from enbloc.scenario.player import Player
from enbloc.scenario.scenario import Scenario
from enbloc.up.clock import now_ns
from enbloc.up.event_expiry import EventExpiry
from enbloc.up.loop import Loop, NoControlPlane
from enbloc.up.options import Options, make_nodes
from enbloc.up.reviewed_writes import ReviewedWrites

Refuse = Callable[[Obj, Refused], None]
TOKEN_FILE: Final = "token"
CERTIFICATE_FILE: Final = "certificate.pem"
KUBECONFIG_FILE: Final = "kubeconfig"
RECORD_KEYS_FILE: Final = "record-keys.json"


def read_keyring(file: Path) -> Keyring:
    """The keys of the scheduler's records in a data directory (S2), with a first one if there is none. Raises
    `DataDirError`."""
    try:
        content = read_secret(file)
        known = read_keys(msgspec.json.decode(content, type=dict[str, str])) if content else None
        if known is None and content:
            raise DataDirError(f"{file} holds no key: {_MOVE_KEYS}")
        if known is None:
            known = new_keyring()
            write_private(file, msgspec.json.encode(write_keys(known)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as why:
        raise DataDirError(f"{file} cannot be read: {why}; {_MOVE_KEYS}") from None
    except OSError as why:
        raise DataDirError(str(why)) from why
    return known


_MOVE_KEYS: Final = "restore a copy, or move it away: claims that were recorded with its keys are made anew then"


class LocalCluster:
    """Store, API, nodes, controllers and scheduler. Created and used in a running event loop."""

    def __init__(
        self, options: Options, config: Config, load: Scenario, refuse: Refuse, warn: Callable[[Obj, str], None]
    ) -> None:
        config = where_alone(config)
        self._options = options
        self._settings = settings_of(config, alone=True)
        self._refuse = refuse
        self._warn = warn
        self._data = DataDir(options.data) if options.data is not None else None
        self._journal = Journal(self._data, accept_loss=options.accept_loss) if self._data is not None else None
        restore = self._journal.restore if self._journal is not None else None
        self.store: Store = make_store(now_ns, config, restore, OBJECT_BYTES, guards_records=options.scheduled)
        self._keyring = self._read_keyring()
        self.metrics = CycleMetrics(volcano=config.volcano_metrics)
        """Of every scheduler that runs here, one after the other."""
        provide_queues(self.store, (arrival.obj for arrival in load.arrivals if arrival.at_ns == 0))
        self.nodes = NodePlayer(self.store, options.speed)
        self._webhooks = WebhookCalls(self.store)
        self._load = _Load(load, options.speed, self)
        self._settling = Loop(
            self.store,
            self.nodes,
            lambda: self._make_plane(config),
            (self._load, EventExpiry(self.store)),
            self._journal.commit_soon if self._journal is not None else lambda: None,
        )
        self._facade: Facade | None = None
        self._listener: Listener | None = None
        self._running: asyncio.Task[None] | None = None
        self._temporary: Path | None = None
        """The kubeconfig, in a directory of its own, that goes with the cluster."""
        brought = any(arrival.obj["kind"] == "Node" for arrival in load.arrivals)
        self._provide(make_nodes(options, load_brings_nodes=brought or bool(self.store.list("Node")[0])))

    def _provide(self, nodes: Iterable[Obj]) -> None:
        for node in nodes:
            if self.store.get(*ref_of(node)) is None:
                self.store.create(node)

    def _make_plane(self, config: Config) -> Plane:
        if not self._options.scheduled:
            return NoControlPlane()
        names = scheduler_names(config, alone=True)
        more = (WorkloadController(),)
        writes = ReviewedWrites(self.store, self._webhooks, self._wake)
        return ControlPlane(
            self.store, config, names, more=more, keyring=self._keyring, metrics=self.metrics, writes=writes
        )

    def _wake(self) -> None:
        self._settling.wake()

    def engine(self) -> Engine | None:
        """The scheduler's, if it runs here."""
        plane = self._settling.plane
        return plane.engine if isinstance(plane, ControlPlane) else None

    @property
    def has_more_load(self) -> bool:
        """Whether objects or Steps of the loaded files are still to come."""
        return self._load.due() is not None

    @property
    def watch_count(self) -> int:
        return self._facade.watch_count if self._facade is not None else 0

    async def start(self, pages: Mapping[str, Handler]) -> tuple[str, Path]:
        """Listens and starts. Returns the address of the pages and the path of the kubeconfig. Raises `OSError`."""
        options = self._options
        state = options.data
        try:
            token = self._token(state)
            certificate = (
                load_certificate(state / CERTIFICATE_FILE, options.host) if state else make_certificate(options.host)
            )
        except NotPrivate as why:
            raise DataDirError(str(why)) from why
        journal = self._journal
        self._facade = Facade(
            self.store,
            Access(token, loopback_only=is_loopback(options.host)),
            pages,
            journal.durable if journal is not None else None,
            (lambda: journal.failure) if journal is not None else None,
            self._settings,
            self._webhooks,
        )
        self._listener = Listener(self._facade, certificate.context())
        _, port = await self._listener.start(options.host, options.port)
        host = f"[{options.host}]" if ":" in options.host else options.host
        kubeconfig = options.kubeconfig or (state or state_directory(port)) / KUBECONFIG_FILE
        if options.port == 0 and not (options.kubeconfig or state):  # no client comes back to a port that was any
            self._temporary = kubeconfig
        write_kubeconfig(kubeconfig, f"https://{host}:{port}", token, certificate.certificate)
        self.store.auto_namespaces = False
        self._running = asyncio.create_task(self._settling.run())
        return f"http://{host}:{port}/", kubeconfig

    def _token(self, state: Path | None) -> str:
        """A new token for each cluster; with `--data` the one of the directory."""
        if state is None:
            return secrets.token_urlsafe(32)
        file = state / TOKEN_FILE
        known = (read_secret(file) or b"").decode(errors="replace").strip()
        if len(known) >= 32:
            return known
        made = secrets.token_urlsafe(32)
        write_private(file, f"{made}\n".encode())
        return made

    def _read_keyring(self) -> Keyring:
        """The keys of the scheduler's records (S2): new ones for each cluster; with `--data` those of the directory."""
        return read_keyring(self._options.data / RECORD_KEYS_FILE) if self._options.data is not None else new_keyring()

    async def stop(self) -> None:
        """Stops everything that was started; with `--data` the state is on disk when this returns."""
        self._settling.close()
        if self._facade is not None:
            self._facade.close()
        if self._listener is not None:
            await self._listener.stop()
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await self._webhooks.close()
        self.nodes.close()
        if self._journal is not None:
            self._journal.close()
        if self._data is not None:
            self._data.close()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)
            with suppress(OSError):  # someone else put something there
                self._temporary.parent.rmdir()

    # ---- the host of the player

    def refused(self, obj: Obj, why: Refused) -> None:
        if why.reason != "AlreadyExists" or self._options.data is None:  # it was loaded before a restart
            self._refuse(obj, why)

    def warned(self, obj: Obj, message: str) -> None:
        self._warn(obj, message)

    def restart_scheduler(self) -> None:
        self._settling.restart()


class _Load:
    """A scenario in real time, `speed` times as fast."""

    def __init__(self, scenario: Scenario, speed: float, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._player = Player(scenario, cluster.store, cluster.nodes, cluster)
        self._speed = speed
        self._begin_ns = now_ns()

    def due(self) -> int | None:
        at_ns = self._player.due()
        return None if at_ns is None else self._begin_ns + round(at_ns / self._speed)

    def run(self, now_ns: int) -> None:
        store = self._cluster.store
        elapsed_ns = round((now_ns - self._begin_ns) * self._speed)
        lenient, store.auto_namespaces = store.auto_namespaces, True  # files need not define namespaces
        try:
            for _ in self._player.run(elapsed_ns):
                pass
        finally:
            store.auto_namespaces = lenient


def state_directory(port: int) -> Path:
    """Where a cluster without `--data` keeps its kubeconfig."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "enbloc" / f"up-{port}"
