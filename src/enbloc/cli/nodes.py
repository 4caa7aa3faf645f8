"""`enbloc nodes`."""

from __future__ import annotations

import click
import msgspec

from enbloc.cli.fetch import cluster_options, fetch_overview
from enbloc.cli.listing import Listing, Options, listing_options, selector_option, show, sort_rows
from enbloc.inspect.overview import Overview, domains_json, nodes_json
from enbloc.units import Selector, natural_key

_SORT_KEYS = {
    "name": lambda node: natural_key(node.node),
    "pods": lambda node: (-node.pods, natural_key(node.node)),
    "status": lambda node: (node.status, natural_key(node.node)),
}


@click.command("nodes")
@cluster_options
@listing_options
@click.option("--state", metavar="STATUS", help="In this status only, such as Ready.")
@selector_option
@click.option("--sort-by", metavar="KEY", help=f"Of {', '.join(_SORT_KEYS)}.")
@click.option(
    "--topology", is_flag=True, help="Racks, blocks and other domains instead of nodes, and how full they are."
)
def command(
    kubeconfig: str | None,
    context: str | None,
    output: str,
    no_headers: bool,
    watch: bool,
    state: str | None,
    selector: Selector,
    sort_by: str | None,
    topology: bool,
) -> None:
    """List nodes and their usage; with --topology the domains that they are in.

    Reads the cluster of KUBECONFIG, real or embedded; without one the `enbloc up` that runs here.
    """

    def fetch() -> Listing:
        overview = fetch_overview(kubeconfig, context, with_trees=topology)
        rows = [
            node
            for node in overview.nodes
            if (state is None or node.status.lower() == state.lower()) and selector.matches(node.labels)
        ]
        shown = msgspec.structs.replace(overview, nodes=sort_rows(rows, sort_by, _SORT_KEYS))
        return _domains(shown) if topology else _listing(shown)

    show(Options(output, not no_headers, watch), fetch)


def _listing(overview: Overview) -> Listing:
    from enbloc.inspect.tables import node_cells, node_columns

    cells = [node_cells(node, overview) for node in overview.nodes]
    return Listing("nodes", node_columns(overview), cells, nodes_json(overview))


def _domains(overview: Overview) -> Listing:
    from enbloc.inspect.tables import domain_cells, domain_columns
    from enbloc.inspect.topology import read_domains

    domains = read_domains(overview.trees, overview.nodes) if overview.trees is not None else []
    cells = [domain_cells(one, domains) for one in domains]
    return Listing("domains", domain_columns(domains), cells, domains_json(domains))
