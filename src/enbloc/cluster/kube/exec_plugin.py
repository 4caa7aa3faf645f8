"""Runs the program that a kubeconfig names for credentials, by the protocol of `client.authentication.k8s.io`.

It is asked through `KUBERNETES_EXEC_INFO` and answers on stdout. What it prints to stderr is for the user and goes
there as it is; nothing that it prints gets into a message. When to run it again is decided in `credentials`.
"""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from enbloc.cluster.kube.kubeconfig import NoCredentials, Plugin, Server

MOST_BYTES: Final = 2**20
"""Of an answer. A chain of certificates takes some thousands."""
_HINT_CHARACTERS: Final = 600


class Given(msgspec.Struct, rename="camel"):
    """What a plug-in gave: a token, a certificate with its key, or all of them."""

    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """`None`: it is good until it is refused."""


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: Given | None = None


_decoder = msgspec.json.Decoder(_Answer)


async def run(plugin: Plugin, where: str, server: Server, within_s: float, interactive_within_s: float) -> Given:
    """Runs it once; the second bound is for one that may ask the user. `where`: the file and the key that name it.
    Raises `NoCredentials`."""
    command = shutil.which(plugin.command)
    if command is None:
        hint = " ".join((plugin.install_hint or "").split())[:_HINT_CHARACTERS]
        raise NoCredentials(f"{where}: there is no program {plugin.command}{f': {hint}' if hint else ''}")
    is_interactive = _may_ask(plugin, where)
    environ = os.environ | {each.name: each.value for each in plugin.env or ()}
    environ["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(_asked(plugin, server, is_interactive)).decode()
    bound_s = interactive_within_s if is_interactive else within_s
    try:
        async with asyncio.timeout(bound_s):
            code, said = await _output([command, *(plugin.args or ())], environ, where, is_interactive)
    except TimeoutError:
        raise NoCredentials(f"{where}: the plug-in took longer than {bound_s:g} s") from None
    except (OSError, ValueError) as why:
        raise NoCredentials(f"{where}: {plugin.command} cannot be run: {why}") from None
    if code:
        raise NoCredentials(f"{where}: process returned {code}: {plugin.command}")
    return _given(said, plugin, where)


def _may_ask(plugin: Plugin, where: str) -> bool:
    """Whether it gets our stdin."""
    if plugin.interactive_mode == "Never":
        return False
    try:
        is_terminal = os.isatty(0)
    except OSError:
        is_terminal = False
    if plugin.interactive_mode == "Always" and not is_terminal:
        raise NoCredentials(f"{where}.interactiveMode: is Always, and stdin is not a terminal")
    return is_terminal


def _asked(plugin: Plugin, server: Server, is_interactive: bool) -> dict[str, Any]:
    spec: dict[str, Any] = {"interactive": is_interactive}
    if plugin.provide_cluster_info:
        authority = server.authority.read() if server.authority is not None else b""
        given = {
            "server": server.address,
            "tls-server-name": server.name,
            "insecure-skip-tls-verify": not server.verifies,
            "certificate-authority-data": base64.b64encode(authority).decode(),
            "proxy-url": server.proxy,
            "disable-compression": server.disable_compression,
            "config": server.extension,
        }
        spec["cluster"] = {key: value for key, value in given.items() if value}
    return {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}


async def _output(command: list[str], environ: dict[str, str], where: str, is_interactive: bool) -> tuple[int, bytes]:
    """Its exit code and what it said. If this is cancelled, it is killed with the programs that it started (those that
    share the terminal are not)."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environ,
        stdin=None if is_interactive else DEVNULL,
        stdout=PIPE,
        start_new_session=not is_interactive,
    )
    assert process.stdout is not None
    said = bytearray()
    try:
        while part := await process.stdout.read(2**16):
            said += part
            if len(said) > MOST_BYTES:
                raise NoCredentials(f"{where}: the plug-in said more than {MOST_BYTES} bytes")
        return await process.wait(), bytes(said)
    except BaseException:
        _kill(process, is_interactive)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 1.0)
        raise


def _kill(process: Process, is_interactive: bool) -> None:
    with suppress(OSError):  # it has ended
        if is_interactive:
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def _given(said: bytes, plugin: Plugin, where: str) -> Given:
    try:
        answer = _decoder.decode(said)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NoCredentials(f"{where}: the plug-in's answer is not an ExecCredential") from None
    if answer.kind != "ExecCredential" or answer.api_version != plugin.api_version:
        raise NoCredentials(
            f"{where}.apiVersion: is {plugin.api_version}, and the plug-in answered with {answer.kind[:80]!r} of "
            f"{answer.api_version[:80]!r}"
        )
    given = answer.status
    if given is None or not (given.token or given.client_certificate_data or given.client_key_data):
        raise NoCredentials(f"{where}: the plug-in gave no token and no certificate")
    if bool(given.client_certificate_data) != bool(given.client_key_data):
        raise NoCredentials(f"{where}: the plug-in gave a certificate without a key, or a key alone")
    return given
