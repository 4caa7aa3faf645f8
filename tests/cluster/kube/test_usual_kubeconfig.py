"""Kubeconfigs of the usual kind are read as the library reads them, without importing it."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from enbloc.cluster.kube import credentials
from enbloc.cluster.kube.usual_kubeconfig import of_pod, read


def written(path: Path, user: dict[str, Any], **cluster: Any) -> str:
    config = {
        "current-context": "here",
        "clusters": [{"name": "one", "cluster": {"server": "https://127.0.0.1:1", **cluster}}],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


@pytest.mark.parametrize(
    "user, cluster",
    [
        ({}, {}),
        ({"token": "abc"}, {}),
        ({"tokenFile": "token"}, {"tls-server-name": "api.example"}),
        ({"token": "abc"}, {"insecure-skip-tls-verify": True}),
        ({}, {"server": "http://127.0.0.1:1/prefix"}),
    ],
)
def test_it_says_what_the_library_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: dict[str, Any], cluster: dict[str, Any]
) -> None:
    (tmp_path / "token").write_text("of-a-file")
    file = written(tmp_path / "config", user, **cluster)

    async def known() -> tuple[Any, ...]:
        found = await credentials.load(file, None)
        tls = None if found.tls is None else (found.tls.verify_mode, found.tls.check_hostname)
        return type(found).__name__, (found.base_url, found.server_name, found.proxy, await found.authorization(), tls)

    name, ours = asyncio.run(known())
    assert name == "UsualCredentials"
    monkeypatch.setattr(credentials, "read_usual", lambda *given: None)
    name, theirs = asyncio.run(known())
    assert name == "KubeconfigCredentials"
    assert ours == theirs


@pytest.mark.parametrize(
    "user, cluster",
    [
        ({"exec": {"command": "x"}}, {}),
        ({"username": "a", "password": "b"}, {}),
        ({"token": "abc", "tokenFile": "token"}, {}),
        ({"token": 7}, {}),
        ({"client-certificate": "token"}, {}),
        ({"client-certificate-data": "%%", "client-key-data": "%%"}, {}),
        ({"tokenFile": "missing"}, {}),
        ({}, {"proxy-url": "http://proxy:1"}),
        ({}, {"certificate-authority": "missing.crt"}),
        ({}, {"certificate-authority-data": base64.b64encode("ü".encode()).decode()}),
        ({}, {"server": "ftp://x"}),
    ],
)
def test_what_is_unusual_or_wrong_is_left_to_the_library(
    tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any]
) -> None:
    (tmp_path / "token").write_text("t")
    assert read(written(tmp_path / "config", user, **cluster), None) is None
    assert read(written(tmp_path / "config", {}), "another") is None


@pytest.mark.parametrize("text", ["", "[]", "a: [", "contexts: 7\ncurrent-context: x", "current-context: [x]", "\0"])
def test_a_file_that_is_none_is_left_to_the_library(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    assert read(str(tmp_path / "config"), None) is None
    assert read(str(tmp_path), None) is None


def test_a_token_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    async def main() -> None:
        file = written(tmp_path / "config", {"token": "first"})
        found = await credentials.load(file, None)
        written(tmp_path / "config", {"token": "second"})
        assert await found.authorization() == "Bearer first"
        assert await found.authorization(refused=True) == "Bearer second"

    asyncio.run(main())


def test_a_pods_own_account(tmp_path: Path) -> None:
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("t\n")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert of_pod(environ, str(token), str(ca)) is None  # its authority is missing
    ca.write_text("some")
    found = of_pod(environ, str(token), str(ca))
    assert found is not None
    assert (found.server, found.token_file) == ("https://[fd00::1]:443", str(token))
    assert of_pod({}, str(token), str(ca)) is None


def test_a_process_with_a_usual_kubeconfig_does_not_import_the_library(tmp_path: Path) -> None:
    file = written(tmp_path / "config", {"token": "abc"})
    program = (
        "import asyncio, sys, enbloc.cli.run, enbloc.runtime.service\n"
        "from enbloc.cluster.kube.credentials import load\n"
        f"asyncio.run(load({file!r}, None))\n"
        "print(sorted({'kubernetes_asyncio', 'enbloc.sim.simulation', 'enbloc.web', 'enbloc.up'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
