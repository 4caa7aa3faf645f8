"""`enbloc run`: scheduler, controllers, webhook and dashboard on a real cluster."""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from enbloc.cli.compat import compat_option
from enbloc.cli.errors import Refusal, cannot_listen, read_config

if TYPE_CHECKING:
    from enbloc.config import Config
    from enbloc.runtime.service import Component, Options
    from enbloc.web.followed import FollowedCluster
    from enbloc.webhook.clients import Clients

SCHEDULER: Final = "scheduler"
CONTROLLERS: Final = "controllers"
WEBHOOK: Final = "webhook"
DASHBOARD: Final = "dashboard"
_COMPONENTS: Final = (SCHEDULER, CONTROLLERS, WEBHOOK, DASHBOARD)


@click.command("run")
@click.option("--kubeconfig", metavar="FILE", help="Else $KUBECONFIG, ~/.kube/config, or the pod's own account.")
@click.option("--context", metavar="NAME", help="A context of the kubeconfig other than its current one.")
@compat_option
@click.option("--config", "config_file", metavar="FILE", help="See `enbloc config`.")
@click.option(
    "--components",
    default=f"{SCHEDULER},{CONTROLLERS}",
    show_default=True,
    metavar="LIST",
    help=f"The components to run here, of {', '.join(_COMPONENTS)}.",
)
@click.option("--leader-elect", is_flag=True, help="Write only while holding the Lease; other replicas are standby.")
@click.option("--lease-namespace", default="enbloc-system", show_default=True, help="The Lease's namespace.")
@click.option("--lease-name", default="enbloc", show_default=True, help="One per set of components.")
@click.option(
    "--webhook-port", default=8443, show_default=True, type=click.IntRange(0, 65535), help="Where it listens."
)
@click.option(
    "--webhook-client-ca",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Answer reviews only for client certificates of these CAs.",
)
@click.option(
    "--webhook-client-name",
    multiple=True,
    metavar="NAME",
    help="And only with this common or DNS name; may be repeated.",
)
@click.option(
    "--dashboard-token-file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The token that the dashboard asks for, unless it is on loopback [else one is made, and logged].",
)
@click.option("--bind-address", default="127.0.0.1", show_default=True, help="Address of both ports.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="0: any free port.")
@click.option(
    "--record",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Keep a flight recorder there: what was observed and decided, for `enbloc replay-recording`.",
)
@click.option(
    "--record-limit",
    default=256,
    show_default=True,
    metavar="MiB",
    type=click.IntRange(4, 1_000_000),
    help="The size of the recorder's files; older events are dropped.",
)
@click.option("--verbose", "-v", is_flag=True, help="Log more.")
def command(
    kubeconfig: str | None,
    context: str | None,
    config_file: str | None,
    compat: str | None,
    components: str,
    leader_elect: bool,
    lease_namespace: str,
    lease_name: str,
    webhook_port: int,
    webhook_client_ca: Path | None,
    webhook_client_name: tuple[str, ...],
    dashboard_token_file: Path | None,
    bind_address: str,
    port: int,
    record: str | None,
    record_limit: int,
    verbose: bool,
) -> None:
    """Run on a real Kubernetes, until SIGTERM or Ctrl-C.

    Waits as long as it takes for a cluster that does not answer. A replica that loses the Lease exits with code 1, to
    be restarted.

    \b
    Example: enbloc run --kubeconfig ~/.kube/config --components scheduler,controllers
    """
    chosen = _chosen(components)
    if webhook_client_name and webhook_client_ca is None:
        raise Refusal(["--webhook-client-name: needs --webhook-client-ca, which says whose certificates are trusted"])
    config = read_config(config_file, compat)
    _log_to_stderr(verbose)

    from enbloc.cluster.kube import connect
    from enbloc.runtime.service import Options

    options = Options(
        config=config,
        kubeconfig=kubeconfig,
        context=context,
        parts=frozenset(chosen) & {SCHEDULER, CONTROLLERS},
        leader_elect=leader_elect,
        lease_namespace=lease_namespace,
        lease_name=lease_name,
        host=bind_address,
        port=port,
        record=record,
        record_bytes=record_limit * 2**20,
    )
    served: dict[str, Component] = {}
    if WEBHOOK in chosen:
        clients = _clients(webhook_client_ca, webhook_client_name)
        served[WEBHOOK] = _webhook(bind_address, webhook_port, clients, alone=not options.parts)
    followed = _followed(config, bind_address, dashboard_token_file) if DASHBOARD in chosen else None
    if followed is not None:
        served[DASHBOARD] = lambda cluster, config: followed.follow(lambda: connect(kubeconfig, context))
    raise click.exceptions.Exit(_serve(options, served, followed))


def _log_to_stderr(verbose: bool) -> None:
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
    )


def _serve(options: Options, served: Mapping[str, Component], followed: FollowedCluster | None) -> int:
    """Serves until the end; the exit code. `followed`: the cluster that the dashboard shows."""
    from enbloc.api.writes import Refused
    from enbloc.cluster.kube.credentials import NoCredentials
    from enbloc.runtime.service import serve

    try:
        if followed is None:
            return asyncio.run(serve(options, served))
        return asyncio.run(serve(options, served, followed.handlers(), followed.is_listed))
    except NoCredentials as why:
        raise Refusal([str(why)]) from None
    except Refused as why:
        raise Refusal([f"the cluster refuses access: {why}"]) from None
    except OSError as why:
        raise cannot_listen(why, options.host, options.port) from None


def _clients(ca_file: Path | None, names: tuple[str, ...]) -> Clients:
    from enbloc.webhook.clients import Clients

    clients = Clients(ca_file, names)
    try:
        clients.ask_in(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    except OSError as why:
        raise Refusal([f"--webhook-client-ca: {why}"]) from None
    return clients


def _webhook(host: str, port: int, clients: Clients, *, alone: bool) -> Component:
    """Beside a control plane, which has a watch of its own, the webhook fetches other objects from the API."""
    from enbloc.webhook.component import serve_webhook

    return lambda cluster, config: serve_webhook(cluster, config, follow=alone, host=host, port=port, clients=clients)


def _followed(config: Config, host: str, token_file: Path | None) -> FollowedCluster:
    """A file that does not exist means that no token was given: a Secret may be mounted later."""
    from enbloc.web.followed import LEAST_TOKEN, FollowedCluster, is_strong

    token = ""
    try:
        token = token_file.read_text(encoding="utf-8").strip() if token_file is not None else ""
    except FileNotFoundError:
        pass
    except (OSError, UnicodeDecodeError) as why:
        raise Refusal([f"--dashboard-token-file: {token_file}: {why}"]) from None
    if token and not is_strong(token):
        raise Refusal([f"--dashboard-token-file: {token_file}: a token has at least {LEAST_TOKEN} ASCII characters"])
    followed = FollowedCluster(config, host, token)
    if followed.token and not token:
        logging.getLogger(__name__).info("the dashboard's token, until this process ends: %s", followed.token)
    return followed


def _chosen(components: str) -> list[str]:
    chosen = [name.strip() for name in components.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in _COMPONENTS]
    if unknown or not chosen:
        what = f"unknown component {unknown[0]!r}" if unknown else "no component"
        raise Refusal([f"--components: {what} (there are: {', '.join(_COMPONENTS)})"])
    return chosen
