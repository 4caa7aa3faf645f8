"""Every remedy comes true: on random clusters it is followed when the run ended, and the gang starts when it says."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support import manifests as m
from support.advised import advised, followed

Obj = dict[str, Any]
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {}},
}
TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}


@st.composite
def clusters(draw: st.DrawFn) -> list[Obj]:
    """Some nodes, a queue with a limit, classes, a quota now and then; gangs of which some cannot start."""
    found: list[Obj] = [
        m.node(
            f"n{number}",
            cpu=draw(st.sampled_from([2, 4, 8])),
            labels={"disk": draw(st.sampled_from(["ssd", "hdd"]))},
            extra=draw(st.sampled_from([{}, {}, {"nvidia.com/gpu": 2}])),
            taints=[TAINT] if draw(st.integers(0, 3)) == 0 else [],
            unschedulable=draw(st.integers(0, 5)) == 0,
        )
        for number in range(draw(st.integers(1, 4)))
    ]
    found.append(m.queue("small", capability={"cpu": str(draw(st.integers(1, 4)))}))
    found.append(m.queue("line", dequeueStrategy="fifo"))
    found.append(m.priority_class("high", 100))
    if draw(st.integers(0, 7)) == 0:
        found.append(m.resource_quota(draw(st.integers(1, 5))))
    for number in range(draw(st.integers(1, 5))):
        found += draw(gangs(f"g{number}", at=f"{draw(st.integers(0, 3))}s"))
    return found


@st.composite
def gangs(draw: st.DrawFn, name: str, at: str) -> list[Obj]:
    pod: Obj = {}
    if draw(st.integers(0, 3)) == 0:
        pod["nodeSelector"] = {"disk": draw(st.sampled_from(["ssd", "nvme", "hhd"]))}
    if draw(st.integers(0, 9)) == 0:
        pod["schedulerName"] = "another"
    if draw(st.integers(0, 9)) == 0:
        pod["schedulingGates"] = [{"name": "example.com/hold"}]
    if draw(st.integers(0, 5)) == 0:
        name_of_gpu = draw(st.sampled_from(["nvidia.com/gpu", "nvidia.com/gpuu", "example.com/fpga"]))
        pod["extra"] = {name_of_gpu: draw(st.integers(1, 3))}
    if draw(st.integers(0, 7)) == 0:
        pod["topologySpreadConstraints"] = [SPREAD]
    if draw(st.integers(0, 5)) == 0:
        pod["priority"] = "high"
    count = draw(st.integers(1, 4))
    cpu = draw(st.sampled_from([1, 2, 3, 5, 12]))
    queue = draw(st.sampled_from(["default", "default", "small", "line", "smal"]))
    run_time = draw(st.sampled_from([None, None, "5s"]))
    if draw(st.booleans()):
        return [m.job(name, m.role("w", count, cpu=cpu, run_time=run_time, **pod), queue=queue, at=at)]
    if draw(st.integers(0, 3)) == 0:
        annotations = m.koordinator_annotations(name, draw(st.integers(1, count + 1)))
        return [
            m.pod(f"{name}-{i}", cpu, at=at, run_time=run_time, annotations=annotations, **pod) for i in range(count)
        ]
    exist = count - draw(st.sampled_from([0, 0, 0, 1])) if count > 1 else count
    group = m.podgroup(name, count, queue=queue, at=at)
    return [group, *m.gang(name, exist, cpu=cpu, at=at, run_time=run_time, **pod)[1:]]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(clusters())
def test_every_remedy_comes_true(cluster: list[Obj]) -> None:
    answer = advised(cluster)
    end_s = answer.data["end"]
    for entry in answer.data["pending"]:
        assert len(entry["remedies"]) <= 3
        for remedy in entry["remedies"]:
            after = followed(cluster, remedy=remedy, at_s=end_s)
            assert not after.waits(entry["gang"]), (entry["gang"], remedy["change"], after.why(entry["gang"]))
            assert any(one["gang"] == entry["gang"] and one["started"] is not None for one in after.data["gangs"])
