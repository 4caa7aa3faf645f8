"""Least privilege, both ways: what the control plane does is allowed, and what is allowed is done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from enbloc.api.kinds import KINDS, kind_id
from enbloc.api.meta import Obj
from enbloc.api.writes import BindPod, Create, Delete, EmitEvent, EvictPod, Patch, Write
from enbloc.cluster.embedded.api.store import Store
from enbloc.config import Config, parse
from enbloc.config.model import scheduler_names
from enbloc.controllers.built_in_queues import BuiltInQueues
from enbloc.controllers.job_plugins import simulated_key_pair
from enbloc.install.rights import (
    COMPONENTS,
    CONTROLLERS,
    READ,
    READS,
    SCHEDULER,
    WEBHOOK,
    Right,
    namespace_rights,
    rights,
    roles,
    user_roles,
)
from enbloc.runtime.control_plane import ControlPlane
from enbloc.runtime.scheduler import Scheduler
from enbloc.scenario.documents import read_documents
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation

ROOT = Path(__file__).parent.parent.parent
FILES = sorted(
    [
        *(ROOT / "examples").glob("*.yaml"),
        *(ROOT / "tests" / "scenarios").glob("*.yaml"),
        *(Path(__file__).parent / "stories").glob("*.yaml"),
    ]
)

Did = tuple[str, str, str, str]
"""Component, verb, group, resource."""

NOT_SEEN_IN_A_SIMULATION: dict[Did, str] = {
    (CONTROLLERS, "create", "scheduling.volcano.sh", "queues"): "a simulation starts with the built-in queues",
    (CONTROLLERS, "update", "batch.volcano.sh", "jobs/finalizers"): "asked for by an admission plugin of some clusters",
    (CONTROLLERS, "update", "arbitrator.incubator.k8s.io", "queuejobs/finalizers"): "likewise",
    **{
        (CONTROLLERS, "get", KINDS[kind].group, KINDS[kind].plural): "to see who has the name already"
        for kind in ("ConfigMap", "Service", "NetworkPolicy.networking.k8s.io", "PersistentVolumeClaim")
    },
    (CONTROLLERS, "get", "", "events"): "to count one up that another replica wrote",
    (SCHEDULER, "get", "", "events"): "likewise",
    (CONTROLLERS, "patch", "", "events"): "to count one up",
    (SCHEDULER, "patch", "", "events"): "likewise",
}


def needs(component: str, write: Write) -> Iterator[Did]:
    """What a write asks of RBAC, as `cluster/kube` carries it out."""

    def on(verb: str, kind: str, sub: str = "") -> Did:
        known = KINDS[kind]
        return (component, verb, known.group, f"{known.plural}/{sub}" if sub else known.plural)

    match write:
        case Create(obj=obj):
            yield on("create", kind_id(obj))
        case Patch(ref=ref, subresource=sub):
            yield on("patch", ref.kind, sub if KINDS[ref.kind].has_status else "")
        case Delete(ref=ref):
            yield on("delete", ref.kind)
        case BindPod():
            yield on("create", "Pod", "binding")
        case EvictPod():
            yield on("patch", "Pod", "status")
            yield on("delete", "Pod")
        case EmitEvent():
            yield on("create", "Event")


class Recorded:
    """A cluster that notes who wrote what."""

    def __init__(self, store: Store, did: set[Did]) -> None:
        self._store = store
        self._did = did
        self.component = CONTROLLERS
        self.list, self.watch = store.list, store.watch

    def execute(self, write: Write) -> Obj | None:
        done = self._store.execute(write)
        self._did.update(needs(self.component, write))
        return done


def recorded_run(file: Path) -> set[Did]:
    did: set[Did] = set()

    class Plane(ControlPlane):
        def __init__(self, store: Store, config: Config) -> None:
            self._recorded = Recorded(store, did)
            super().__init__(self._recorded, config, scheduler_names(config, alone=True), simulated_key_pair)

        def schedule(self, now: int) -> bool:
            self._recorded.component = SCHEDULER
            try:
                return super().schedule(now)
            finally:
                self._recorded.component = CONTROLLERS

    header = re.search(r"^# config: (.+)$", file.read_text(), re.MULTILINE)
    config = parse(yaml.safe_load(header[1]) if header else None)
    Simulation(read_scenario(read_documents([str(file)])), config, Plane).run()
    return did


@pytest.fixture(scope="module")
def done() -> set[Did]:
    return set().union(*map(recorded_run, FILES))


def allowed(component: str) -> set[Did]:
    return {(component, verb, right.group, right.resource) for right in rights(component) for verb in right.verbs}


def test_all_that_the_control_plane_writes_is_allowed(done: set[Did]) -> None:
    assert done - allowed(SCHEDULER) - allowed(CONTROLLERS) == set()


def test_every_allowed_verb_is_used(done: set[Did]) -> None:
    read = {
        (component, verb, KINDS[kind].group, KINDS[kind].plural)
        for component, kinds in ((SCHEDULER, Scheduler.kinds), (CONTROLLERS, READS[CONTROLLERS]))
        for kind in kinds
        for verb in READ
    }
    idle = (allowed(SCHEDULER) | allowed(CONTROLLERS)) - read - done - NOT_SEEN_IN_A_SIMULATION.keys()
    assert idle == set()
    assert NOT_SEEN_IN_A_SIMULATION.keys() & done == set(), "seen after all"


def test_what_is_watched_may_be_read() -> None:
    plane = ControlPlane(Store(lambda: 0), parse(None), frozenset())
    watched = frozenset().union(*(controller.kinds for controller in plane._controllers), BuiltInQueues.kinds)
    assert watched == READS[CONTROLLERS]
    for component, kinds in ((SCHEDULER, Scheduler.kinds), (CONTROLLERS, watched)):
        for kind in kinds:
            known = KINDS[kind]
            assert {(component, verb, known.group, known.plural) for verb in READ} <= allowed(component)


def test_no_stars_and_no_reading_of_secrets() -> None:
    printed = yaml.safe_dump(roles("enbloc-system", {component: {} for component in COMPONENTS}) + user_roles({}))
    assert "'*'" not in printed
    secrets = {
        (component, verb, right.names)
        for component in COMPONENTS
        for right in [*rights(component), *namespace_rights(component)]
        if right.resource == "secrets"
        for verb in right.verbs
    }
    certificates, keys = ("enbloc-webhook-certificates",), ("enbloc-record-keys",)
    assert secrets == {
        (CONTROLLERS, "create", ()),
        (SCHEDULER, "get", keys),
        (SCHEDULER, "patch", keys),
        (WEBHOOK, "get", certificates),
        (WEBHOOK, "patch", certificates),
    }


def test_the_webhook_touches_its_own_configuration_only() -> None:
    for right in rights(WEBHOOK):
        if right.group == "admissionregistration.k8s.io":
            assert right.names == ("enbloc",)
            assert right.verbs == ("get", "patch")
        else:
            assert right.verbs == READ


def test_every_account_is_bound_to_its_own_roles() -> None:
    found = roles("elsewhere", {component: {} for component in COMPONENTS})
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for one in found:
        by_kind.setdefault(one["kind"], []).append(one)
    assert {kind: len(ones) for kind, ones in by_kind.items()} == dict.fromkeys(
        ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"), len(COMPONENTS)
    )
    for binding in by_kind["ClusterRoleBinding"] + by_kind["RoleBinding"]:
        name = binding["metadata"]["name"]
        assert binding["roleRef"]["name"] == name
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": name, "namespace": "elsewhere"}]


def test_users_may_not_close_queues_by_a_role_of_a_namespace() -> None:
    view, edit = user_roles({})
    assert "rbac.authorization.k8s.io/aggregate-to-edit" in edit["metadata"]["labels"]
    assert not {"queues", "commands"} & {name for rule in edit["rules"] for name in rule["resources"]}
    assert all(rule["verbs"] == list(READ) for rule in view["rules"])


def test_rights_name_their_resources() -> None:
    for component in COMPONENTS:
        for right in rights(component):
            assert isinstance(right, Right)
            assert right.verbs


def test_v1_owners_that_the_config_groups_by_may_be_read() -> None:
    found = {(right.group, right.resource): right.verbs for right in rights(SCHEDULER, ("JobSet.jobset.x-k8s.io",))}
    assert set(READ) <= set(found["jobset.x-k8s.io", "jobsets"])
    assert ("jobset.x-k8s.io", "jobsets") not in {(right.group, right.resource) for right in rights(SCHEDULER)}
