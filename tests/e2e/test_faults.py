"""The fault proxy: what it passes on, what it breaks, and that a seed breaks the same again."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from urllib.parse import urlsplit

import pytest

from e2e.api import Api
from e2e.control_plane import ControlPlane
from e2e.faults import Chances, Cut, Expire, FaultProxy, Hang, Refuse, Reset, verb_of

MAPS = "/api/v1/namespaces/default/configmaps"


def _api(plane: ControlPlane, proxy: FaultProxy, timeout_s: float = 10) -> Api:
    return Api(proxy.url, plane.authority.certificate, plane.token, timeout_s)


def _read_watch(plane: ControlPlane, proxy: FaultProxy, path: str) -> tuple[list[bytes], bool]:
    """The lines that came, the last one perhaps in part, and whether the stream ended in order."""
    parts = urlsplit(proxy.url)
    context = ssl.create_default_context(cafile=str(plane.authority.certificate))
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=10, context=context)
    connection.request("GET", path, headers={"Authorization": f"Bearer {plane.token}"})
    response = connection.getresponse()
    data, orderly = b"", True
    try:
        while chunk := response.read1(65_536):
            data += chunk
    except (OSError, http.client.HTTPException):
        orderly = False
    finally:
        connection.close()
    return data.split(b"\n"), orderly


@pytest.mark.parametrize(
    "method, path, watch, verb",
    [
        ("GET", "/api/v1/pods", "", "list"),
        ("GET", "/api/v1/pods", "true", "watch"),
        ("GET", "/api/v1/namespaces/default", "", "get"),
        ("GET", "/api/v1/namespaces", "", "list"),
        ("GET", "/api/v1/namespaces/default/pods", "", "list"),
        ("GET", "/api/v1/namespaces/default/pods/a", "", "get"),
        ("GET", "/apis/batch.volcano.sh/v1alpha1/jobs", "1", "watch"),
        ("GET", "/apis/batch.volcano.sh/v1alpha1/namespaces/x/jobs/a", "", "get"),
        ("GET", "/version", "", "get"),
        ("POST", "/api/v1/namespaces/default/pods/a/binding", "", "create"),
        ("PATCH", "/api/v1/nodes/n", "", "patch"),
    ],
)
def test_verbs(method: str, path: str, watch: str, verb: str) -> None:
    assert verb_of(method, path, watch) == verb


def test_chance_is_the_seed_s_alone() -> None:
    chances = Chances(each=0.3)
    drawn = [[chances.draw(seed, "watch", "/api/v1/pods", nth) for nth in range(200)] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    met = [fault for fault in drawn[0] if fault is not None]
    assert 30 < len(met) < 90
    assert {type(fault) for fault in met} == {Refuse, Hang, Reset, Cut, Expire}


def test_reads_never_conflict_and_writes_never_expire() -> None:
    chances = Chances(each=1)
    reads = {fault.code for nth in range(200) if isinstance(fault := chances.draw(3, "get", "/x", nth), Refuse)}
    writes = {fault.code for nth in range(200) if isinstance(fault := chances.draw(3, "create", "/x", nth), Refuse)}
    assert reads == {429, 500}
    assert writes == {409, 429, 500}


def test_passes_on_what_it_does_not_break(plane: ControlPlane) -> None:
    with FaultProxy(plane) as proxy:
        api = _api(plane, proxy)
        api.create(MAPS, {"metadata": {"name": "passed"}, "data": {"key": "ä" * 100_000}})
        assert api.get(f"{MAPS}/passed").must() == plane.api.get(f"{MAPS}/passed").must()
        assert api.get(f"{MAPS}/nobody").status == 404
        assert "passed" in plane.kubectl("get", "configmaps", f"--kubeconfig={proxy.kubeconfig}")
        assert proxy.injected == []


def test_same_seed_same_faults(plane: ControlPlane) -> None:
    stories = []
    for _ in range(2):
        with FaultProxy(plane, seed=11, chances=Chances(each=0.4, hang_at_most_s=0.1)) as proxy:
            api = _api(plane, proxy)
            outcomes = []
            for _ in range(30):
                try:
                    outcomes.append(str(api.get("/api/v1/namespaces/default").status))
                except (OSError, http.client.HTTPException):
                    outcomes.append("broken")
            assert {"200", "429", "500", "broken"} == set(outcomes)
            stories.append((outcomes, proxy.injected, proxy.story()))
    assert stories[0] == stories[1]
    assert "seed 11" in stories[0][2]


def test_third_write_is_refused_by_script(plane: ControlPlane) -> None:
    with FaultProxy(plane) as proxy:
        proxy.script("POST", "/configmaps$", Refuse(500), nth=3)
        proxy.script("DELETE", "/configmaps/", Refuse(429, retry_after_s=1), times=2)
        api = _api(plane, proxy)
        statuses = [api.request("POST", MAPS, {"metadata": {"name": f"third-{n}"}}).status for n in range(4)]
        assert statuses == [201, 201, 500, 201]
        assert plane.api.get(f"{MAPS}/third-2").status == 404  # it came before the API server saw it
        statuses = [api.request("DELETE", f"{MAPS}/third-0").status for _ in range(3)]
        assert statuses == [429, 429, 200]
        assert [each.nth for each in proxy.injected] == [3, 1, 2]


def test_fault_after_the_deed(plane: ControlPlane) -> None:
    with FaultProxy(plane) as proxy:
        proxy.script("POST", "/configmaps$", Reset("after"))
        proxy.script("POST", "/configmaps$", Refuse(500, when="after"), nth=2)
        api = _api(plane, proxy)
        with pytest.raises((OSError, http.client.HTTPException)):
            api.create(MAPS, {"metadata": {"name": "done-1"}})
        assert api.request("POST", MAPS, {"metadata": {"name": "done-2"}}).status == 500
        assert {plane.api.get(f"{MAPS}/done-{n}").status for n in (1, 2)} == {200}


def test_hang_and_calm(plane: ControlPlane) -> None:
    with FaultProxy(plane) as proxy:
        proxy.script("GET", "/version", Hang(30), times=10)
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            _api(plane, proxy, 0.5).get("/version")
        proxy.calm()
        assert _api(plane, proxy).get("/version").status == 200
        assert time.monotonic() - began < 5


def test_watch_is_cut_in_the_middle_of_a_line(plane: ControlPlane) -> None:
    for name in ("cut-1", "cut-2", "cut-3"):
        plane.api.create(MAPS, {"metadata": {"name": name, "labels": {"watched": "cut"}}})
    path = f"{MAPS}?watch=1&labelSelector=watched%3Dcut&timeoutSeconds=5"
    with FaultProxy(plane) as proxy:
        proxy.script("WATCH", "/configmaps$", Cut(lines=2))
        lines, orderly = _read_watch(plane, proxy, path)
    assert not orderly
    assert [json.loads(line)["type"] for line in lines[:2]] == ["ADDED", "ADDED"]
    assert len(lines) == 3
    with pytest.raises(ValueError):
        json.loads(lines[2])


def test_watch_expires_within_the_stream(plane: ControlPlane) -> None:
    plane.api.create(MAPS, {"metadata": {"name": "old", "labels": {"watched": "expire"}}})
    path = f"{MAPS}?watch=1&labelSelector=watched%3Dexpire&timeoutSeconds=5"
    with FaultProxy(plane) as proxy:
        proxy.script("WATCH", "/configmaps$", Expire())
        lines, orderly = _read_watch(plane, proxy, path)
    assert orderly
    event = json.loads(lines[0])
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_broken_upstream_is_a_broken_connection(plane: ControlPlane) -> None:
    with FaultProxy(plane) as proxy:
        plane.apiserver.kill()
        try:
            with pytest.raises((OSError, http.client.HTTPException)):
                _api(plane, proxy).get("/version")
        finally:
            plane.apiserver.restart()
        assert _api(plane, proxy).get("/version").status == 200
