"""S2: users of `enbloc up` do not write the annotations of the scheduler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cluster.embedded.http.serving import Api, serve
from enbloc import config
from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Patch
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.cluster import make_store, provide_queues
from support import manifests as m

GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
CLAIM = "enbloc.dev/claim-reserve"
MERGE = "application/merge-patch+json"
REF = Ref("PodGroup.scheduling.volcano.sh", "default", "g")


def guarding_store() -> Store:
    store = make_store(lambda: 0, config.parse(None), guards_records=True)
    provide_queues(store, ())
    return store


def run(test: Callable[[Api], Awaitable[None]], store: Store | None = None) -> None:
    serve(test, store or guarding_store())


def noted(**annotations: str) -> Obj:
    group = m.podgroup("g", 2)
    return {**group, "metadata": {**group["metadata"], "annotations": dict(annotations)}}


async def annotations(api: Api) -> dict[str, str]:
    found: dict[str, str] = (await api.get(f"{GROUPS}/g"))["metadata"].get("annotations") or {}
    return found


def written_by_us(api: Api, text: str = "ours") -> None:
    api.store.execute(Patch(REF, {"metadata": {"annotations": {CLAIM: text}}}))


def test_s2_they_are_stripped_on_create_with_a_warning() -> None:
    async def test(api: Api) -> None:
        async with api.session.post(GROUPS, json=noted(**{CLAIM: "x", "mine": "kept"})) as response:
            assert response.status == 201
            assert any(CLAIM in text and "removed" in text for text in response.headers.getall("Warning"))
        assert await annotations(api) == {"mine": "kept"}

    run(test)


@pytest.mark.parametrize(
    ("method", "path", "body", "media"),
    [
        ("PATCH", f"{GROUPS}/g", {"metadata": {"annotations": {CLAIM: "forged"}}}, MERGE),
        (
            "PATCH",
            f"{GROUPS}/g",
            [{"op": "replace", "path": "/metadata/annotations", "value": {CLAIM: "forged"}}],
            "application/json-patch+json",
        ),
        ("PATCH", f"{GROUPS}/g?fieldManager=x&force=true", noted(**{CLAIM: "forged"}), "application/apply-patch+yaml"),
        ("PUT", f"{GROUPS}/g", noted(**{CLAIM: "forged"}), "application/json"),
    ],
    ids=["merge", "json", "apply", "replace"],
)
def test_s2_their_changes_are_refused(method: str, path: str, body: Any, media: str) -> None:
    async def test(api: Api) -> None:
        await api.post(GROUPS, noted())
        written_by_us(api)
        code, answer = await api(method, path, body, media=media)
        assert (code, CLAIM in answer["message"]) == (403, True)
        assert await annotations(api) == {CLAIM: "ours"}

    run(test)


def test_s2_a_replace_that_leaves_them_out_keeps_them() -> None:
    async def test(api: Api) -> None:
        await api.post(GROUPS, noted())
        written_by_us(api)
        code, _ = await api("PUT", f"{GROUPS}/g", noted(mine="new"))
        assert code == 200
        assert await annotations(api) == {CLAIM: "ours", "mine": "new"}

    run(test)


def test_s2_a_scheduler_outside_of_the_process_may_write_them() -> None:
    """`up --no-scheduler`: the scheduler is a client like any other; digests tell its records from forged ones."""

    async def test(api: Api) -> None:
        await api.post(GROUPS, noted())
        code, _ = await api("PATCH", f"{GROUPS}/g", {"metadata": {"annotations": {CLAIM: "theirs"}}}, media=MERGE)
        assert code == 200

    store = make_store(lambda: 0, config.parse(None))
    provide_queues(store, ())
    run(test, store)
