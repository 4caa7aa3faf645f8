"""Real operators on a real control plane: their own samples start as gangs, or not at all, and end as they mean it.

Each story is one walk: a cluster that is one pod too small, one more node, a failed pod, deletion. It is written down
as a row of the table in docs/operators.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from e2e import binaries
from enbloc.version import __version__
from operators import programs
from operators.known import OPERATORS
from operators.local_plane import LocalPlane
from operators.releases import RELEASES, Release
from operators.selection import ON_UP
from operators.stories import STORIES, Story, with_scheduler
from operators.table import Row, Table
from operators.world import RealWorld, World, decision, name, node, phase, why


@pytest.fixture(scope="module", params=RELEASES, ids=lambda release: release.version)
def release(request: pytest.FixtureRequest) -> Release:
    found: Release = request.param
    return found


@pytest.fixture(scope="module")
def world(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with RealWorld(release, tmp_path_factory.mktemp("operators")) as started:
        yield started


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with World(LocalPlane(binaries.ensure(ON_UP), tmp_path_factory.mktemp("up"))) as started:
        yield started


@pytest.fixture(scope="module")
def local_table() -> Iterator[Table]:
    kept = Table("up", f"up {__version__}")
    yield kept
    kept.write()


@pytest.fixture(scope="module")
def table(release: Release) -> Iterator[Table]:
    kept = Table(release.block, f"kube-apiserver {release.version}")
    yield kept
    kept.write()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_operator(world: World, table: Table, story: Story) -> None:
    walk(world, table, story)


@pytest.mark.parametrize("story", [one for one in STORIES if one.local], ids=lambda story: story.name)
def test_operator_on_up(local: World, local_table: Table, story: Story) -> None:
    walk(local, local_table, story)


@pytest.mark.parametrize("operator", ["training-operator-alone"])
def test_a_webhook_of_an_operator_refuses_on_up(local: World, operator: str) -> None:
    """Its own words reach the user, and nothing is stored."""
    local.need(operator)
    try:
        sample = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": "bad"},
            "spec": {"pytorchReplicaSpecs": {"Boss": {"template": {"spec": {"containers": []}}}}},
        }
        path = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
        answer = local.plane.api.request("POST", path, sample)
        assert 'admission webhook "validator.pytorchjob.training-operator.kubeflow.org" denied' in str(answer.body)
        assert not local.plane.api.items(path)
    finally:
        local.need()


def walk(world: World, table: Table, story: Story) -> None:
    world.need(*story.needs)
    world.ensure_namespace(story.namespace)
    before = story.before()
    if before:
        world.apply(*before, namespace=story.namespace)
    objects = with_scheduler(story.objects()) if story.renamed else story.objects()
    try:
        world.add_node("n1", story.pods - 1)
        world.apply(*objects, namespace=story.namespace)
        reason = _nothing_starts(world, story)
        world.add_node("n2", 1)
        pods = _starts_together(world, story)
        handled = story.fails(world, story, pods)
        world.delete(*objects, namespace=story.namespace)
        _nothing_is_left(world, story)
        used = [OPERATORS[one].program for one in story.needs]
        versions = tuple(f"{one} {programs.version(one)}" for one in used)
        table.add(Row(story.name, versions, story.sample, story.says, f"{story.pods} pods", reason, handled))
    finally:
        world.delete(*objects, namespace=story.namespace, check=False)  # the next story may have the same sample
        world.plane.kubectl("delete", "pods", "--all", "-n", story.namespace, "--force", check=False)
        world.remove_nodes()
        if story.local or story is STORIES[-1]:
            world.need()  # another cluster comes next, and some listen on a port that cannot be chosen


def _nothing_starts(world: World, story: Story) -> str:
    """All pods are there; those of one gang wait, none of it has started, and its reason is the true one: returns what
    is said of nodes. How many pods of which role fit depends on which of them came first."""

    def waits(found: list[dict]) -> bool:  # type: ignore[type-arg]
        reasons = [why(one) for one in found if not node(one)]
        return len(found) == story.pods and len(reasons) == story.gang and all(map(_of_nodes, reasons))

    pods = world.wait_pods(story.namespace, story.selector, waits, "one gang waits, the others run")
    waiting = [one for one in pods if not node(one)]
    assert len(pods) - len(waiting) == story.pods - story.gang
    (reason,) = {_of_nodes(why(one)) for one in waiting}
    return reason


def _of_nodes(reason: str) -> str:
    """What a reason says of nodes; empty if it says something else."""
    found = re.search(r"\d+/\d+ nodes are available: [^.]*\.", reason)
    return found[0] if found else ""


def _starts_together(world: World, story: Story) -> list[dict]:  # type: ignore[type-arg]
    pods = world.wait_pods(
        story.namespace,
        story.selector,
        lambda found: len(found) == story.pods and all(phase(one) == "Running" for one in found),
        "all pods run",
    )
    decisions = Counter(decision(one) for one in pods)
    assert "" not in decisions, "a pod was bound without a decision of ours"
    assert set(decisions.values()) == {story.gang}, f"not one decision a gang: {decisions}"
    return sorted(pods, key=name)


def _nothing_is_left(world: World, story: Story) -> None:
    world.wait_pods(story.namespace, story.selector, lambda found: not found, "its pods are gone")
    for kind in story.gone:
        world.wait_pods(
            story.namespace,
            story.selector,
            lambda _, kind=kind: not world.items(kind, story.namespace),  # type: ignore[misc]
            f"no {kind} is left",
        )
