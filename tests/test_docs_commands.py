"""The commands of the documents run: those of `console` blocks for real, with the output that is shown; all others are
known commands with known options."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from enbloc.api.reasons import OF_PODS, PendingReason
from enbloc.cli.main import cli
from enbloc.scenario.documents import read_documents
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from test_situations import SITUATIONS, config_of, header_of

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
GENERATED = {"cli.md"}


def blocks(page: Path) -> list[tuple[str, str]]:
    return [] if page.name in GENERATED else BLOCK.findall(page.read_text())


def commands() -> list[tuple[str, str]]:
    """Every `enbloc …` line of a fenced block, and between backquotes, with its page."""
    found: dict[str, str] = {}
    for page in PAGES:
        text = page.read_text() if page.name not in GENERATED else ""
        for _, block in blocks(page):
            for line in block.splitlines():
                for part in re.split(r"\||&&|;", line.removeprefix("$ ").partition(" #")[0]):
                    if re.match(r"\s*enbloc [a-z]", part) and "enbloc is up" not in part:
                        found.setdefault(part.strip(), page.name)
        for quoted in re.findall(r"`(enbloc [a-z][^`]*)`", BLOCK.sub("", text)):
            for part in re.split(r"\||&&|;", quoted.replace("\n", " ")):
                if part.strip().startswith("enbloc"):
                    found.setdefault(part.strip(), page.name)
    return [(page, command) for command, page in found.items()]


def unknown_parts(arguments: list[str]) -> str:
    """What of a command line there is not: a command or an option."""
    command: click.Command = cli
    rest = [part for part in arguments if part != "…"]
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        if not re.fullmatch(r"[a-z][a-z-]*", rest[0]):
            break
        found = command.get_command(click.Context(command), rest[0])
        if found is None:
            return f"no command {rest[0]}"
        command, rest = found, rest[1:]
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {
        "--help",
        "-h",
        "--version",
    }
    return ", ".join(part for part in rest if re.match(r"--?[a-z]", part) and part.partition("=")[0] not in known)


def test_every_command_that_is_named_is_known() -> None:
    found = commands()
    assert len(found) > 60
    bad = {command: why for _, command in found if (why := unknown_parts(_split(command)))}
    assert bad == {}


def _split(command: str) -> list[str]:
    words = shlex.split(re.sub(r"[<>].*", "", command.replace("[", "").replace("]", "")))
    return [part for word in words[1:] for part in (word.split("|") if word.startswith("-") else [word])]


def test_an_unknown_option_would_be_found() -> None:
    assert unknown_parts(["sim", "x.yaml", "--untill", "5s"]) == "--untill"
    assert unknown_parts(["simm"]) == "no command simm"


def shown() -> list[Any]:
    """`(page, command, output)` of each `$ enbloc` in a console block."""
    found = []
    for page in PAGES:
        for language, block in blocks(page):
            if language == "console":
                for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                    command, _, output = part.partition("\n")
                    found.append(pytest.param(command, output, id=f"{page.stem}: {command[:60]}"))
    return found


@pytest.mark.parametrize(("command", "output"), shown())
def test_commands_print_what_is_shown(command: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line `…` stands for any lines; blanks at the end of a line do not count."""
    monkeypatch.chdir(ROOT)
    assert command.startswith("enbloc ")
    said = CliRunner().invoke(cli, shlex.split(command)[1:], catch_exceptions=False).stdout
    said = re.sub(r" +$", "", said, flags=re.MULTILINE)
    pattern = "".join(".*?" if line == "…" else re.escape(line) + r"\n" for line in output.splitlines())
    assert re.fullmatch(pattern + ("" if output.endswith("…\n") else r"\s*"), said, re.DOTALL), said


def test_generated_pages_are_up_to_date() -> None:
    """If this fails, run scripts/reference_pages.py, and read the difference. It runs in a process of its own: click
    keeps the help option of a command that another test called by itself, without `-h`."""
    script = "import json, runpy, sys; print(json.dumps(runpy.run_path(sys.argv[1])['pages']()))"
    command = [sys.executable, "-c", script, str(ROOT / "scripts" / "reference_pages.py")]
    made = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    for name, text in made.items():
        assert (ROOT / "docs" / name).read_text().splitlines() == text.splitlines(), name


def test_n6_the_example_of_each_reason_has_that_reason() -> None:
    examples = runpy.run_path(str(ROOT / "scripts" / "reference_pages.py"))["EXAMPLES"]
    never = {*OF_PODS, PendingReason.INTERNAL_ERROR}  # no file shows a bug of this program
    assert list(examples) == [reason for reason in PendingReason if reason not in never]
    files = {path.stem: path for path in SITUATIONS}
    for reason, name in examples.items():
        if reason is not PendingReason.HOLD_RELEASED:
            assert f"\n# reason: {reason.value}\n" in files[name].read_text()


def test_n6_claims_that_were_released_have_their_event() -> None:
    """HoldReleased is over when the next cycle has attempted the gang: the Event says it."""
    path = next(path for path in SITUATIONS if path.stem == "claims-released")
    config = config_of(header_of(path)[1])
    result = Simulation(read_scenario(read_documents([str(path)])), config).run(120_000_000_000)
    said = {obj["reason"] for obj in result.objects if obj["kind"] == "Event"}
    assert PendingReason.HOLD_RELEASED.value in said


KEY = re.compile(
    r'"((?:sim\.)?enbloc\.dev/[a-z-]+|(?:scheduling\.)?volcano\.sh/[a-z-]+|gang\.scheduling\.koordinator\.sh/[a-z-]+)"'
)


def test_every_annotation_of_the_code_is_on_its_page() -> None:
    page = (ROOT / "docs" / "annotations.md").read_text()
    source = ROOT / "src" / "enbloc"
    keys = {key for path in source.rglob("*.py") for key in KEY.findall(path.read_text())}
    assert len(keys) > 40
    assert sorted(key for key in keys if f"`{key}`" not in page) == []
