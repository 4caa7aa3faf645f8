"""Traces of each format, read into the same jobs; bad lines are named and hide no other."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from enbloc.cli.replay import command as replay_command
from enbloc.traces import reading
from enbloc.traces.formats.columns import Column, parse_map
from enbloc.traces.reading import BadTrace, read_trace
from enbloc.traces.trace import CPU, GPU, Trace, TraceJob, doubt
from enbloc.units import SECOND
from support.real_traces import TRACES, needs_traces

SWF = """\
; MaxProcs: 4
; Queue: 1 short
 1 100 5 60 2 -1 -1 2 120 -1 1 7 1 1 1 -1 -1 -1
 2 110 5 -1 -1 -1 -1 4 120 -1 5 7 1 1 1 -1 -1 -1
 3 105 5 30 -1 -1 -1 3 -1 -1 1 8 1 1 -1 -1 -1 -1
nonsense
 4 120 5 x 1 -1 -1 1 10 -1 1 8 1 1 1 -1 -1 -1
"""
JOBS = [
    TraceJob("1", 0, 60 * SECOND, 2, 120 * SECOND, user="7", queue="1"),
    TraceJob("3", 5 * SECOND, 30 * SECOND, 3, user="8"),
]


def _written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_swf(tmp_path: Path) -> None:
    """Times count from the first submission; a job that did not run is left out; bad lines are named."""
    trace = read_trace(_written(tmp_path, "t.swf", SWF))
    assert trace.jobs == JOBS
    assert (trace.processors, trace.resource, trace.skipped) == (4, CPU, {"did not run": 1})
    assert [(fault.line, fault.message) for fault in trace.faults] == [
        (6, "has 1 fields, not 18"),
        (7, "field 4: 'x' is not a number"),
    ]


def test_s8_a_file_that_expands_a_thousand_times_is_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it contains: it is not expanded to its end."""
    monkeypatch.setattr(reading, "_EXPANDS_ANYWAY", 2**20)
    path = tmp_path / "t.swf.gz"
    path.write_bytes(gzip.compress(b"0 " * 2**23))
    with pytest.raises(BadTrace, match="expands to more than 100 times its size"):
        read_trace(path)


def test_gzip(tmp_path: Path) -> None:
    path = tmp_path / "t.swf.gz"
    path.write_bytes(gzip.compress(SWF.encode()))
    assert read_trace(path).jobs == JOBS


def test_csv_by_its_usual_names(tmp_path: Path) -> None:
    text = "job_id,submission_time,num_gpu,duration,user\na,10,8,100,eve\nb,5,1,50,bob\nc,x,1,1,bob\n"
    trace = read_trace(_written(tmp_path, "t.csv", text))
    assert trace.resource == GPU
    assert [(job.id, job.submit_ns, job.units, job.user) for job in trace.jobs] == [
        ("b", 0, 1, "bob"),
        ("a", 5 * SECOND, 8, "eve"),
    ]
    assert [fault.line for fault in trace.faults] == [4]


def test_csv_says_which_columns_and_units_it_guessed(tmp_path: Path) -> None:
    path = _written(tmp_path, "t.csv", "job_id,submit_time,num_gpu,duration\na,10,8,100\n")
    assert read_trace(path).guessed == "submit=submit_time:s,duration=duration:s,gpus=num_gpu,id=job_id"
    given = parse_map("submit=submit_time:ms,gpus=num_gpu,id=job_id")
    assert read_trace(path, None, given).guessed == "duration=duration:s"
    assert parse_map(read_trace(path).guessed)["duration"] == Column("duration")


@pytest.mark.parametrize(
    "submit, duration, doubted",
    [
        (46_122_000, 2_868_294_000, True),  # milliseconds taken for seconds
        (1_500_000_000, 60, True),
        (3 * 31_536_000, 20 * 86_400, False),
        (0, 0.001, False),
    ],
)
def test_times_that_make_no_sense_in_their_unit_are_doubted(
    tmp_path: Path, submit: float, duration: float, doubted: bool
) -> None:
    rows = f"0,1,{duration}\n{submit},1,{duration}\n{submit},1,{duration}\n"
    path = _written(tmp_path, "t.csv", f"submit_time,num_gpu,duration\n{rows}")
    assert bool(doubt(read_trace(path))) is doubted
    shown = CliRunner().invoke(replay_command, [str(path), "--fast"])
    assert ("are its times in another unit?" in shown.stderr) is doubted
    assert "columns and units are guessed" in shown.stderr


@needs_traces
def test_the_times_of_a_real_trace_in_milliseconds_are_doubted() -> None:
    assert doubt(read_trace(TRACES / "muri1.csv"))
    assert not doubt(read_trace(TRACES / "muri1.csv", None, parse_map("submit=submit_time:ms,duration=duration:ms")))
    assert not doubt(read_trace(TRACES / "itp_cluster03.csv"))


def test_csv_by_a_map_with_units(tmp_path: Path) -> None:
    columns = parse_map("submit=came:ms,duration=took:m,cpus=size,estimate=limit:h,queue=where")
    assert columns["duration"] == Column("took", 60 * SECOND)
    path = _written(tmp_path, "t.txt", "came,took,size,limit,where\n0,1,2,3,q\n1500,2,1,,q\n")
    trace = read_trace(path, "csv", columns)
    assert trace.jobs == [
        TraceJob("1", 0, 60 * SECOND, 2, 3 * 3600 * SECOND, queue="q"),
        TraceJob("2", 1_500_000_000, 120 * SECOND, 1, None, queue="q"),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("submit", "is not FIELD=COLUMN"),
        ("when=x", "'when' is not one of submit"),
        ("submit=x:y", "'y' is not a unit of submit"),
        ("gpus=x:s", "'s' is not a unit of gpus"),
        ("submit=a,submit=b", "submit is given twice"),
    ],
)
def test_a_bad_map_says_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_map(text)


