"""The live view: frames of any size, gangs that wait first, what an empty or finished cluster says."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from enbloc.inspect.overview import KINDS, Overview, read_overview
from enbloc.up.live_view import LiveView
from enbloc.up.session import next_steps
from support import manifests as m
from web.played import played

EMPTY = Overview([], [], [], {})
COMMANDS = ["export KUBECONFIG=/a/rather/long/path/kubeconfig"]
ADVICE = ["What to do next"]


def _many(gangs: int) -> Overview:
    nodes = [m.node(f"n{number}", cpu=8) for number in range(gangs)]
    pods = [m.pod(f"pod-{number:03}", cpu=2) for number in range(gangs)]
    for index, pod in enumerate(pods):
        pod["metadata"]["uid"] = f"u-{index}"
        pod["metadata"]["creationTimestamp"] = f"2026-01-01T00:{index // 60:02}:{index % 60:02}Z"
    return read_overview({"Node": nodes, "Pod": pods})


def _overview(until_s: int | None = None) -> Overview:
    store = played() if until_s is None else played(until_s)
    return read_overview({kind: store.list(kind)[0] for kind in KINDS})


def _text(overview: Overview, size: tuple[int, int] = (100, 30), events: int = 60) -> list[str]:
    console = Console(file=io.StringIO(), width=size[0], height=size[1], force_terminal=True, color_system=None)
    view = LiveView("http://127.0.0.1:8001/", COMMANDS, console)
    for number in range(events):
        view.log(f"12:00:{number:02} bound Pod default/p-{number} on node-1")
    lines = console.render_lines(view.frame(overview, 1_700_000_000.0, ADVICE))
    return ["".join(segment.text for segment in line).rstrip() for line in lines]


@pytest.mark.parametrize("size", [(80, 24), (50, 15), (120, 40), (200, 60), (20, 6), (30, 8), (300, 30)])
def test_a_frame_fits_the_terminal(size: tuple[int, int]) -> None:
    for overview in (EMPTY, _many(40), _overview()):
        lines = _text(overview, size)
        assert len(lines) <= size[1]
        assert [line for line in lines if cell_len(line) > size[0]] == []
        assert lines[0].startswith("enbloc is up"[: size[0] - 1])


def test_gangs_that_wait_come_first_and_say_why() -> None:
    lines = _text(_overview())
    gangs = [line for line in lines if line.startswith("default/")]
    assert [line.split()[0] for line in gangs] == ["default/bert", "default/giant", "default/resnet"]
    assert "not enqueued: requests 6 cpu, 2 of 16 available" in gangs[0]


def test_gangs_that_do_not_fit_are_counted_and_the_last_events_stay() -> None:
    lines = _text(_many(40))
    shown = sum(line.startswith("default/pod-") for line in lines)
    assert f"… and {40 - shown} more" in lines
    assert lines[-1] == "12:00:59 bound Pod default/p-59 on node-1"
    assert sum("bound Pod" in line for line in lines) == 6


def test_what_a_tenant_wrote_moves_no_cursor() -> None:
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None)
    view = LiveView("http://127.0.0.1:8001/", COMMANDS, console)
    view.log("12:00:00 warning Pod default/p: \x1b[2J\x07gone [bold]not bold[/bold]")
    text = "".join(segment.text for line in console.render_lines(view.frame(EMPTY, 0.0, [])) for segment in line)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]not bold[/bold]" in text


def test_an_empty_and_a_finished_cluster_say_what_to_do_next() -> None:
    assert "kubectl apply -f" in "\n".join(next_steps(EMPTY, has_more_load=False))
    assert next_steps(EMPTY, has_more_load=True) == []
    assert next_steps(_overview(), has_more_load=False) == []  # resnet runs
    assert "explain default/giant" in "\n".join(next_steps(_overview(400), has_more_load=False))
    assert ADVICE[0] in _text(EMPTY)
    assert ADVICE[0] in _text(_overview())
