"""Calls webhooks of others: an AdmissionReview over HTTPS, with the timeout and failure policy of each.

A webhook has a `url`, or a Service, which leads to its `externalName`. Behind any other Service are simulated pods,
which answer nothing: such a webhook is not called, with a warning to the user.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
import uuid
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec

from enbloc.api import json_patch
from enbloc.api.admission_webhooks import ServiceReference, Webhook
from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj
from enbloc.api.writes import REASONS, Refused
from enbloc.cluster.embedded.api.identity import is_object
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.api.webhooks import Question, Review
from enbloc.cluster.embedded.http.encoding import encode
from enbloc.cluster.embedded.http.status import refusal
from enbloc.cluster.session_sockets import SessionSockets

DEFAULT_S: Final = 10
ANSWER_BYTES: Final = 3 * 1024 * 1024
MOST_WARNINGS: Final = 20
_decode = msgspec.json.Decoder().decode


class _NoAnswer(Exception):
    """A webhook could not be called, or its answer cannot be read."""


class _Simulated(Exception):
    """The pods behind the webhook's Service are simulated."""


class WebhookCalls:
    """Asks the webhooks of one store. Connections are kept until `close`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._session: aiohttp.ClientSession | None = None
        self._sockets = SessionSockets()
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
            await self._sockets.close()

    async def answer(self, review: Review, question: Question) -> None:
        """Asks all webhooks that the question concerns, and records what they made of the object. Raises `Refused`."""
        if question.stage == "mutating":
            review.record(question, await self._mutated(review, question))
            return
        known = self._store.webhooks
        calls = [
            self._ask(review, question, one.hook, version, question.obj)
            for one in list(known.registered("validating"))
            if (version := known.wanted_version(one, question.operation, question.obj, question.old)) is not None
        ]
        await asyncio.gather(*calls)
        review.record(question, question.obj)

    async def _mutated(self, review: Review, question: Question) -> Obj:
        """One after the other, each on what the one before left; then once more those that want it, if a later one
        changed the object."""
        known, obj = self._store.webhooks, question.obj
        hooks = list(known.registered("mutating"))
        left: dict[int, Obj] = {}
        for index, one in enumerate(hooks):
            version = known.wanted_version(one, question.operation, obj, question.old)
            if version is not None:
                obj = left[index] = await self._ask(review, question, one.hook, version, obj)
        for index, one in enumerate(hooks):
            version = known.wanted_version(one, question.operation, obj, question.old)
            again = one.hook.reinvocation_policy == "IfNeeded" and left.get(index, obj) != obj
            if version is not None and again:
                obj = await self._ask(review, question, one.hook, version, obj)
        return obj

    async def _ask(self, review: Review, question: Question, hook: Webhook, version: str, obj: Obj) -> Obj:
        """The object as this webhook leaves it. Raises `Refused` if it denies the write or must answer and does not."""
        uid = str(uuid.uuid4())
        try:
            if hook.match_conditions:
                raise _NoAnswer("its matchConditions cannot be evaluated here")
            body = encode(self._request(review, question, version, obj, uid))
            async with asyncio.timeout(hook.timeout_seconds or DEFAULT_S):
                answer = await self._post(hook, body)
            return _allowed(review, question, hook, obj, _response(answer, uid))
        except _Simulated as why:
            review.warnings.append(f'webhook "{hook.name}" was not called: {why}')
        except (TimeoutError, OSError, aiohttp.ClientError, _NoAnswer, ValueError) as why:
            said = str(why) or ("no answer in time" if isinstance(why, TimeoutError) else type(why).__name__)
            if not hook.is_optional:
                message = f'Internal error occurred: failed calling webhook "{hook.name}": {said[:500]}'
                raise refusal(500, message) from None
        return obj

    def _request(self, review: Review, question: Question, version: str, obj: Obj, uid: str) -> dict[str, Any]:
        kind = self._store.discovery.find(kind_id(obj))
        assert kind is not None, "only served kinds are reviewed"
        api_version = f"{kind.group}/{version}" if kind.group else version
        group = {"group": kind.group, "version": version}
        requested = {"group": kind.group, "version": obj["apiVersion"].rpartition("/")[2]}
        metadata = obj["metadata"]
        is_deletion = question.operation == "DELETE"
        options = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
        request = {
            "uid": uid,
            "kind": {**group, "kind": kind.name},
            "resource": {**group, "resource": kind.plural},
            "requestKind": {**requested, "kind": kind.name},
            "requestResource": {**requested, "resource": kind.plural},
            "name": metadata.get("name") or "",
            "namespace": metadata.get("namespace") or "",
            "operation": question.operation,
            "userInfo": {"username": review.user, "groups": list(review.groups)},
            "object": None if is_deletion else {**obj, "apiVersion": api_version},
            "oldObject": None if question.old is None else {**question.old, "apiVersion": api_version},
            "dryRun": question.is_dry_run,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": options[question.operation]},
        }
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}

    # -- the connection

    async def _post(self, hook: Webhook, body: bytes) -> Any:
        url, server_name = self._address(hook)
        context = self._context(hook.client_config.ca_bundle or "")
        if self._session is None:
            connector = aiohttp.TCPConnector(socket_factory=self._sockets.make)
            self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        async with self._session.post(
            url,
            data=body,
            headers={"Content-Type": "application/json", "Accept": "application/json"},
            ssl=context,
            server_hostname=server_name,
            allow_redirects=False,
        ) as response:
            raw = bytearray()
            async for piece in response.content.iter_any():
                raw += piece
                if len(raw) > ANSWER_BYTES:
                    raise _NoAnswer(f"its answer is larger than {ANSWER_BYTES} bytes")
            if response.status != 200:
                text = raw[:200].decode(errors="replace").strip()
                raise _NoAnswer(f"it answers {response.status}: {text}")
        try:
            return _decode(bytes(raw))
        except (msgspec.DecodeError, RecursionError) as why:
            raise _NoAnswer(f"its answer is not JSON: {why}") from None

    def _context(self, bundle: str) -> ssl.SSLContext:
        known = self._contexts.get(bundle)
        if known is None:
            try:
                text = base64.b64decode(bundle).decode("ascii").strip()
                known = ssl.create_default_context(cadata=text or None)
            except (binascii.Error, UnicodeDecodeError, ssl.SSLError) as why:
                raise _NoAnswer(f"its caBundle cannot be read: {why}") from None
            self._contexts[bundle] = known
        return known

    def _address(self, hook: Webhook) -> tuple[str, str]:
        """The URL, and the name that the server's certificate must have."""
        client = hook.client_config
        if client.service is None:
            url = client.url or ""
            return url, urlsplit(url).hostname or ""
        service = client.service
        host, port = self._behind(service)
        host = f"[{host}]" if ":" in host else host
        path = (service.path or "/").lstrip("/")
        return f"https://{host}:{port}/{path}", f"{service.name}.{service.namespace}.svc"

    def _behind(self, reference: ServiceReference) -> tuple[str, int]:
        """Host and port of a Service."""
        found = self._store.get("Service", reference.namespace, reference.name)
        if found is None:
            raise _NoAnswer(f'service "{reference.name}" not found in namespace {reference.namespace}')
        spec = found.get("spec") or {}
        if spec.get("type") == "ExternalName":
            return str(spec.get("externalName") or ""), reference.port or 443
        raise _Simulated(f"the pods of Service {reference.namespace}/{reference.name} are simulated")


