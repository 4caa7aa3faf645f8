"""The webhook's server: TLS on one port, one question a request, and never a traceback for an answer.

Whatever comes in that is no question is told so with a 4xx. A certificate that was renewed is taken up by the live
server; connections that stand keep theirs.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

import msgspec
from aiohttp import web

from enbloc.api.meta import Obj
from enbloc.api.writes import Refused
from enbloc.config import Config
from enbloc.gangs.registry import GangRegistry
from enbloc.webhook import certificate_rotation, certificates
from enbloc.webhook.cache import Asked, ObjectCache
from enbloc.webhook.certificate_rotation import CertificateRotation
from enbloc.webhook.certificates import Content
from enbloc.webhook.review import BadReview, Judgement, Request, answer, judge, read_request, warn

MUTATE, VALIDATE, WARN = "/mutate", "/validate", "/warn"
PORT: Final = 8443
SERVICE: Final = "enbloc-webhook"
SECRET: Final = "enbloc-webhook-certificates"
CONFIGURATION: Final = "enbloc"
BODY_BYTES: Final = 8 * 2**20
"""Above what an API server can send: an object and the one before it, of at most 3 MiB each."""
READ_S: Final = 10
AT_ONCE: Final = 64
"""Questions that are read or judged at one time; more wait."""
LOOK_EVERY_S: Final = 600
RETRY_S: Final = (1, 60)
"""Waits after a failed look at the certificates: the first, and the longest."""

log = logging.getLogger("enbloc.webhook")


class Api(certificate_rotation.Api, Protocol):
    """What the webhook asks of a cluster."""

    async def list(self, kind: str) -> list[Obj]:
        """All objects of a kind as they are now. Raises `Refused`."""
        ...


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """The names under which an API server may call a Service; the first is the one that it uses."""
    return (f"{service}.{namespace}.svc", f"{service}.{namespace}", f"{service}.{namespace}.svc.cluster.local")


class Webhook:
    """Answers reviews. `known` is kept up to date by whoever watches; `Known.kinds` says which kinds."""

    def __init__(self, api: Api, known: ObjectCache, config: Config) -> None:
        self._api = api
        self._known = known
        self._relaxed = config.admission.min_available == "relaxed"
        self._book = GangRegistry()
        self._places = asyncio.Semaphore(AT_ONCE)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=BODY_BYTES)
        app.router.add_post(MUTATE, self._mutate)
        app.router.add_post(VALIDATE, self._validate)
        app.router.add_post(WARN, self._warn)
        return app

    async def _mutate(self, http: web.Request) -> web.Response:
        return await self._answered(http, self.review, mutates=True)

    async def _validate(self, http: web.Request) -> web.Response:
        return await self._answered(http, self.review, mutates=False)

    async def _warn(self, http: web.Request) -> web.Response:
        return await self._answered(http, self.warned, mutates=False)

    async def _answered(
        self, http: web.Request, ask: Callable[[Request], Awaitable[Judgement]], *, mutates: bool
    ) -> web.Response:
        async with self._places:
            try:
                async with asyncio.timeout(READ_S):
                    body = await http.read()
            except TimeoutError:
                return web.Response(status=408, text="the request took too long to come\n")
            except ConnectionError:
                return web.Response(status=400)  # nobody is left to read it
            try:
                request = read_request(body)
                judgement = await ask(request)
                return web.Response(body=answer(request, judgement, mutates=mutates), content_type="application/json")
            except BadReview as why:
                return web.Response(status=400, text=f"{why}\n")
            except RecursionError:
                return web.Response(status=400, text="the object is nested too deeply\n")
            except Refused as why:
                log.warning("webhook: no answer, the API does not say what others there are: %s", why.message)
                return web.Response(status=503, text=f"cannot look up other objects: {why.message}\n")
            except Exception:
                log.exception("webhook: a bug, in answering %s", http.path)
                return web.Response(status=500, text="a bug in enbloc's webhook; its log tells more\n")

    async def warned(self, request: Request) -> Judgement:
        """Of pods, and of the PodGroups of others, nothing is refused: K3 reads what is bad as something else."""
        return Judgement(request.object, request.object, [], warn(request, self._book))

    async def review(self, request: Request) -> Judgement:
        """The rules' answer. Before anybody is refused, what the rules looked at is fetched: a cache may be behind."""
        asked = Asked(self._known)
        for kind in sorted(ObjectCache.kinds):
            if not self._known.complete(kind):
                asked.learn_all(kind, await self._api.list(kind))
        judgement = judge(request, asked, relaxed=self._relaxed)
        if not judgement.faults:
            return msgspec.structs.replace(judgement, warnings=warn(request, self._book))
        if not (asked.objects or asked.kinds):
            return judgement
        for kind in sorted(asked.kinds):
            asked.learn_all(kind, await self._api.list(kind))
        for ref in sorted(asked.objects):
            if ref.kind not in asked.kinds:
                asked.learn(ref, await self._api.get(*ref))
        # What is looked up depends on what was found (a queue's parents, say): those steps go by the cache once more.
        return judge(request, asked, relaxed=self._relaxed)