def test_a_csv_without_the_columns_says_which(tmp_path: Path) -> None:
    path = _written(tmp_path, "t.csv", "submit,took\n1,2\n")
    with pytest.raises(BadTrace, match="no column for duration and gpus, cpus or pods: name it with --map"):
        read_trace(path)
    with pytest.raises(BadTrace, match="no column 'x'; there are submit, took"):
        read_trace(path, None, {"duration": Column("x")})


def test_batsim(tmp_path: Path) -> None:
    workload = {
        "nb_res": 4,
        "jobs": [
            {"id": "1", "subtime": 10, "walltime": 120, "res": 2, "profile": "p"},
            {"id": 2, "subtime": 12.5, "res": 1, "profile": "q"},
            {"id": "3", "subtime": 12, "res": 1, "profile": "msg"},
            {"id": "4", "subtime": 12, "res": 1, "profile": "none"},
        ],
        "profiles": {
            "p": {"type": "delay", "delay": 60},
            "q": {"type": "delay", "delay": 1},
            "msg": {"type": "parallel"},
        },
    }
    trace = read_trace(_written(tmp_path, "t.json", json.dumps(workload)))
    assert trace.jobs == [TraceJob("1", 0, 60 * SECOND, 2, 120 * SECOND), TraceJob("2", 2_500_000_000, SECOND, 1)]
    assert trace.processors == 4
    assert [fault.message for fault in trace.faults] == [
        "profile 'msg' is of type 'parallel', not delay",
        "profile 'none' is not among the profiles",
    ]


SACCT = """\
JobID|Submit|Elapsed|Timelimit|AllocTRES|User|Partition|
12|2026-01-01T00:00:00|01:00:00|1-00:00:00|billing=4,cpu=4,gres/gpu=2,node=1|eve|gpu|
12.batch|2026-01-01T00:00:00|01:00:00||cpu=4|||
13|2026-01-01T00:00:30|00:10|UNLIMITED|cpu=4,gres/gpu:a100=4|bob|gpu|
14|2026-01-01T00:00:40|x||cpu=1,gres/gpu=1|bob|gpu|
15|2026-01-01T00:00:50|00:10||cpu=1|bob|cpu|
"""


def test_sacct(tmp_path: Path) -> None:
    """Steps are no jobs; where any job has GPUs they count."""
    trace = read_trace(_written(tmp_path, "t.txt", SACCT))
    assert trace.jobs == [
        TraceJob("12", 0, 3600 * SECOND, 2, 24 * 3600 * SECOND, "eve", "gpu"),
        TraceJob("13", 30 * SECOND, 10 * SECOND, 4, None, "bob", "gpu"),
    ]
    assert (trace.resource, trace.skipped) == (GPU, {"used no processors": 1})
    assert [fault.line for fault in trace.faults] == [5]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("t.txt", "x", "its format is not known by its name: say --format swf"),
        ("t.json", "{", "malformed|truncated"),
        ("t.json", "[]", "is no Batsim workload"),
        ("t.sacct", "a|b|", "is no output of sacct"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, name: str, text: str, says: str) -> None:
    with pytest.raises(BadTrace, match=says):
        read_trace(_written(tmp_path, name, text))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="No such file"):
        read_trace(tmp_path / "none.swf")


def test_an_empty_trace_has_no_jobs(tmp_path: Path) -> None:
    assert read_trace(_written(tmp_path, "t.swf", "")) == Trace([])


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("a,0,x,1", "duration: 'x' is not a number"),
        ("a,0,,1", "duration: is missing"),
        ("a,nan,1,1", "submit: 'nan' is not a number"),
        ("a,0,inf,1", "duration: 'inf' is not a number"),
        ("a,0,1e400,1", "duration: '1e400' is not a number"),
        ("a,0", "duration: is missing"),
        ("a,0,1,one", "gpus: 'one' is not a number"),
        ("a,-5,1,1", "submit time is negative"),
    ],
)
def test_a_bad_line_names_the_column_and_what_is_there(tmp_path: Path, row: str, fault: str) -> None:
    trace = read_trace(_written(tmp_path, "t.csv", f"job,submit,duration,gpus\n{row}\nb,0,1,1\n"))
    assert [(one.line, one.message) for one in trace.faults] == [(2, fault)]
    assert [job.id for job in trace.jobs] == ["b"]


@pytest.mark.parametrize(
    ("job", "fault"),
    [
        (7, "7 is not a job"),
        ({"id": "1", "res": 1, "profile": "p"}, "subtime: is missing"),
        ({"id": "1", "subtime": {}, "res": 1, "profile": "p"}, "subtime: {} is not a number"),
        ({"id": "1", "subtime": 1, "res": 1, "profile": ["p"]}, "profile ['p'] is not among the profiles"),
        ({"id": "1", "subtime": 1, "res": 1, "profile": "p", "walltime": "long"}, "walltime: 'long' is not a number"),
    ],
)
def test_a_bad_job_of_batsim_says_what_is_wrong(tmp_path: Path, job: object, fault: str) -> None:
    workload = {"jobs": [job], "profiles": {"p": {"type": "delay", "delay": 60}}}
    trace = read_trace(_written(tmp_path, "t.json", json.dumps(workload)))
    assert [one.message for one in trace.faults] == [fault]
