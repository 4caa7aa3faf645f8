from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import os
import ssl
import stat
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

from cluster.kube.server import ApiServer, play, pod
from enbloc.api.writes import Refused
from enbloc.cluster.kube import connect
from enbloc.cluster.kube.credentials import NoCredentials, PodCredentials, load


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
        ("current-context: x\ncontexts: []\nclusters: []", None, "Expected object with name x"),
        ("current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c}]", None, "cluster"),
        (
            "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {a: b}}]",
            None,
            "not an http(s) address",
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


def plug_in(path: Path, **status: str) -> dict[str, Any]:
    """An exec plug-in whose token counts how often it ran."""
    said = json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})
    path.write_text(
        f"#!{sys.executable}\nimport json, pathlib\nruns = pathlib.Path({str(path)!r} + '.runs')\n"
        "runs.write_text(runs.read_text() + '.' if runs.exists() else '.')\n"
        f"said = json.loads({said!r})\nsaid['status']['token'] = f'token-{{len(runs.read_text())}}'\n"
        "print(json.dumps(said))\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path)}}


@pytest.mark.filterwarnings("ignore:.*utcnow:DeprecationWarning")  # the library's
@pytest.mark.parametrize("hours, runs", [(1, 1), (-1, 2), (None, 1)])
def test_a_plug_in_runs_again_when_its_answer_expires_or_is_refused(
    tmp_path: Path, hours: int | None, runs: int
) -> None:
    async def story() -> None:
        status = {}
        if hours is not None:
            expires = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=hours)
            status["expirationTimestamp"] = expires.strftime("%Y-%m-%dT%H:%M:%SZ")
        credentials = await load(kubeconfig(tmp_path / "config", plug_in(tmp_path / "plug-in", **status)), None)
        assert await bearer(credentials) == f"Bearer token-{runs}"
        assert await bearer(credentials, refused=True) == f"Bearer token-{runs + 1}"

    play(story)


def test_a_plug_in_that_fails_is_one_line(tmp_path: Path) -> None:
    async def story() -> None:
        user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "false"}}
        with pytest.raises(NoCredentials, match="exec: process returned 1"):
            await load(kubeconfig(tmp_path / "config", user), None)

    play(story)


def test_a_plug_in_that_never_answers_is_one_line_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        monkeypatch.setattr("enbloc.cluster.kube.credentials.PLUG_IN_S", 0.1)
        exec_ = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["0.6"]}
        with pytest.raises(NoCredentials, match="took longer"):
            await load(kubeconfig(tmp_path / "config", {"exec": exec_}), None)
        await asyncio.sleep(0.7)  # the library does not end it

    play(story)


def test_a_pod_has_its_own_and_reads_a_new_token(tmp_path: Path) -> None:
    async def story() -> None:
        token, authority = tmp_path / "token", tmp_path / "ca.crt"
        environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
        with pytest.raises(NoCredentials, match="in this pod"):
            PodCredentials(environ, str(token), str(authority))
        token.write_text("one\n")
        authority.write_bytes(certificate("ca")[0])
        credentials = PodCredentials(environ, str(token), str(authority))
        assert credentials.base_url == "https://10.0.0.1:443"
        assert await bearer(credentials) == "Bearer one"
        token.write_text("two")
        assert await bearer(credentials) == "Bearer one"  # read at most once a minute
        credentials._loader.token_expires_at = datetime.datetime(2000, 1, 1)
        assert await bearer(credentials) == "Bearer two"
        token.write_text("three")
        assert await bearer(credentials, refused=True) == "Bearer three"

    play(story)


def certificate(name: str) -> tuple[bytes, bytes]:
    """A certificate that signed itself, and its key."""
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
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
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


def test_the_library_is_imported_only_where_a_cluster_is_used() -> None:
    code = "import sys, enbloc.cluster.kube; print('kubernetes_asyncio' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert said.stdout.strip() == "False"
