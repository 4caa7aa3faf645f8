"""The webhook's HTTPS server: one review a request.

A request is first read as a whole (`bodies`), then waits for one of the places for reviews: a client that sends slowly
takes none. Anything that is not a review is answered with a 4xx; exceptions never reach the client. A renewed
certificate is used for new connections; existing ones keep theirs.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

import msgspec
from aiohttp import web

from enbloc.admission.settings import settings_of
from enbloc.api.meta import Obj
from enbloc.api.writes import Refused
from enbloc.config import Config
from enbloc.gangs.lenient import LenientRegistry
from enbloc.webhook import certificate_rotation, certificates
from enbloc.webhook.bodies import Bodies, UnreadBody
from enbloc.webhook.cache import ObjectCache, RecordingLookup
from enbloc.webhook.certificate_rotation import CertificateRotation
from enbloc.webhook.certificates import Content
from enbloc.webhook.clients import ANY_CLIENT, Clients
from enbloc.webhook.listener import Listener
from enbloc.webhook.review import BadReview, Request, Verdict, answer, evaluate, guard_records, read_request, warn

MUTATE, VALIDATE, WARN, RECORDS = "/mutate", "/validate", "/warn", "/records"
PORT: Final = 8443
SERVICE: Final = "enbloc-webhook"
SECRET: Final = "enbloc-webhook-certificates"
CONFIGURATION: Final = "enbloc"
AT_ONCE: Final = 64
"""At most this many reviews are in progress at a time; more wait."""
STOP_S: Final = 10
"""How long requests in progress may take when the server stops."""
LINGER_S: Final = 1.0
"""How long the rest of a refused body is read, so that the client reads the refusal."""
LOOK_EVERY_S: Final = 600
RETRY_S: Final = (1, 60)
"""Delays after a failed renewal of certificates: the first, and the longest."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = logging.getLogger("enbloc.webhook")


class Api(certificate_rotation.Api, Protocol):
    """What the webhook needs of a cluster."""

    async def list(self, kind: str) -> list[Obj]:
        """All objects of a kind as they are now. Raises `Refused`."""
        ...


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """The DNS names under which an API server may call a Service; the first is the one it uses."""
    return (f"{service}.{namespace}.svc", f"{service}.{namespace}", f"{service}.{namespace}.svc.cluster.local")


