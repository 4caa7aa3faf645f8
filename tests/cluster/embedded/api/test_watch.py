from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Ref
from enbloc.api.writes import EmitEvent, Refused, WatchEvent
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.api.watch_log import Bounds
from support.embedded_store import START, config_map, make_store, node, pod


def test_a_watch_sees_what_came_after_its_version_and_only_its_kinds() -> None:
    store, _ = make_store()
    store.create(config_map("a"))
    since = store.version
    watch, everything = store.watch(["ConfigMap"], since), store.watch(None, since)
    store.create(node())
    made = store.create(config_map("b"))
    store.delete(Ref("ConfigMap", "default", "b"))
    seen = watch.drain()
    assert [(event.type, event.obj["metadata"]["name"]) for event in seen] == [("ADDED", "b"), ("DELETED", "b")]
    assert seen[0].obj is made  # shared, not copied
    assert int(seen[1].obj["metadata"]["resourceVersion"]) == store.version
    assert len(everything.drain()) == 3
    assert watch.drain() == []


def test_the_past_is_bounded() -> None:
    store, _ = make_store(bounds=Bounds(history=10, unread=40))
    early = store.watch(None, 0)
    for number in range(200):
        store.create(config_map(f"c{number}"))
    for call in (lambda: store.watch(None, 1), early.drain):
        with pytest.raises(Refused) as caught:
            call()
        assert (caught.value.code, caught.value.reason) == (410, "Expired")
    assert len(store.watch(None, store.version - 10).drain()) == 10
    with pytest.raises(Refused):
        store.watch(None, store.version + 1)


def test_an_open_watch_keeps_what_it_has_not_read() -> None:
    store, _ = make_store(bounds=Bounds(history=10, unread=1000))
    watch = store.watch(None, 0)
    for number in range(300):
        store.create(config_map(f"c{number}"))
    assert len(watch.drain()) == 301  # and the namespace
    watch.close()
    for number in range(300):
        store.delete(Ref("ConfigMap", "default", f"c{number}"))
    with pytest.raises(Refused):
        watch.drain()


NAMES = st.sampled_from(["a", "b", "c"])
KINDS = st.sampled_from(["Pod", "ConfigMap", "Node"])
MAKE: dict[str, Any] = {"Pod": pod, "ConfigMap": config_map, "Node": node}
PATCHES = st.sampled_from(
    [
        ({}, ""),
        ({"metadata": {"labels": {"x": "1"}}}, ""),
        ({"metadata": {"labels": {"x": None}}}, ""),
        ({"metadata": {"finalizers": ["x.io/f"]}}, ""),
        ({"metadata": {"finalizers": None}}, ""),
        ({"status": {"phase": "Running"}}, "status"),
        ({"status": {"phase": "Failed"}}, "status"),
        ({"spec": {"schedulerName": "other"}}, ""),
    ]
)


class Replay(RuleBasedStateMachine):
    """Whatever is done: each version is one event, and a watch from any version rebuilds the listing."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.store = Store(lambda: self.now, auto_namespaces=True)
        self.watch = self.store.watch(None, 0)
        self.replayed: dict[Ref, Any] = {}
        self.past: list[tuple[int, dict[Ref, Any]]] = [(0, {})]
        self.stored: list[tuple[Any, bytes]] = []

    def attempt(self, call: Any, *args: Any, **kwargs: Any) -> None:
        version = self.store.version
        try:
            call(*args, **kwargs)
        except Refused:
            assert self.store.version == version

    @rule(kind=KINDS, name=NAMES, owners=st.sampled_from([None, "Pod", "ConfigMap"]))
    def create(self, kind: str, name: str, owners: str | None) -> None:
        obj = MAKE[kind](name)
        if owners is not None:
            reference = {"apiVersion": "v1", "kind": owners, "name": name, "uid": f"uid-{owners}-{name}"}
            obj["metadata"]["ownerReferences"] = [reference]
        obj["metadata"]["uid"] = f"uid-{kind}-{name}"
        before = msgspec.json.encode(obj)
        self.attempt(self.store.create, obj)
        assert msgspec.json.encode(obj) == before

    @rule(kind=KINDS, name=NAMES, patch=PATCHES)
    def patch(self, kind: str, name: str, patch: Any) -> None:
        namespace = "" if kind == "Node" else "default"
        self.attempt(self.store.patch, Ref(kind, namespace, name), *patch)

    @rule(kind=KINDS, name=NAMES, propagation=st.sampled_from(["Background", "Foreground", "Orphan"]))
    def delete(self, kind: str, name: str, propagation: Any) -> None:
        namespace = "" if kind == "Node" else "default"
        self.attempt(self.store.delete, Ref(kind, namespace, name), propagation=propagation)

    @rule(name=NAMES)
    def bind(self, name: str) -> None:
        self.attempt(self.store.bind, "default", name, "", "n1", {"a": "b"})

    @rule(name=NAMES)
    def evict(self, name: str) -> None:
        self.attempt(self.store.evict, "default", name, "", "r", "m")

    @rule(name=NAMES)
    def emit(self, name: str) -> None:
        self.store.emit(EmitEvent(Ref("Pod", "default", name), "", "Normal", "r", "m"))

    @rule()
    def collect(self) -> None:
        self.store.collect_garbage()
        assert self.store.collect_garbage() == 0

    @rule(seconds=st.integers(1, 100))
    def wait(self, seconds: int) -> None:
        self.now += seconds * 10**9

    @invariant()
    def each_version_is_one_event(self) -> None:
        version = self.past[-1][0]
        for event in self.watch.drain():
            version += 1
            assert int(event.obj["metadata"]["resourceVersion"]) == version
            replay(self.replayed, event)
            self.stored.append((event.obj, msgspec.json.encode(event.obj)))
        assert version == self.store.version
        self.past.append((version, dict(self.replayed)))

    @invariant()
    def a_watch_from_any_version_rebuilds_the_listing(self) -> None:
        listed = {ref_of(obj): obj for obj in self.store.objects()}
        for version, known in self.past[-5:] + self.past[:1]:
            rebuilt = dict(known)
            for event in self.store.watch(None, version).drain():
                replay(rebuilt, event)
            assert rebuilt == listed

    def teardown(self) -> None:
        for obj, bytes_then in self.stored:
            assert msgspec.json.encode(obj) == bytes_then, "a stored object was changed in place"


def replay(into: dict[Ref, Any], event: WatchEvent) -> None:
    ref = ref_of(event.obj)
    if event.type == "DELETED":
        del into[ref]
    else:
        assert (event.type == "ADDED") == (ref not in into)
        into[ref] = event.obj


TestReplay = Replay.TestCase
TestReplay.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
