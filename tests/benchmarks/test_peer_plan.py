"""The run that writes the whole page: bounded in time, whatever a part does."""

from __future__ import annotations

import json
import time
from pathlib import Path

from benchmarks.peers import choice, plan

HANGS = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
open(sys.argv[1], "w").write(str(child.pid))
time.sleep(600)
"""


def test_what_a_part_prints_is_kept_and_one_that_fails_or_has_no_time_is_named(tmp_path: Path) -> None:
    run = plan.Run(tmp_path / "results", time.monotonic() + 100, True)
    prints = plan.Part("first", 1, ("-c", "print('{\"a\": 1}')"), "growth")
    run.run([prints, plan.Part("fails", 1, ("-c", "raise SystemExit(3)"), "x"), plan.Part("long", 1000, ("-c", ""))])
    grown, failed, late = run.measured()
    assert grown == {"growth": {"a": 1}}
    assert (failed["left_out"], late["left_out"]) == ("fails", "long")
    assert "code 3" in failed["why"]
    assert "1000 s" in late["why"]


def test_a_part_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    run = plan.Run(tmp_path / "results", time.monotonic() + 4, True)
    run.run([plan.Part("hangs", 1, ("-c", HANGS, str(tmp_path / "pid")), "x")])
    [cut] = run.measured()
    assert "it was ended after" in cut["why"]
    child = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if not _lives(child):
            return
        time.sleep(0.05)
    raise AssertionError("what it started runs on")


def test_a_peer_that_did_not_bind_all_of_a_load_is_not_run_with_it_again(tmp_path: Path) -> None:
    load = {"nodes": 1, "pods": 10, "gang_size": 5, "arrive": False}
    runs = [
        {**load, "scheduler": "KAI", "dialect": "kai", "bound": 3},
        {**load, "scheduler": "YuniKorn", "dialect": "yunikorn", "failed": "it ended with code 1"},
        {**load, "nodes": 2, "scheduler": "kube-scheduler", "dialect": "native", "bound": 9},
        {**load, "scheduler": "Koordinator", "dialect": "koordinator", "bound": 10},
        {**load, "scheduler": "Enbloc", "dialect": "native", "bound": 9},
    ]
    (tmp_path / "results").write_text("".join(json.dumps(one) + "\n" for one in runs))
    run = plan.Run(tmp_path / "results", 0.0, True)
    named = [word for name in ("kai", "yunikorn", "kube-scheduler", "koordinator") for word in ("--only", name)]
    words = (*named, "--only", "enbloc/native")
    assert run._too_slow(plan.Part("part", 1, words, load=(1, 10, 5))) == ["KAI/kai", "YuniKorn/yunikorn"]
    assert run._too_slow(plan.Part("part", 1, words[2:], load=(1, 10, 5))) == ["YuniKorn/yunikorn"]


def _lives(pid: int) -> bool:
    """A process that has ended and was not waited for counts as ended."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_every_part_names_schedulers_that_exist() -> None:
    names = [*(("Enbloc", dialect) for dialect in choice.ENBLOC), *choice.BUILT]
    for sizes in (plan.FULL, plan.TINY):
        for part in plan.parts(sizes, 8.0):
            only = [part.words[at + 1] for at, word in enumerate(part.words) if word == "--only"]
            assert not only or choice.chosen(names, only, [])
