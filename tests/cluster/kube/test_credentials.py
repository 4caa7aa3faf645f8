from __future__ import annotations

import asyncio
import base64
import datetime
import ipaddress
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cluster.kube.server import QUICK, ApiServer, play, pod
from cluster.kube.test_exec_plugin import PlugIn
from enbloc.api.writes import Create, Refused
from enbloc.cluster.kube import connect
from enbloc.cluster.kube import credentials as credentials_module
from enbloc.cluster.kube.credentials import NoCredentials, load

LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the machine on which the tests run."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def kubeconfig(
    path: Path, user: dict[str, Any] | None = None, server: Any = "http://127.0.0.1:1", **cluster: Any
) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [
            {"name": "one", "cluster": {"server": server, **cluster}},
            {"name": "two", "cluster": {"server": "http://127.0.0.1:2"}},
        ],
        "users": [{"name": "me", "user": user or {}}],
        "contexts": [
            {"name": "here", "context": {"cluster": "one", "user": "me"}},
            {"name": "there", "context": {"cluster": "two", "user": "me"}},
        ],
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


async def bearer(credentials: Any, **how: bool) -> str | None:
    found: str | None = await credentials.authorization(**how)
    return found


def test_contexts_and_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        file = kubeconfig(tmp_path / "config", {"token": "abc"})
        assert (await load(file, None)).base_url == "http://127.0.0.1:1"
        there = await load(file, "there")
        assert (there.base_url, await bearer(there)) == ("http://127.0.0.1:2", "Bearer abc")
        monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/missing:{file}")
        assert (await load(None, None)).base_url == "http://127.0.0.1:1"
        monkeypatch.delenv("KUBECONFIG")
        (tmp_path / ".kube").mkdir()
        kubeconfig(tmp_path / ".kube/config", {}, "http://127.0.0.1:3")
        assert (await load(None, None)).base_url == "http://127.0.0.1:3"

    play(story)


@pytest.mark.parametrize(
    "text, context, message",
    [
        (None, None, "there is no such kubeconfig"),
        ("{", None, ""),
        ("[]", None, ""),
        ("a: b", None, "current-context"),
        ("{}", "x", "contexts"),
        ("current-context: x\ncontexts: []\nclusters: []", None, "contexts: there is no 'x'"),
        (
            "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c}]",
            None,
            "not an http(s) address",
        ),
        (
            "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {a: b}}]",
            None,
            "clusters.c: Object contains unknown field `a`",
        ),
        (
            "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
            "clusters: [{name: c, cluster: {server: 'ftp://x'}}]",
            None,
            "not an http(s) address: 'ftp://x'",
        ),
    ],
)
def test_files_that_lead_nowhere_get_one_line(
    tmp_path: Path, text: str | None, context: str | None, message: str
) -> None:
    async def story() -> None:
        file = tmp_path / "config"
        if text is not None:
            file.write_text(text)
        with pytest.raises(NoCredentials) as caught:
            await load(str(file), context)
        assert message in str(caught.value)
        assert str(file) in str(caught.value)
        assert "\n" not in str(caught.value)

    play(story)


def test_nothing_anywhere_and_files_that_are_missing(tmp_path: Path) -> None:
    async def story() -> None:
        with pytest.raises(NoCredentials, match=r"^no cluster: "):
            await load(None, None)
        with pytest.raises(NoCredentials, match="context 'x'"):
            await load(None, "x")
        file = kubeconfig(tmp_path / "a", {}, "https://127.0.0.1:1", **{"certificate-authority": "missing.crt"})
        with pytest.raises(NoCredentials, match=r"missing\.crt"):
            await load(file, None)
        (tmp_path / "bad.crt").write_text("no certificate")
        file = kubeconfig(tmp_path / "b", {}, "https://127.0.0.1:1", **{"certificate-authority": "bad.crt"})
        with pytest.raises(NoCredentials, match="certificate authority"):
            await load(file, None)

    play(story)


def test_a_token_in_a_file_is_read_again(tmp_path: Path) -> None:
    async def story() -> None:
        (tmp_path / "token").write_text("one")
        credentials = await load(kubeconfig(tmp_path / "config", {"tokenFile": "token"}), None)
        assert await bearer(credentials) == "Bearer one"
        (tmp_path / "token").write_text("two")
        assert await bearer(credentials) == "Bearer two"

    play(story)


