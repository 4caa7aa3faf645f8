"""Webhooks of operators on `enbloc up`: pods of its own controllers pass them, too."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.embedded.http.test_kubectl import KUBECTL
from support.https_webhook import deny, labelling, webhook
from up.test_up import up
from up.test_workloads import WITHIN, Kubectl

pytestmark = pytest.mark.skipif(
    KUBECTL is None and not os.environ.get("CI"), reason="there is no kubectl; `make e2e` builds one"
)


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    with up(tmp_path, "--nodes", "3") as (_, lines):
        yield Kubectl(lines[-1].partition("=")[2], tmp_path)


def labels(kubectl: Kubectl) -> list[Any]:
    return [one["metadata"]["labels"].get("seen") for one in kubectl.json("get", "pods")["items"]]


def test_pods_of_ordinary_workloads_are_changed_by_webhooks(kubectl: Kubectl) -> None:
    with webhook(labelling("seen", "yes")) as server:
        kubectl("create", "-f", "-", given=json.dumps(server.configuration()))
        kubectl("create", "deployment", "web", "--image=nginx", "--replicas=3")
        assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", WITHIN)
        kubectl("create", "job", "once", "--image=busybox")
        kubectl("wait", "--for=jsonpath={.status.active}=1", "job/once", WITHIN)
        assert labels(kubectl) == ["yes"] * 4
        assert len(server.requests) == 4, "each pod is asked about once"
        users = {one["userInfo"]["username"] for one in server.requests}
        assert users == {"system:kube-controller-manager"}


def test_refused_pods_are_created_once_the_webhook_allows_them(kubectl: Kubectl) -> None:
    with webhook(deny) as server:
        kubectl("create", "-f", "-", given=json.dumps(server.configuration()))
        kubectl("create", "deployment", "web", "--image=nginx", "--replicas=2")
        end = time.monotonic() + 60
        while "denied the request: not on a Tuesday" not in kubectl("get", "events"):
            assert time.monotonic() < end, kubectl("get", "events")
            time.sleep(0.1)
        assert not kubectl.names("pods")
        kubectl("delete", "mutatingwebhookconfiguration", "hook")
        assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", WITHIN)
        assert labels(kubectl) == [None, None]
