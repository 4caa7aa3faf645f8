"""`enbloc gangs`."""

from __future__ import annotations

import time

import click
import msgspec

from enbloc.cli.fetch import cluster_options, fetch_overview
from enbloc.cli.listing import WIDE, Listing, Options, listing_options, selector_option, show, sort_rows
from enbloc.inspect.gang_states import RANK, STATES
from enbloc.inspect.overview import Overview, gangs_json
from enbloc.units import Selector

_SORT_KEYS = {
    "name": lambda gang: gang.gang,
    "age": lambda gang: (gang.created, gang.gang),
    "queue": lambda gang: (gang.queue, gang.gang),
    "state": lambda gang: (RANK[gang.state], gang.state, gang.gang),
    "priority": lambda gang: (-gang.priority, gang.gang),
    "pods": lambda gang: (-sum(gang.pods.values()), gang.gang),
}


@click.command("gangs")
@cluster_options
@listing_options
@click.option("-n", "--namespace", metavar="NAME", help="Of this namespace only.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Of all namespaces (the default).")
@selector_option
@click.option("-q", "--queue", metavar="NAME", help="Of this queue only.")
@click.option("--state", type=click.Choice(STATES, case_sensitive=False), help="In this state only.")
@click.option("--sort-by", metavar="KEY", help=f"Of {', '.join(_SORT_KEYS)}.")
def command(
    kubeconfig: str | None,
    context: str | None,
    output: str,
    no_headers: bool,
    watch: bool,
    namespace: str | None,
    all_namespaces: bool,
    selector: Selector,
    queue: str | None,
    state: str | None,
    sort_by: str | None,
) -> None:
    """List gangs: which run, which wait, and why.

    Reads the cluster of KUBECONFIG, real or embedded; without one the `enbloc up` that runs here. In a pipe every gang
    is one line.

    \b
    Example:
      enbloc gangs -q research --state waiting
      enbloc gangs -o name | head
    """

    def fetch() -> Listing:
        overview = fetch_overview(kubeconfig, context)
        rows = [
            gang
            for gang in overview.gangs
            if (namespace is None or all_namespaces or gang.gang.startswith(f"{namespace}/"))
            and (queue is None or gang.queue == queue)
            and (state is None or gang.state.lower() == state.lower())
            and selector.matches(gang.labels)
        ]
        return _listing(msgspec.structs.replace(overview, gangs=sort_rows(rows, sort_by, _SORT_KEYS)), output)

    show(Options(output, not no_headers, watch), fetch)


def _listing(overview: Overview, output: str) -> Listing:
    from enbloc.inspect.tables import GANG_COLUMNS, GANG_WIDE, gang_cells, gang_wide_cells

    now = time.time_ns()
    wide = output == WIDE
    cells = [[*gang_cells(gang, now), *(gang_wide_cells(gang) if wide else ())] for gang in overview.gangs]
    columns = (*GANG_COLUMNS, *(GANG_WIDE if wide else ()))
    return Listing("gangs", columns, cells, gangs_json(overview))
