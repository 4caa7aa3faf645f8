"""The figures of a simulation: gangs are those of the registry, whatever their dialect."""

from __future__ import annotations

import pytest

from enbloc.api.meta import Obj
from enbloc.config import parse
from enbloc.scenario.documents import Document
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from support import manifests as m

DIALECTS: dict[str, list[Obj]] = {
    "volcano-job": [m.job("g", m.role("w", 3, run_time="5s"))],
    "volcano-podgroup": m.gang("g", 3, run_time="5s"),
    "koordinator": m.koordinator_gang("g", 3, run_time="5s"),
    "coscheduling": [m.sigs_podgroup("g", 3), *m.labelled_pods("g", 3, run_time="5s")],
    "kubernetes": [m.native_podgroup("g", {"gang": {"minCount": 3}}), *m.native_pods("g", 3, run_time="5s")],
    "queuejob": [m.queue_job("g", m.role("w", 3, run_time="5s"), minimum=3)],
    "scheduling-spec": [
        m.CRDJOB_DEFINITION,
        m.crdjob("g"),
        m.scheduling_spec("s", 3, by=m.crdjob_owner("g")),
        *m.owned(*m.pods(3, "p", run_time="5s"), by=m.crdjob_owner("g")),
    ],
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_pods_of_one_gang_are_counted_together(dialect: str) -> None:
    objects = [m.node("n1", 8), *DIALECTS[dialect]]
    documents = [Document("f.yaml", number, value) for number, value in enumerate(objects, 1)]
    result = Simulation(read_scenario(documents), parse(None)).run()
    [gang] = result.gangs
    assert (gang.name, gang.bound, gang.succeeded) == ("default/g", 3, 3)
    assert result.summary["gangs"] == {"pending": 0, "started": 1}
