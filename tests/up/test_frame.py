"""The live view: frames of any size, what keys do, what an empty or finished cluster says."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from enbloc.inspect.overview import Overview, read_overview
from enbloc.up.frame import Around, frame, rows_on
from enbloc.up.keys import Keys
from enbloc.up.session import next_steps
from enbloc.up.viewer import View, Viewer
from support import manifests as m
from web.played import played

AROUND = Around("http://127.0.0.1:8001/", ["export KUBECONFIG=/a/rather/long/path/kubeconfig"], ["What to do next"])
STYLE = re.compile(r"\x1b\[[0-9;]*m")
EVENTS = [f"12:00:{number:02} bound Pod default/p-{number} on node-1" for number in range(60)]


def _many(gangs: int) -> Overview:
    nodes = [m.node(f"n{number}", cpu=8) for number in range(gangs)]
    pods = [m.pod(f"pod-{number:03}", cpu=2) for number in range(gangs)]
    for index, pod in enumerate(pods):
        pod["metadata"]["uid"] = f"u-{index}"
        pod["metadata"]["creationTimestamp"] = f"2026-01-01T00:{index // 60:02}:{index % 60:02}Z"
    return read_overview({"Node": nodes, "Pod": pods})


def _overview() -> Overview:
    store = played()
    from enbloc.inspect.overview import KINDS

    return read_overview({kind: store.list(kind)[0] for kind in KINDS})


def _text(viewer: Viewer, overview: Overview, size: tuple[int, int] = (80, 24)) -> list[str]:
    lines = frame(viewer, overview, EVENTS, 1_700_000_000.0, AROUND, size)
    return [STYLE.sub("", line) for line in lines]


@pytest.mark.parametrize("size", [(80, 24), (50, 15), (120, 40), (200, 60), (20, 6), (10, 4), (300, 30)])
@pytest.mark.parametrize("view", list(View))
def test_a_frame_has_the_size_of_the_terminal(size: tuple[int, int], view: View) -> None:
    viewer = Viewer()
    viewer.view = view
    for overview in (Overview([], [], [], {}), _many(40), _overview()):
        for shows_help in (False, True):
            viewer.shows_help = shows_help
            lines = _text(viewer, overview, size)
            assert len(lines) == size[1]
            assert [line for line in lines if cell_len(line) > size[0]] == []


def test_at_80_by_24_every_gang_can_be_reached() -> None:
    overview, viewer, page = _many(40), Viewer(), rows_on(24)
    seen: set[str] = set()
    for key in ["", *["page-down"] * 4]:
        if key:
            viewer.press(key, page)
        seen.update(re.findall(r"pod-\d+", "\n".join(_text(viewer, overview))))
    viewer.press("G", page)
    assert "default/pod-039" in "\n".join(_text(viewer, overview))
    for _ in range(39):
        viewer.press("up", page)
        seen.update(re.findall(r"pod-\d+", "\n".join(_text(viewer, overview))))
    assert seen == {f"pod-{number:03}" for number in range(40)}
    assert viewer.selected == 0


def test_the_selected_gang_says_in_full_why_it_waits() -> None:
    overview, viewer = _overview(), Viewer()
    text = "\n".join(_text(viewer, overview, (60, 24)))
    assert "It waits: not enqueued: requests 6 cpu, 2 of 16 available." in text
    viewer.press("down", 10)
    assert "It can never start" in " ".join(_text(viewer, overview, (60, 24)))


def test_rows_are_filtered_by_what_is_typed_and_keys_are_text_then() -> None:
    overview, viewer = _many(40), Viewer()
    for key in ("/", "0", "3", "q"):
        viewer.press(key, 10)
    assert (viewer.filter, viewer.ends) == ("03q", False)
    viewer.press("backspace", 10)
    viewer.press("enter", 10)
    text = "\n".join(_text(viewer, overview))
    assert set(re.findall(r"pod-\d+", text)) == {"pod-003", *(f"pod-03{number}" for number in range(10))}
    viewer.press("escape", 10)
    assert viewer.filter == ""
    for key in ("/", "z", "z", "enter"):
        viewer.press(key, 10)
    assert "Nothing has 'zz'" in "\n".join(_text(viewer, overview))


def test_s_changes_the_order_of_the_view() -> None:
    overview, viewer = _overview(), Viewer()
    first = [line.split()[0] for line in _text(viewer, overview)[3:6]]
    assert first == ["default/bert", "default/giant", "default/resnet"]
    viewer.press("s", 10)
    assert viewer.order == "name"
    viewer.press("s", 10)
    viewer.press("s", 10)
    assert viewer.order == "age"
    assert _text(viewer, overview)[3].startswith("default/resnet")


def test_tab_numbers_help_and_end() -> None:
    viewer = Viewer()
    for key, view in (("tab", View.GANGS), ("tab", View.QUEUES), ("back-tab", View.GANGS), ("5", View.EVENTS)):
        viewer.press(key, 10)
        assert viewer.view is view
    viewer.press("?", 10)
    assert "Keys" in _text(viewer, _overview())[0]
    viewer.press("q", 10)  # leaves the help
    assert not viewer.ends
    viewer.press("q", 10)
    assert viewer.ends


def test_bytes_become_keys_also_when_they_are_cut() -> None:
    keys = Keys()
    assert list(keys.read(b"j\x1b[A\x1b[6~\x1bOB\t\x7f\r/\x1b[Z")) == [
        *("j", "up", "page-down", "down", "tab", "backspace", "enter", "/", "back-tab")
    ]
    assert list(keys.read("ä".encode()[:1])) == []
    assert list(keys.read("ä".encode()[1:])) == ["ä"]
    assert list(keys.read(b"\x1b[200~\x1b")) == ["escape"]


def test_an_empty_and_a_finished_cluster_say_what_to_do_next() -> None:
    empty = Overview([], [], [], {})
    assert "kubectl apply -f" in "\n".join(next_steps(empty, has_more_load=False))
    assert next_steps(empty, has_more_load=True) == []
    assert next_steps(_overview(), has_more_load=False) == []  # resnet runs
    from enbloc.inspect.overview import KINDS

    store = played(400)
    over = read_overview({kind: store.list(kind)[0] for kind in KINDS})
    assert "explain default/giant" in "\n".join(next_steps(over, has_more_load=False))
    assert "What to do next" in "\n".join(_text(Viewer(), empty))


def test_a_finished_demo_says_what_to_do_next_beside_its_gangs() -> None:
    text = _text(Viewer(), _overview())
    assert "What to do next" in text
    assert any(line.startswith("default/resnet") for line in text)
    assert "It waits: not enqueued: requests 6 cpu, 2 of 16 available." in text
    assert "What to do next" not in _text(Viewer(), _overview(), (80, 10))  # rows come first


def test_events_begin_with_the_newest_and_s_turns_them_around() -> None:
    viewer = Viewer()
    viewer.press("5", 10)
    assert _text(viewer, _overview())[3].rstrip() == EVENTS[-1]
    viewer.press("s", 10)
    assert _text(viewer, _overview())[3].rstrip() == EVENTS[0]


def test_the_help_fits_80_columns() -> None:
    viewer = Viewer()
    viewer.press("?", 10)
    assert [line for line in _text(viewer, _overview()) if "…" in line] == []
