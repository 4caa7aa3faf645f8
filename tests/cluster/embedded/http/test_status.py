"""The bodies of refusals: what kubectl shows of them."""

from __future__ import annotations

import pytest

from enbloc.api.meta import Ref
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.http.status import failure

JOB = "Job.batch.volcano.sh"


@pytest.mark.parametrize("name", ["", "mpi"])
def test_a_refused_creation_names_its_object(name: str) -> None:
    """The address of a creation has no name; kubectl prints `The Job "mpi" is invalid` from the details."""
    why = Refused(422, "Invalid", 'Job "mpi" is invalid: spec.tasks: is missing', name="mpi")
    body = failure(why, Ref(JOB, "default", name))
    assert body["details"] == {"name": "mpi", "group": "batch.volcano.sh", "kind": "Job"}


def test_a_refusal_without_a_name_has_none() -> None:
    assert "name" not in failure(Refused(422, "Invalid", "Scale is invalid"), Ref(JOB, "default", ""))["details"]
