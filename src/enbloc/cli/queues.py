"""`enbloc queues`."""

from __future__ import annotations

import click
import msgspec

from enbloc.cli.fetch import cluster_options, fetch_overview
from enbloc.cli.listing import WIDE, Listing, Options, listing_options, selector_option, show, sort_rows
from enbloc.inspect.overview import Overview, queues_json
from enbloc.units import Selector

_SORT_KEYS = {
    "name": lambda queue: queue.queue,
    "parent": lambda queue: (queue.parent, queue.queue),
    "weight": lambda queue: (-queue.weight, queue.queue),
    "running": lambda queue: (-queue.running, queue.queue),
    "waiting": lambda queue: (-queue.waiting, queue.queue),
}


@click.command("queues")
@cluster_options
@listing_options
@click.option("--state", metavar="STATE", help="In this state only, such as Open.")
@selector_option
@click.option("--sort-by", metavar="KEY", help=f"Of {', '.join(_SORT_KEYS)}.")
def command(
    kubeconfig: str | None,
    context: str | None,
    output: str,
    no_headers: bool,
    watch: bool,
    state: str | None,
    selector: Selector,
    sort_by: str | None,
) -> None:
    """List queues: what runs in them, what waits, what they use. A queue counts what is in the queues below it.

    Reads the cluster of KUBECONFIG, real or embedded; without one the `enbloc up` that runs here.
    """

    def fetch() -> Listing:
        overview = fetch_overview(kubeconfig, context)
        rows = [
            queue
            for queue in overview.queues
            if (state is None or queue.state.lower() == state.lower()) and selector.matches(queue.labels)
        ]
        return _listing(msgspec.structs.replace(overview, queues=sort_rows(rows, sort_by, _SORT_KEYS)), output)

    show(Options(output, not no_headers, watch), fetch)


def _listing(overview: Overview, output: str) -> Listing:
    from enbloc.inspect.tables import QUEUE_COLUMNS, QUEUE_WIDE, queue_cells

    wide = output == WIDE
    cells = [[*queue_cells(queue), *([str(queue.priority)] if wide else ())] for queue in overview.queues]
    columns = (*QUEUE_COLUMNS, *(QUEUE_WIDE if wide else ()))
    return Listing("queues", columns, cells, queues_json(overview))
