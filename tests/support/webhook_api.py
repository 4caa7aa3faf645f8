"""A cluster for the webhook: the embedded store behind the few calls that it makes, which may be made to fail."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from enbloc.api.meta import Obj
from enbloc.api.writes import Refused, Write
from enbloc.cluster.embedded.api.admission import bootstrap
from enbloc.cluster.embedded.api.store import Store
from enbloc.install.hooks import configurations
from enbloc.units import SECOND
from enbloc.webhook import certificate_rotation
from support import manifests as m

NAMESPACE = "enbloc-system"
START = 1_800_000_000 * SECOND


class FakeApi:
    """Async calls on an embedded store. `before_write` is called before each write; what it raises is the answer."""

    def __init__(self, now: Callable[[], int] = lambda: START) -> None:
        self.store = Store(now, auto_namespaces=True)
        bootstrap(self.store)
        self.calls: list[tuple[str, str]] = []
        self.before_write: Callable[[Write], None] = lambda write: None
        self.is_down = False

    async def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        self._call("get", kind)
        return self.store.get(kind, namespace, name)

    async def list(self, kind: str) -> builtins.list[Obj]:
        self._call("list", kind)
        return self.store.list(kind)[0]

    async def execute(self, write: Write) -> Obj | None:
        self._call("write", type(write).__name__)
        self.before_write(write)
        return self.store.execute(write)

    def _call(self, verb: str, what: str) -> None:
        self.calls.append((verb, what))
        if self.is_down:
            raise Refused(503, "ServiceUnavailable", "the API server is down")

    def install(self) -> None:
        """What `enbloc install` brings, as far as the webhook looks at it."""
        for configuration in configurations(NAMESPACE, {}):
            self.store.create(configuration)

    def bundle(self, kind: str = certificate_rotation.MUTATING) -> str:
        """The authorities that a webhook configuration trusts."""
        found = self.store.get(kind, "", "enbloc")
        assert found is not None
        bundle: str = found["webhooks"][0]["clientConfig"].get("caBundle", "")
        return bundle


def job(name: str = "train", **spec: Any) -> Obj:
    """A job without a scheduler's name, which admission fills in."""
    found = m.job(name, m.role("worker", 2), **spec)
    del found["spec"]["schedulerName"]
    return found


def review(operation: str, obj: Obj | None, old: Obj | None = None, **more: Any) -> dict[str, Any]:
    """An AdmissionReview as an API server sends it."""
    one = obj or old or {}
    group, _, version = str(one.get("apiVersion", "")).rpartition("/")
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": group, "version": version, "kind": str(one.get("kind", ""))},
        "name": str((one.get("metadata") or {}).get("name", "")),
        "namespace": (one.get("metadata") or {}).get("namespace", ""),
        "operation": operation,
        "object": obj,
        "oldObject": old,
        "dryRun": False,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**request, **more}}
