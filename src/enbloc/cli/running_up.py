"""Finds the `enbloc up` that runs on this machine, for commands that were given no kubeconfig."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import click

PATIENCE_S = 0.3


class RunningUp(NamedTuple):
    kubeconfig: str
    address: str


def running_kubeconfig() -> str | None:
    """The kubeconfig of the newest `enbloc up` that answers; `None` if a kubeconfig is configured or none answers.
    Where several run, stderr says which is read."""
    if os.environ.get("KUBECONFIG") or (Path.home() / ".kube" / "config").exists():
        return None
    found = running_ups()
    if len(found) > 1:
        others = ", ".join(one.address for one in found[1:])
        text = f"this is the `enbloc up` at {found[0].address}, the newest; --kubeconfig chooses another ({others})"
        click.echo(f"enbloc: note: {text}", err=True)
    return found[0].kubeconfig if found else None


def running_ups() -> list[RunningUp]:
    """Those that answer, the newest first."""
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    files = sorted((home / "enbloc").glob("up-*/kubeconfig"), key=_age, reverse=True)
    return [RunningUp(str(file), address) for file in files if (address := _answers(file))]


def _age(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _answers(file: Path) -> str:
    """The address of the server of a kubeconfig; empty: it does not answer."""
    import yaml

    try:
        data = yaml.safe_load(file.read_text())
        address = data["clusters"][0]["cluster"]["server"]
        server = urlsplit(address)
        with socket.create_connection((server.hostname or "", server.port or 0), PATIENCE_S):
            return str(address)
    except (OSError, ValueError, KeyError, TypeError, IndexError, yaml.YAMLError):
        return ""
