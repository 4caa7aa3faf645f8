"""`enbloc snapshot`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TextIO

import click

from enbloc.api.meta import Obj, Ref
from enbloc.cli.errors import Refusal
from enbloc.cli.fetch import NAMESPACE, cluster_options, fetch_if_allowed, fetch_lists
from enbloc.gangs.record_digests import read_keys
from enbloc.listing import plural
from enbloc.runtime.record_keys import SECRET
from enbloc.sim.snapshot import KINDS, NEEDED, as_json, has_records, snapshot


@click.command("snapshot")
@cluster_options
@click.option("-o", "--output", metavar="FILE", help="Write to this file (JSON if it ends in .json) [YAML on stdout].")
def command(kubeconfig: str | None, context: str | None, output: str | None) -> None:
    """Save a cluster's objects for `enbloc sim` and `enbloc whatif`.

    Only reads. Secrets and ConfigMaps are not part of it; commands, arguments and values of environment variables are
    left out. The key of the scheduler's own records is read where that is allowed: records that do not verify are left
    out. In a simulation of the file virtual time begins when it was taken, and bound pods run on.

    \b
    Example:
      enbloc snapshot -o now.yaml
      enbloc sim now.yaml job.yaml --until 2h
    """
    documents = take(kubeconfig, context)
    if output is None:
        _write(documents, sys.stdout, is_json=False)
        return
    try:
        with Path(output).open("w", encoding="utf-8") as file:
            _write(documents, file, is_json=output.endswith(".json"))
    except OSError as why:
        raise Refusal([f"{output}: cannot be written: {why.strerror or why}"]) from None
    verdict = f"; the scheduler's records were {documents[0]['records']}" if any(map(has_records, documents)) else ""
    click.echo(f"{plural(len(documents) - 1, 'object')} written to {output}{verdict}", err=True)


def take(kubeconfig: str | None, context: str | None) -> list[Obj]:
    """The documents of a snapshot of the cluster as it is now. Kinds that may not be listed are named on stderr."""
    lists = fetch_lists(kubeconfig, context, KINDS, NEEDED)
    forbidden = [kind for kind in KINDS if kind not in lists]
    if forbidden:
        click.echo(f"enbloc: note: not allowed to list {', '.join(forbidden)}: left out", err=True)
    secret = Ref("Secret", NAMESPACE, SECRET)
    kept = fetch_if_allowed(kubeconfig, context, secret)
    keyring = read_keys((kept or {}).get("data") or {})
    return snapshot(lists, time.time_ns() // 10**9 * 10**9, keyring)


def _write(documents: list[Obj], out: TextIO, *, is_json: bool) -> None:
    if is_json:
        out.writelines(as_json(documents))
        return
    from enbloc.cli.yaml_output import print_yaml

    print_yaml(documents, out, explicit_start=True)
