"""What a test itself asks of an API server: plain requests, answered with a status code and JSON.

Not a client for anything else: it knows no watch and no retry. What is tested brings its own.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

POLL_S = 0.05
MERGE_PATCH = "application/merge-patch+json"
Json = dict[str, Any]


class Answer(NamedTuple):
    status: int
    body: Json

    def must(self) -> Json:
        """The body, if the request was granted."""
        assert self.status < 300, f"{self.status}: {self.body.get('message') or self.body}"
        return self.body


class Api:
    """Requests to one address, with one token."""

    def __init__(self, url: str, authority: Path, token: str, timeout_s: float = 10) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._host, self._port = parts.hostname, parts.port
        self._context = ssl.create_default_context(cafile=str(authority))
        self._token = token
        self._timeout_s = timeout_s

    def request(self, method: str, path: str, body: Json | None = None, content: str = "application/json") -> Answer:
        """May raise `OSError` or `http.client.HTTPException` when nobody answers."""
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout_s, context=self._context)
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        data = None
        if body is not None:
            data = json.dumps(body)
            headers["Content-Type"] = content
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
        finally:
            connection.close()
        try:
            decoded = json.loads(text)
        except ValueError:
            decoded = text
        return Answer(response.status, decoded if isinstance(decoded, dict) else {"message": decoded})

    def get(self, path: str) -> Answer:
        return self.request("GET", path)

    def create(self, path: str, obj: Json) -> Json:
        """Posts `obj` to the collection (or subresource) at `path`."""
        return self.request("POST", path, obj).must()

    def patch(self, path: str, patch: Json) -> Json:
        """A merge patch."""
        return self.request("PATCH", path, patch, MERGE_PATCH).must()

    def delete(self, path: str, options: Json | None = None) -> Json:
        return self.request("DELETE", path, options).must()

    def items(self, path: str) -> list[Json]:
        found: list[Json] = self.get(path).must()["items"]
        return found

    def bind(self, namespace: str, pod: str, node: str, annotations: dict[str, str] | None = None) -> Json:
        """A Binding by hand, as a scheduler would write it."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod, "namespace": namespace, "annotations": annotations or {}},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        return self.create(f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", binding)

    def wait(self, path: str, until: Callable[[Json], object], within_s: float = 20) -> Json:
        """What is at `path` once `until` holds of it. Something that is not there does not hold."""
        end = time.monotonic() + within_s
        while True:
            answer = self.get(path)
            if answer.status == 200 and until(answer.body):
                return answer.body
            assert time.monotonic() < end, f"after {within_s} s still so: {answer.status} {json.dumps(answer.body)}"
            time.sleep(POLL_S)

    def wait_gone(self, path: str, within_s: float = 20) -> None:
        end = time.monotonic() + within_s
        while (answer := self.get(path)).status != 404:
            assert time.monotonic() < end, f"after {within_s} s still there: {json.dumps(answer.body)}"
            time.sleep(POLL_S)

    def is_up(self, path: str = "/readyz") -> bool:
        try:
            return self.get(path).status == 200
        except (OSError, http.client.HTTPException):
            return False


def phase(name: str) -> Callable[[Json], bool]:
    """For `wait`: the object's status has this phase."""
    return lambda obj: bool(obj.get("status", {}).get("phase") == name)