class Server:
    """A webhook on a port, with certificates that are looked after. Without anything `known` the API is asked about
    other objects each time. `/healthz` and `/readyz` are on that port too, so that a pod gets no questions before it
    can answer them."""

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
        host: str | None = None,
        port: int = PORT,
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        self._webhook = Webhook(api, known or ObjectCache(), config)
        self._known = known
        self._keeper = CertificateRotation(
            api, namespace, secret, names or service_names(service, namespace), configuration
        )
        self._host, self._port, self._now = host, port, now
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._loaded = b""
        self._until = 0
        self.address: tuple[str, int] | None = None
        """Where it listens, once it does."""

    @property
    def ready(self) -> bool:
        """Whether it listens, with a certificate that is valid, and knows the objects that rules ask about."""
        knows = self._known is None or self._known.is_complete
        return self.address is not None and knows and self._now() < self._until

    async def serve(self) -> None:
        """Serves until it is cancelled; requests that are being answered then are finished first."""
        await self._look_until_done()
        app = self._webhook.app()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=READ_S)
        await runner.setup()
        try:
            site = web.TCPSite(runner, self._host, self._port, ssl_context=self._context)
            await site.start()
            self.address = runner.addresses[0][0], runner.addresses[0][1]
            log.info("webhook: serving on port %s", self.address[1])
            while True:
                await asyncio.sleep(LOOK_EVERY_S)
                await self._look_until_done()
        finally:
            self.address = None
            await runner.cleanup()

    async def _healthz(self, http: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, http: web.Request) -> web.Response:
        return web.Response(text="ok\n") if self.ready else web.Response(status=503, text="not ready\n")

    async def look(self) -> None:
        """Looks after the certificates once. Raises `Refused` if the API does not let it."""
        self._load(await self._keeper.look(self._now()))

    async def _look_until_done(self) -> None:
        wait_s, longest_s = RETRY_S
        while True:
            try:
                return await self.look()
            except Refused as why:
                log.warning("webhook: certificates could not be looked after, again in %s s: %s", wait_s, why)
            except Exception:  # what is served is good for weeks: no reason to stop serving it
                log.exception("webhook: a bug, in looking after certificates; again in %s s", wait_s)
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, longest_s)

    def _load(self, content: Content) -> None:
        """New handshakes get what is served now; nobody is disconnected."""
        pem = certificates.serving_pem(content)
        if pem != self._loaded:
            _load_chain(self._context, pem)
            self._loaded = pem
        self._until = certificates.served_until(content)


def _load_chain(context: ssl.SSLContext, pem: bytes) -> None:
    """Python loads certificates from files only; where the system can, that is a file in memory."""
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