def test_a_pod_has_its_own_and_reads_a_new_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        token, authority = tmp_path / "token", tmp_path / "ca.crt"
        monkeypatch.setattr(credentials_module, "TOKEN_FILE", str(token))
        monkeypatch.setattr(credentials_module, "CA_FILE", str(authority))
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
        with pytest.raises(NoCredentials, match="in this pod"):
            await load(None, None)
        token.write_text("one\n")
        authority.write_bytes(certificate("ca")[0])
        credentials = await load(None, None)
        assert credentials.base_url == "https://10.0.0.1:443"
        assert await bearer(credentials) == "Bearer one"
        token.write_text("two")
        assert await bearer(credentials) == "Bearer two"
        token.write_text("three")
        assert await bearer(credentials, refused=True) == "Bearer three"
        first = credentials.tls
        authority.write_bytes(certificate("another")[0])
        await bearer(credentials)
        assert credentials.tls is not first
        token.write_text("")
        with pytest.raises(NoCredentials, match=r"in this pod: .*token is empty"):
            await bearer(credentials, refused=True)

    play(story)


def test_a_token_that_was_replaced_is_read_again_once_it_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        file = kubeconfig(tmp_path / "config", {"token": "first"})
        credentials = await load(file, None)
        kubeconfig(tmp_path / "config", {"token": "second"})
        assert await bearer(credentials) == "Bearer first"
        assert await bearer(credentials, refused=True) == "Bearer second"

    play(story)


def test_what_is_read_again_is_the_same_context_on_the_same_server(tmp_path: Path) -> None:
    """`kubectl config use-context` meanwhile must not send the credentials of one cluster to another."""

    async def story() -> None:
        path = tmp_path / "config"
        credentials = await load(kubeconfig(path, {"token": "first"}), None)
        other = yaml.safe_load(path.read_text())
        other["users"][0]["user"]["token"] = "second"
        path.write_text(yaml.safe_dump(other | {"current-context": "there"}))
        assert await bearer(credentials, refused=True) == "Bearer second"
        kubeconfig(path, {"token": "third"}, "http://127.0.0.1:4")
        with pytest.raises(NoCredentials, match="context 'here' leads elsewhere by now"):
            await bearer(credentials, refused=True)
        kubeconfig(path, {"token": "third", "as": "jane"})
        with pytest.raises(NoCredentials, match="context 'here' leads elsewhere by now"):
            await bearer(credentials, refused=True)
        path.unlink()
        with pytest.raises(NoCredentials, match="there is no such kubeconfig"):
            await bearer(credentials, refused=True)
        assert await bearer(credentials) == "Bearer second"

    play(story)


@pytest.mark.parametrize(
    "text, message", [("a\nb", "no header may have"), ("s3cr3t\x00", "no header"), ("ü", "no header")]
)
def test_a_token_that_is_no_header_is_refused_without_being_shown(tmp_path: Path, text: str, message: str) -> None:
    async def story() -> None:
        (tmp_path / "token").write_text(text)
        with pytest.raises(NoCredentials, match=r"users\.me\.tokenFile: the token has characters") as caught:
            await load(kubeconfig(tmp_path / "config", {"tokenFile": "token"}), None)
        assert message in str(caught.value)
        assert text not in str(caught.value)

    play(story)


def test_user_password_and_impersonation_reach_the_server(tmp_path: Path) -> None:
    async def story() -> None:
        seen: list[Any] = []

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            seen.append([pair for pair in request.headers.items() if pair[0].startswith(("Impersonate", "Auth"))])
            return await server.handle(request)

        server = ApiServer()
        runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        me = {"username": "me", "password": "s3cr3t", "as": "jané", "as-groups": ["ops", "dev"]}
        try:
            file = kubeconfig(tmp_path / "config", me, f"http://127.0.0.1:{runner.addresses[0][1]}")
            async with await connect(file, None) as cluster:
                await cluster.execute(Create(pod("a")))
        finally:
            await runner.cleanup()
        assert len(seen) > 1
        for headers in seen:  # reads and writes
            assert sorted(headers) == [
                ("Authorization", "Basic bWU6czNjcjN0"),
                ("Impersonate-Group", "dev"),
                ("Impersonate-Group", "ops"),
                ("Impersonate-User", "jané"),
            ]

    play(story)


