"""`enbloc install`: the objects that a cluster needs, as YAML."""

from __future__ import annotations

import ipaddress
import re
import sys
from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import click

from enbloc.api.meta import Obj
from enbloc.cli.compat import compat_option
from enbloc.cli.errors import Refusal, read_config
from enbloc.cli.fetch import cluster_options, fetch_lists
from enbloc.cli.yaml_output import print_yaml
from enbloc.config import render, scheduler_names
from enbloc.units import is_dns_label

if TYPE_CHECKING:
    from enbloc.install import Settings

_MAX_REPLICAS = 100
_DEFINITION = "CustomResourceDefinition.apiextensions.k8s.io"
_DIGEST = re.compile(r"^[^@]+@sha256:[0-9a-f]{64}$")


@click.command("install")
@click.option("--namespace", default="enbloc-system", show_default=True, metavar="NAME", help="Where it runs.")
@click.option("--image", metavar="IMAGE", help="The image to run.  [default: enbloc:VERSION]")
@click.option(
    "--api-server-cidr",
    "api_servers",
    multiple=True,
    metavar="CIDR",
    help="Only these addresses may call the webhook; may be repeated.  [default: any]",
)
@click.option("--replicas", type=int, default=2, show_default=True, help="Pods per component; one of them is leader.")
@compat_option
@click.option(
    "--merge/--no-merge",
    default=None,
    help="Read the cluster's CustomResourceDefinitions, which are then merged, never narrowed; or contact no cluster."
    "  [default: read them if there is a kubeconfig]",
)
@cluster_options
@click.option("--config", "config_file", metavar="FILE", help="The config file to install; without it, the defaults.")
@click.option("--dashboard", is_flag=True, help="Install the dashboard too.")
@click.option(
    "--chart", metavar="DIRECTORY", help="Write the same as a Helm chart instead, with the options as its values."
)
def command(
    namespace: str,
    image: str | None,
    api_servers: tuple[str, ...],
    replicas: int,
    config_file: str | None,
    compat: str | None,
    merge: bool | None,
    kubeconfig: str | None,
    context: str | None,
    dashboard: bool,
    chart: str | None,
) -> None:
    """Print all objects that a cluster needs to run enbloc, for kubectl to apply.

    Of the cluster in the kubeconfig it reads the CustomResourceDefinitions, and changes nothing: where Volcano,
    Koordinator, scheduler-plugins or KAI have defined their kinds, those definitions are merged or left as they are.
    stderr says which. `--no-merge` contacts no cluster.

    CustomResourceDefinitions, roles with exactly the rights of each component, deployments, services, webhooks. The
    webhook creates and renews its own certificates. The same arguments print the same text for the same definitions,
    and applying it a second time changes nothing.

    \b
    Example:
      enbloc install --image registry.example/enbloc@sha256:... | kubectl apply --server-side --force-conflicts -f -
      enbloc install --no-merge > installed.yaml    # to keep in a repository
      enbloc install | kubectl delete --ignore-not-found -f -   # deletes everything, all jobs and queues too
    """
    problems = []
    if not is_dns_label(namespace):
        problems.append(f"--namespace: {namespace!r} is not a valid name of a namespace (a-z, 0-9 and '-')")
    if not 1 <= replicas <= _MAX_REPLICAS:
        problems.append(f"--replicas: {replicas} is not between 1 and {_MAX_REPLICAS}")
    if image is not None and (not image or image.split() != [image]):
        problems.append(f"--image: {image!r} is not a valid name of an image")
    elif image is not None and "@" in image and not _DIGEST.search(image):
        problems.append(f"--image: {image!r} has no valid digest: @sha256: and 64 hexadecimal digits")
    problems += [f"--api-server-cidr: {cidr!r} is not a network like 10.0.0.5/32" for cidr in _invalid(api_servers)]
    if problems:
        raise Refusal(problems)
    from enbloc.install import Settings
    from enbloc.version import __version__

    config = read_config(config_file, compat)
    names = tuple(sorted(scheduler_names(config, alone=False)))
    owner_kinds = tuple(sorted({entry.kind for entry in config.group_by_owner.active}))
    image = image or f"enbloc:{__version__}"
    if chart is not None:
        _write_chart(chart, render(config))
        return
    existing = [] if merge is False else _existing(kubeconfig, context, needed=bool(merge))
    settings = Settings(render(config), namespace, image, replicas, names, owner_kinds, api_servers, dashboard)
    _print(settings, existing)


def _existing(kubeconfig: str | None, context: str | None, *, needed: bool) -> list[Obj]:
    """The cluster's definitions. If they are not `needed` and no cluster answers, none: the output could not be applied
    to that cluster either."""
    try:
        return fetch_lists(kubeconfig, context, [_DEFINITION], local=False)[_DEFINITION]
    except Refusal as why:
        if needed or kubeconfig is not None or context is not None:
            raise
        click.echo(
            f"enbloc: definitions of other projects are not merged: {why.problems[0]}\n"
            "enbloc: where Volcano, Koordinator, scheduler-plugins or KAI are installed, use --merge",
            err=True,
        )
        return []


def _write_chart(directory: str, config: str) -> None:
    from enbloc.install.chart import chart

    def dump(objects: Iterable[Obj]) -> str:
        out = StringIO()
        print_yaml(objects, out, explicit_start=True, width=120)
        return out.getvalue()

    try:
        for name, text in chart(dump, config).items():
            path = Path(directory) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as why:
        raise Refusal([f"--chart: {directory}: {why.strerror}"]) from None


def _invalid(cidrs: tuple[str, ...]) -> list[str]:
    found = []
    for cidr in cidrs:
        try:
            ipaddress.ip_network(cidr)
        except ValueError:
            found.append(cidr)
    return found


def _print(settings: Settings, existing: list[Obj]) -> None:
    from enbloc.install import manifests, merged_definitions
    from enbloc.version import __version__

    for one in merged_definitions(existing):
        click.echo(f"enbloc: {one.text}", err=True)
    sys.stdout.write(f"# Generated by `enbloc install` {__version__}. Apply it with: kubectl apply -f -\n")
    print_yaml(manifests(settings, existing), explicit_start=True, width=120)