class Webhook:
    """Answers reviews that `clients` may send. A watch keeps `known` up to date; `ObjectCache.kinds` says of which
    kinds. `listener` has the connections, once there is one."""

    listener: Listener | None = None

    def __init__(self, api: Api, known: ObjectCache, config: Config, clients: Clients, namespace: str) -> None:
        """`namespace`: ours; its accounts may write our annotations."""
        self._api = api
        self._namespace = namespace
        self._known = known
        self._settings = settings_of(config, alone=False, strict_templates=True)
        self._book = LenientRegistry()
        self._clients = clients
        self._bodies = Bodies()
        self._places = asyncio.Semaphore(AT_ONCE)

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._received])
        app.router.add_post(MUTATE, self._mutate)
        app.router.add_post(VALIDATE, self._validate)
        app.router.add_post(WARN, self._warn)
        app.router.add_post(RECORDS, self._guard)
        return app

    @web.middleware
    async def _received(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self.listener is not None:
            self.listener.request_begins(request.protocol)
        return await handler(request)

    async def _mutate(self, http: web.Request) -> web.Response:
        return await self._answered(http, self.review, mutates=True)

    async def _validate(self, http: web.Request) -> web.Response:
        return await self._answered(http, self.review, mutates=False)

    async def _warn(self, http: web.Request) -> web.Response:
        return await self._answered(http, self.warned, mutates=False)

    async def _guard(self, http: web.Request) -> web.Response:
        return await self._answered(http, self.guarded, mutates=True)

    async def _answered(
        self, http: web.Request, ask: Callable[[Request], Awaitable[Verdict]], *, mutates: bool
    ) -> web.Response:
        """Reads the body before it takes a place: a client that sends slowly delays no other."""
        refusal = self._clients.refusal(http.get_extra_info("peercert"))
        if refusal is not None:
            return _closing(403, refusal)
        try:
            async with self._bodies.read(http) as body:
                with self._in_use(http):
                    async with self._places:
                        return await self._reviewed(http.path, body, ask, mutates=mutates)
        except UnreadBody as why:
            return _closing(why.status, str(why))

    def _in_use(self, http: web.Request) -> AbstractContextManager[None]:
        transport = http.transport
        if self.listener is None or transport is None:
            return nullcontext()
        return self.listener.in_use(http.protocol, transport.abort)

    async def _reviewed(
        self, path: str, body: bytes, ask: Callable[[Request], Awaitable[Verdict]], *, mutates: bool
    ) -> web.Response:
        try:
            request = read_request(body)
            verdict = await ask(request)
            return web.Response(body=answer(request, verdict, mutates=mutates), content_type="application/json")
        except BadReview as why:
            return web.Response(status=400, text=f"{why}\n")
        except RecursionError:
            return web.Response(status=400, text="the object is nested too deeply\n")
        except Refused as why:
            log.warning("webhook: no answer, other objects cannot be fetched: %s", why.message)
            return web.Response(status=503, text=f"cannot fetch other objects: {why.message}\n")
        except Exception:
            log.exception("webhook: bug in answering %s", path)
            return web.Response(status=500, text="a bug in enbloc's webhook; see its log\n")

    async def warned(self, request: Request) -> Verdict:
        """Pods and other projects' PodGroups are never refused: K3 reads invalid values as something else."""
        return Verdict(request.object, request.object, [], warn(request, self._book, self._settings))

    async def guarded(self, request: Request) -> Verdict:
        """Of pods and other projects' PodGroups only our own annotations are looked at (S2)."""
        return guard_records(request, self._namespace)

    async def review(self, request: Request) -> Verdict:
        """The rules' verdict. Before a refusal, the objects that the rules looked up are fetched: the cache may be
        behind."""
        lookup = RecordingLookup(self._known)
        for kind in sorted(ObjectCache.kinds):
            if not self._known.complete(kind):
                lookup.learn_all(kind, await self._api.list(kind))
        verdict = evaluate(request, lookup, self._settings, self._namespace)
        if not verdict.faults:
            return msgspec.structs.replace(verdict, warnings=warn(request, self._book, self._settings))
        if not (lookup.objects or lookup.kinds):
            return verdict
        for kind in sorted(lookup.kinds):
            lookup.learn_all(kind, await self._api.list(kind))
        for ref in sorted(lookup.objects):
            if ref.kind not in lookup.kinds:
                lookup.learn(ref, await self._api.get(*ref))
        # What is looked up depends on what was found (a queue's parents): such further lookups use the cache again.
        return evaluate(request, lookup, self._settings, self._namespace)


class Server:
    """A webhook on a port, with certificates that are renewed. Without `known`, other objects are fetched from the API
    at each review. `/healthz` and `/readyz` are on that port too, so that a pod gets no reviews before it can answer
    them."""

    def __init__(
        self,
        api: Api,
        known: ObjectCache | None,
        config: Config,
        *,
        namespace: str,
        service: str = SERVICE,
        secret: str = SECRET,
        configuration: str = CONFIGURATION,
        names: Sequence[str] | None = None,
        host: str = "127.0.0.1",
        port: int = PORT,
        clients: Clients = ANY_CLIENT,
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        """Raises `OSError` if the CA of `clients` cannot be read."""
        self._webhook = Webhook(api, known or ObjectCache(), config, clients, namespace)
        self._known = known
        self._rotation = CertificateRotation(
            api, namespace, secret, names or service_names(service, namespace), configuration
        )
        self._host, self._port, self._now = host, port, now
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        clients.ask_in(self._context)
        self._loaded = b""
        self._until = 0
        self.address: tuple[str, int] | None = None
        """Where it listens; `None` before it does."""

    @property
    def ready(self) -> bool:
        """Whether it listens, with a valid certificate, and has observed the objects that rules look up."""
        knows = self._known is None or self._known.is_complete
        return self.address is not None and knows and self._now() < self._until

    async def serve(self) -> None:
        """Serves until it is cancelled; requests in progress are completed."""
        await self._renew_until_done()
        app = self._webhook.app()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=STOP_S, lingering_time=LINGER_S, auto_decompress=False
        )
        await runner.setup()
        assert runner.server is not None
        listener = self._webhook.listener = Listener(runner.server, self._context)
        try:
            self.address = await listener.start(self._host, self._port)
            log.info("webhook: serving on %s, port %s", *self.address)
            while True:
                await asyncio.sleep(LOOK_EVERY_S)
                await self._renew_until_done()
        finally:
            self.address = None
            await listener.stop()
            await runner.cleanup()

    async def _healthz(self, http: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, http: web.Request) -> web.Response:
        return web.Response(text="ok\n") if self.ready else web.Response(status=503, text="not ready\n")

    async def renew(self) -> None:
        """Renews certificates if due. Raises `Refused` if the API refuses a write."""
        self._load(await self._rotation.renew(self._now()))

    async def _renew_until_done(self) -> None:
        wait_s, longest_s = RETRY_S
        while True:
            try:
                return await self.renew()
            except Refused as why:
                log.warning("webhook: certificates could not be renewed, again in %s s: %s", wait_s, why)
            except Exception:  # the present certificate is valid for weeks: continue to serve
                log.exception("webhook: bug in renewing certificates; again in %s s", wait_s)
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, longest_s)

    def _load(self, content: Content) -> None:
        """Uses the new certificate for new handshakes; connections stay open."""
        pem = certificates.serving_pem(content)
        if pem != self._loaded:
            _load_chain(self._context, pem)
            self._loaded = pem
        self._until = certificates.served_until(content)


def _closing(status: int, why: str) -> web.Response:
    """A refusal after which the connection is closed: the rest of the body is not read."""
    response = web.Response(status=status, text=f"{why}\n")
    response.force_close()
    return response


def _load_chain(context: ssl.SSLContext, pem: bytes) -> None:
    """Python loads certificates from files only; on Linux that is a file in memory."""
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("enbloc-webhook", os.MFD_CLOEXEC)
        try:
            os.write(handle, pem)
            context.load_cert_chain(f"/proc/self/fd/{handle}")
        finally:
            os.close(handle)
        return
    with tempfile.NamedTemporaryFile() as file:  # pragma: no cover - not on Linux
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)
