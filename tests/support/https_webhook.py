"""A webhook as operators have it: a real HTTPS server on loopback, which answers as a test says."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from enbloc.api.meta import Obj
from enbloc.cluster.embedded.http.certificate import make_certificate

SERVICE = "hooks"
NAMESPACE = "default"
Answer = Callable[[dict[str, Any]], dict[str, Any] | None]
"""From the request of an AdmissionReview to its response; `None`: HTTP 500."""


class HttpsWebhook:
    """Keeps the requests that it got."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[dict[str, Any]] = []
        self._certificate = make_certificate(f"{SERVICE}.{NAMESPACE}.svc")
        self.bundle = base64.b64encode(self._certificate.certificate).decode()
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                request = review["request"]
                webhook.requests.append(request)
                response = webhook.answer(request)
                body = json.dumps(review | {"response": {"uid": request["uid"], **(response or {})}}).encode()
                self.send_response(200 if response is not None else 500)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def handle(self) -> None:
                try:
                    super().handle()
                except OSError:
                    pass  # the client did not wait for the answer

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = self._certificate.context().wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def configuration(self, stage: str = "Mutating", name: str = "hook", **fields: Any) -> Obj:
        """A configuration that calls this server for pods."""
        rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
        hook = {
            "name": f"{name}.example.org",
            "clientConfig": {"url": f"https://127.0.0.1:{self.port}/review", "caBundle": self.bundle},
            "rules": [rule | fields.pop("rule", {})],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **fields,
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{stage}WebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [hook],
        }


@contextmanager
def webhook(answer: Answer) -> Iterator[HttpsWebhook]:
    server = HttpsWebhook(answer)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def allow(_: dict[str, Any]) -> dict[str, Any]:
    return {"allowed": True}


def deny(_: dict[str, Any]) -> dict[str, Any]:
    return {"allowed": False, "status": {"message": "not on a Tuesday", "code": 422}}


def labelling(key: str, value: str) -> Answer:
    """Adds a label to what it is asked about."""

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        labels = {**(request["object"]["metadata"].get("labels") or {}), key: value}
        patch = json.dumps([{"op": "add", "path": "/metadata/labels", "value": labels}])
        return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(patch.encode()).decode()}

    return answer
