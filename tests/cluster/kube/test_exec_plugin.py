"""Plug-ins that really run: scripts that note how they were asked and answer what the test wrote for them."""

from __future__ import annotations

import asyncio
import base64
import datetime
import json
import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.kube.server import play
from enbloc.cluster.kube import credentials as credentials_module
from enbloc.cluster.kube.credentials import Credentials, NoCredentials, load

V1 = "client.authentication.k8s.io/v1"
BETA = "client.authentication.k8s.io/v1beta1"


class PlugIn:
    """A program in a folder. `RUN` in its answer is how often it has run."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "plug-in"
        self.path.write_text(
            f"#!{sys.executable}\n"
            "import json, os, pathlib, sys\n"
            "here = pathlib.Path(__file__).parent\n"
            "asked = {'args': sys.argv[1:], 'info': json.loads(os.environ['KUBERNETES_EXEC_INFO']),\n"
            "         'mark': os.environ.get('MARK'), 'stdin': os.readlink('/proc/self/fd/0')}\n"
            "with open(here / 'asked', 'a') as out: out.write(json.dumps(asked) + '\\n')\n"
            "runs = len((here / 'asked').read_text().splitlines())\n"
            "sys.stdout.write((here / 'answer').read_text().replace('RUN', str(runs)))\n"
            "sys.exit(int((here / 'code').read_text()))\n"
        )
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)
        self._folder = folder
        (folder / "code").write_text("0")
        self.answers({"token": "token-RUN"})

    def answers(self, status: dict[str, Any] | None, version: str = V1, kind: str = "ExecCredential") -> None:
        self.says(json.dumps({"apiVersion": version, "kind": kind, **({"status": status} if status else {})}))

    def says(self, text: str, code: int = 0) -> None:
        (self._folder / "answer").write_text(text)
        (self._folder / "code").write_text(str(code))

    @property
    def asked(self) -> list[dict[str, Any]]:
        file = self._folder / "asked"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def kubeconfig(
        self, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **exec_: Any
    ) -> str:
        """A kubeconfig that names it, in the same folder."""
        plugin = {"apiVersion": V1, "command": "./plug-in", "interactiveMode": "Never", **exec_}
        config = {
            "current-context": "here",
            "clusters": [{"name": "one", "cluster": {"server": "http://127.0.0.1:1", **(cluster or {})}}],
            "users": [{"name": "me", "user": {"exec": plugin, **(user or {})}}],
            "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me"}}],
        }
        file = self._folder / "config"
        file.write_text(yaml.safe_dump(config))
        return str(file)


@pytest.fixture
def plug_in(tmp_path: Path) -> PlugIn:
    return PlugIn(tmp_path)


def expires_in(**how: int) -> str:
    at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(**how)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def bearer_of(file: str) -> str | None:
    async def main() -> str | None:
        return await (await load(file, None)).authorization()

    return asyncio.run(main())


def why_not(file: str) -> str:
    with pytest.raises(NoCredentials) as caught:
        asyncio.run(load(file, None))
    said = str(caught.value)
    assert said.startswith(f"{file}: users.me.exec")
    assert "\n" not in said
    assert "s3cr3t" not in said
    return said


# -- how it is asked


def test_it_gets_its_arguments_its_environment_and_how_it_is_asked(plug_in: PlugIn) -> None:
    file = plug_in.kubeconfig(args=["get-token", "--x"], env=[{"name": "MARK", "value": "7"}])
    assert bearer_of(file) == "Bearer token-1"
    (asked,) = plug_in.asked
    assert asked["info"] == {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False}}
    assert (asked["args"], asked["mark"], asked["stdin"]) == (["get-token", "--x"], "7", "/dev/null")


def test_it_is_told_of_the_cluster_if_it_wants_that(plug_in: PlugIn, tmp_path: Path) -> None:
    plug_in.answers({"token": "t"}, BETA)
    (tmp_path / "ca.crt").write_text("some authority")
    cluster = {
        "server": "http://127.0.0.1:1/prefix",
        "tls-server-name": "api.example",
        "certificate-authority": "ca.crt",
        "proxy-url": "http://proxy:1",
        "extensions": [
            {"name": "other", "extension": 1},
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}},
        ],
    }
    bearer_of(plug_in.kubeconfig(None, cluster, provideClusterInfo=True, apiVersion=BETA))
    assert plug_in.asked[0]["info"] == {
        "apiVersion": BETA,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "http://127.0.0.1:1/prefix",
                "tls-server-name": "api.example",
                "certificate-authority-data": base64.b64encode(b"some authority").decode(),
                "proxy-url": "http://proxy:1",
                "config": {"audience": "a"},
            },
        },
    }


@pytest.mark.parametrize(
    "mode, is_terminal, interactive",
    [(None, True, True), ("IfAvailable", True, True), ("IfAvailable", False, False), ("Never", True, False)],
)
def test_it_may_ask_the_user_if_there_is_one_and_it_wants_to(
    plug_in: PlugIn, monkeypatch: pytest.MonkeyPatch, mode: str | None, is_terminal: bool, interactive: bool
) -> None:
    monkeypatch.setattr(os, "isatty", lambda _: is_terminal)
    assert bearer_of(plug_in.kubeconfig(interactiveMode=mode)) == "Bearer token-1"
    (asked,) = plug_in.asked
    assert asked["info"]["spec"]["interactive"] is interactive
    assert asked["stdin"] == (os.readlink("/proc/self/fd/0") if interactive else "/dev/null")


def test_one_that_must_ask_is_not_run_without_a_terminal(plug_in: PlugIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "isatty", lambda _: False)
    assert "exec.interactiveMode: is Always" in why_not(plug_in.kubeconfig(interactiveMode="Always"))
    assert plug_in.asked == []


def test_a_token_of_the_user_goes_before_it(plug_in: PlugIn) -> None:
    assert bearer_of(plug_in.kubeconfig({"token": "own"})) == "Bearer own"
    assert bearer_of(plug_in.kubeconfig({"username": "a", "password": "b"})) == "Basic YTpi"
    assert plug_in.asked == []


# -- when it is asked again


@pytest.mark.parametrize("expires, runs", [({"hours": 1}, 1), ({"hours": -1}, 2), ({"seconds": 30}, 2), (None, 1)])
def test_it_runs_again_when_its_answer_expires_or_is_refused(
    plug_in: PlugIn, expires: dict[str, int] | None, runs: int
) -> None:
    async def story() -> None:
        status = {"token": "token-RUN"}
        if expires is not None:
            status["expirationTimestamp"] = expires_in(**expires)
        plug_in.answers(status)
        credentials = await load(plug_in.kubeconfig(), None)
        assert await credentials.authorization() == f"Bearer token-{runs}"
        assert await credentials.authorization(refused=True) == f"Bearer token-{runs + 1}"

    play(story)


def test_expiry_is_read_as_plug_ins_write_it(plug_in: PlugIn) -> None:
    for text in ("2999-01-01T00:00:00Z", "2999-01-01T00:00:00.123456789Z", "2999-01-01T02:00:00+02:00"):
        plug_in.answers({"token": "t", "expirationTimestamp": text})
        assert bearer_of(plug_in.kubeconfig()) == "Bearer t"
    plug_in.answers({"token": "s3cr3t", "expirationTimestamp": "tomorrow"})
    assert "is not an ExecCredential" in why_not(plug_in.kubeconfig())


def test_one_that_fails_later_leaves_the_kubeconfigs_fault_and_works_again(plug_in: PlugIn) -> None:
    async def story() -> None:
        credentials: Credentials = await load(plug_in.kubeconfig(), None)
        plug_in.says("s3cr3t", code=3)
        with pytest.raises(NoCredentials, match=r"users\.me\.exec: process returned 3: /"):
            await credentials.authorization(refused=True)
        plug_in.answers({"token": "token-RUN"})
        assert await credentials.authorization() == "Bearer token-3"

    play(story)


# -- what it must not do


@pytest.mark.parametrize(
    "status, version, kind, message",
    [
        (None, V1, "ExecCredential", "gave no token and no certificate"),
        ({"token": ""}, V1, "ExecCredential", "gave no token and no certificate"),
        ({"token": 7}, V1, "ExecCredential", "is not an ExecCredential"),
        ({"token": "s3cr3t"}, BETA, "ExecCredential", f"apiVersion: is {V1}, and the plug-in answered with"),
        ({"token": "s3cr3t"}, V1, "Secret", "the plug-in answered with 'Secret'"),
        ({"token": "s3cr3t\r\nX: y"}, V1, "ExecCredential", "the token has characters that no header may have"),
        ({"clientCertificateData": "s3cr3t"}, V1, "ExecCredential", "a certificate without a key"),
        ({"clientKeyData": "s3cr3t"}, V1, "ExecCredential", "or a key alone"),
    ],
)
def test_an_answer_that_is_none_is_one_line_without_it(
    plug_in: PlugIn, status: dict[str, Any] | None, version: str, kind: str, message: str
) -> None:
    plug_in.answers(status, version, kind)
    assert message in why_not(plug_in.kubeconfig())


@pytest.mark.parametrize(
    "text, code, message",
    [
        ("s3cr3t", 0, "is not an ExecCredential"),
        ("s3cr3t", 1, "exec: process returned 1: /"),
        ("[]", 0, "is not an ExecCredential"),
        ("s3cr3t" * 200_000, 0, "said more than 1048576 bytes"),
    ],
    ids=["text", "failure", "list", "much"],
)
def test_what_it_says_otherwise_is_in_no_message(plug_in: PlugIn, text: str, code: int, message: str) -> None:
    plug_in.says(text, code)
    assert message in why_not(plug_in.kubeconfig())


def test_one_that_is_not_there_is_an_error_with_its_hint(plug_in: PlugIn) -> None:
    hint = "\nInstall it:\n\n   get-it now\n"
    said = why_not(plug_in.kubeconfig(command="no-such-plug-in", installHint=hint))
    assert said.endswith("users.me.exec: there is no program no-such-plug-in: Install it: get-it now")
    plug_in.path.chmod(0o600)
    assert why_not(plug_in.kubeconfig()).endswith("plug-in")
    plug_in.path.write_text("no program")
    plug_in.path.chmod(0o700)
    assert "cannot be run: " in why_not(plug_in.kubeconfig())


def test_one_that_never_answers_is_ended_with_what_it_started(
    plug_in: PlugIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials_module, "PLUG_IN_S", 0.5)
    plug_in.path.write_text(f"#!/bin/sh\nsleep 60 & echo $! > {tmp_path}/child\nwait\n")
    began_s = time.monotonic()
    assert "the plug-in took longer than 0.5 s" in why_not(plug_in.kubeconfig())
    assert time.monotonic() - began_s < 10
    child = int((tmp_path / "child").read_text())
    until_s = time.monotonic() + 5
    while _runs(child) and time.monotonic() < until_s:
        time.sleep(0.01)
    assert not _runs(child)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