def certificate(name: str, host: str = "") -> tuple[bytes, bytes]:
    """A certificate that signed itself, of a host or of loopback, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) if host else LOOPBACK]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.public_bytes(serialization.Encoding.PEM), private


def test_client_certificates_and_the_servers_own(tmp_path: Path) -> None:
    async def story() -> None:
        for name in ("server", "client", "stranger"):
            public, private = certificate(name)
            (tmp_path / f"{name}.crt").write_bytes(public)
            (tmp_path / f"{name}.key").write_bytes(private)
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tmp_path / "client.crt"))
        tls.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
        tls.verify_mode = ssl.CERT_REQUIRED
        server = ApiServer()
        server.put(pod("a"))
        runner = web.ServerRunner(web.Server(server.handle), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        me = {"client-certificate": "client.crt", "client-key": "client.key"}
        try:
            file = kubeconfig(tmp_path / "config", me, url, **{"certificate-authority": "server.crt"})
            async with await connect(file, None) as cluster:
                assert await cluster.get("Pod", "default", "a") is not None
            file = kubeconfig(tmp_path / "config", me, url, **{"certificate-authority": "stranger.crt"})
            began = asyncio.get_running_loop().time()
            with pytest.raises(Refused, match="certificate verify failed"):
                await connect(file, None)
            assert asyncio.get_running_loop().time() - began < 3  # no use in trying again
            file = kubeconfig(tmp_path / "config", me, url, **{"insecure-skip-tls-verify": True})
            async with await connect(file, None) as cluster:
                assert await cluster.get("Pod", "default", "a") is not None
        finally:
            await runner.cleanup()

    play(story)


def test_a_proxy_of_the_environment_is_for_others_than_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        monkeypatch.setenv("http_proxy", "http://proxy:3128")
        monkeypatch.setenv("no_proxy", "near.example")
        assert (await load(kubeconfig(tmp_path / "a"), None)).proxy is None
        assert (await load(kubeconfig(tmp_path / "b", {}, "http://near.example"), None)).proxy is None
        assert (await load(kubeconfig(tmp_path / "c", {}, "http://far.example"), None)).proxy == "http://proxy:3128"
        own = kubeconfig(tmp_path / "d", {}, "http://far.example", **{"proxy-url": "http://own:1"})
        assert (await load(own, None)).proxy == "http://own:1"

    play(story)


def test_a_certificate_of_a_plug_in_is_another_one_after_a_401(tmp_path: Path) -> None:
    """Reads and writes go over new connections: those that are kept belong to the certificate of their handshake."""

    async def story() -> None:
        plug_in = PlugIn(tmp_path)
        pairs = {}
        for name in ("server", "one", "two"):
            pairs[name] = [part.decode() for part in certificate(name)]
            (tmp_path / f"{name}.crt").write_text(pairs[name][0])
            (tmp_path / f"{name}.key").write_text(pairs[name][1])

        def gives(name: str) -> None:
            plug_in.answers({"clientCertificateData": pairs[name][0], "clientKeyData": pairs[name][1]})

        server, wanted = ApiServer(), "one"
        seen: list[tuple[str, str]] = []

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            assert request.transport is not None
            peer = request.transport.get_extra_info("peercert")
            seen.append((request.method, dict(part[0] for part in peer["subject"])["commonName"]))
            if seen[-1][1] != wanted:
                return web.json_response({"kind": "Status", "code": 401, "reason": "Unauthorized"}, status=401)
            return await server.handle(request)

        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=pairs["one"][0] + pairs["two"][0])
        tls.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
        tls.verify_mode = ssl.CERT_REQUIRED
        runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        authority = base64.b64encode(pairs["server"][0].encode()).decode()
        file = plug_in.kubeconfig(cluster={"server": url, "certificate-authority-data": authority})
        gives("one")
        try:
            async with await connect(file, None) as cluster:
                await cluster.execute(Create(pod("a")))
                assert await cluster.get("Pod", "default", "a") is not None
                wanted = "two"
                gives("two")
                assert await cluster.get("Pod", "default", "a") is not None
                await cluster.execute(Create(pod("b")))
                wanted = "one"
                gives("one")
                await cluster.execute(Create(pod("c")))
                assert await cluster.get("Pod", "default", "c") is not None
        finally:
            await runner.cleanup()
        assert len(plug_in.asked) == 3
        changes = seen[seen.index(("POST", "one")) :]
        assert changes == [
            ("POST", "one"),
            ("GET", "one"),
            ("GET", "one"),
            ("GET", "two"),
            ("POST", "two"),
            ("POST", "two"),
            ("POST", "one"),
            ("GET", "one"),
        ]

    play(story)


def test_inline_certificates_and_the_name_in_that_of_the_server(tmp_path: Path) -> None:
    async def story() -> None:
        public, private = certificate("client")
        (tmp_path / "client.crt").write_bytes(public)
        for name, text in zip(("server.crt", "server.key"), certificate("server", "api.example"), strict=True):
            (tmp_path / name).write_bytes(text)
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tmp_path / "client.crt"))
        tls.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
        tls.verify_mode = ssl.CERT_REQUIRED
        server = ApiServer()
        runner = web.ServerRunner(web.Server(server.handle), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        text = {
            "client-certificate-data": base64.b64encode(public).decode(),
            "client-key-data": base64.b64encode(private).decode(),
        }
        known = {"certificate-authority-data": base64.b64encode((tmp_path / "server.crt").read_bytes()).decode()}
        try:
            file = kubeconfig(tmp_path / "config", text, url, **known, **{"tls-server-name": "api.example"})
            async with await connect(file, None) as cluster:
                await cluster.execute(Create(pod("a")))
                assert await cluster.get("Pod", "default", "a") is not None
            with pytest.raises(Refused, match=r"certificate is not valid for '127\.0\.0\.1'"):
                await connect(kubeconfig(tmp_path / "config", text, url, **known), None)
        finally:
            await runner.cleanup()

    play(story)


def test_keys_that_cannot_be_used_are_one_line_and_never_a_question(tmp_path: Path) -> None:
    async def story() -> None:
        public, private = certificate("client")
        key = serialization.load_pem_private_key(private, None)
        (tmp_path / "client.crt").write_bytes(public)
        (tmp_path / "other.key").write_bytes(certificate("other")[1])
        (tmp_path / "locked.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(b"s3cr3t"),
            )
        )
        (tmp_path / "empty.crt").write_text("")
        for name in ("other.key", "locked.key"):
            me = {"client-certificate": "client.crt", "client-key": name}
            with pytest.raises(NoCredentials, match=r"users\.me\.client-certificate: the client certificate cannot be"):
                await load(kubeconfig(tmp_path / "config", me, "https://127.0.0.1:1"), None)
        file = kubeconfig(tmp_path / "c", {}, "https://127.0.0.1:1", **{"certificate-authority": "empty.crt"})
        with pytest.raises(NoCredentials, match=r"certificate-authority: the cluster's .* cannot be read: it is empty"):
            await load(file, None)

    play(story)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_password_of_a_proxy_reaches_it_and_no_message(
    tmp_path: Path, scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        heads: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            writer.close()

        proxy = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://me:s3%63r3t@127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        file = kubeconfig(tmp_path / "config", {}, f"{scheme}://far.example", **{"proxy-url": url})
        with pytest.raises(Refused) as caught:
            await connect(file, None, bounds=QUICK)
        proxy.close()
        assert b"\r\nProxy-Authorization: Basic bWU6czNjcjN0\r\n" in heads[0]
        for secret in ("s3cr3t", "s3%63r3t", "bWU6czNjcjN0"):
            assert secret not in str(caught.value)
            assert secret not in caplog.text

    play(story)


def test_the_proxy_of_the_environment_may_lack_its_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        monkeypatch.setenv("http_proxy", "proxy:3128")
        file = kubeconfig(tmp_path / "config", {}, "http://far.example")
        assert (await load(file, None)).proxy == "http://proxy:3128"
        monkeypatch.setenv("http_proxy", "socks5://proxy:1")
        with pytest.raises(NoCredentials, match=r"^\$http_proxy: not an http\(s\) proxy"):
            await load(file, None)

    play(story)


def test_what_connects_imports_nothing_of_simulations_and_pages(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "config", {"token": "abc"})
    program = (
        "import asyncio, sys, enbloc.cli.run, enbloc.runtime.service\n"
        "from enbloc.cluster.kube.credentials import load\n"
        f"asyncio.run(load({file!r}, None))\n"
        "print(sorted({'enbloc.sim.simulation', 'enbloc.web', 'enbloc.up'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
