"""`enbloc dashboard`: the views of a saved simulation, in a browser or as one file."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import click

from enbloc.cli.errors import Refusal, cannot_listen


@click.command("dashboard")
@click.argument("file", metavar="RUN.json")
@click.option("--port", default=8002, show_default=True, type=click.IntRange(0, 65535), help="0: any free port.")
@click.option("-o", "--output", metavar="FILE.html", help="Write one self-contained page instead of serving it.")
def command(file: str, port: int, output: str | None) -> None:
    """Show a saved simulation: map, gangs, timeline, queues.

    RUN.json is what `enbloc sim -o json` printed; `-` is stdin. It is served on loopback only, until Ctrl-C. The
    dashboard of a cluster that runs is served by `enbloc up` and `enbloc run --components dashboard`.

    \b
    Example:
      enbloc sim examples/quickstart.yaml -o json > run.json
      enbloc dashboard run.json
    """
    answer = _read(file)
    try:
        if output is not None:
            _write(answer, file, output)
        else:
            asyncio.run(_serve(answer, port))
    except (KeyError, TypeError, AttributeError, IndexError) as why:
        raise Refusal([f"{file}: not what `enbloc sim -o json` prints: {type(why).__name__} {why}"]) from None
    except OSError as why:
        raise cannot_listen(why, "127.0.0.1", port) from None


def _read(file: str) -> Any:
    import msgspec

    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as why:
        raise Refusal([f"{file}: {why.strerror}"]) from None
    try:
        answer = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as why:
        raise Refusal([f"{file}: not JSON: {why}"]) from None
    missing = {"objects", "gangs", "pending", "series", "end"} - set(answer if isinstance(answer, dict) else ())
    if missing:
        raise Refusal([f"{file}: not what `enbloc sim -o json` prints: {sorted(missing)[0]} is missing"])
    return answer


def _write(answer: Any, file: str, output: str) -> None:
    from enbloc.web.report import report_page

    page = report_page(answer, f"enbloc {file}")
    try:
        Path(output).write_text(page, encoding="utf-8")
    except OSError as why:
        raise Refusal([f"--output: {output}: {why.strerror}"]) from None


async def _serve(answer: Any, port: int) -> None:
    from aiohttp import web

    from enbloc.web.saved import SavedPages

    runner = web.AppRunner(SavedPages(answer).application(), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        stop = asyncio.Event()
        for one in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(one, stop.set)
        click.echo(f"The dashboard is at http://127.0.0.1:{runner.addresses[0][1]}/  (Ctrl-C ends it)")
        sys.stdout.flush()
        await stop.wait()
    finally:
        await runner.cleanup()