def _response(answer: Any, uid: str) -> dict[str, Any]:
    """The response of an AdmissionReview. Raises `_NoAnswer`."""
    response = answer.get("response") if isinstance(answer, dict) else None
    if not isinstance(response, dict) or not isinstance(response.get("allowed"), bool):
        raise _NoAnswer("its answer is not an AdmissionReview with a response")
    if response.get("uid") != uid:
        raise _NoAnswer("its answer has another uid than the request")
    return response


def _allowed(review: Review, question: Question, hook: Webhook, obj: Obj, response: dict[str, Any]) -> Obj:
    """The object as an answer leaves it. Raises `Refused` if it denies the write, `_NoAnswer` if it has a bad patch."""
    warnings = response.get("warnings")
    for warning in warnings if isinstance(warnings, list) else ():
        if len(review.warnings) < MOST_WARNINGS and str(warning) not in review.warnings:
            review.warnings.append(str(warning)[:1024])
    if not response["allowed"]:
        given = response.get("status")
        status: dict[str, Any] = given if isinstance(given, dict) else {}
        code = status.get("code")
        code = code if isinstance(code, int) and 400 <= code < 600 else 403
        said = str(status.get("message") or status.get("reason") or "without explanation")
        reason = str(status.get("reason") or "")
        reason = reason if reason in REASONS.values() else REASONS.get(code, "Forbidden")
        raise Refused(code, reason, f'admission webhook "{hook.name}" denied the request: {said[:4096]}')
    patch = response.get("patch")
    if not patch or question.stage != "mutating" or question.operation == "DELETE":
        return obj
    if response.get("patchType") != "JSONPatch":
        raise _NoAnswer(f"patchType must be JSONPatch, not {str(response.get('patchType'))[:80]!r}")
    try:
        patched = json_patch.apply(obj, _decode(base64.b64decode(patch)))
    except (binascii.Error, msgspec.DecodeError, TypeError) as why:
        raise _NoAnswer(f"its patch cannot be read: {why}") from None
    except Refused as why:
        raise _NoAnswer(f"its patch cannot be applied: {why.message}") from None
    if not is_object(patched) or kind_id(patched) != kind_id(obj):
        raise _NoAnswer("its patch changes the kind of the object")
    return {**patched, "apiVersion": obj["apiVersion"]}
