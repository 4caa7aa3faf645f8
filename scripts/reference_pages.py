"""Writes the pages of docs/ that are generated: the commands, the config, the examples of docs/reasons.md, and the
tables of docs/architecture.md, docs/compatibility.md, docs/gang-phases.md, docs/job-states.md and docs/metrics.md.

    .venv/bin/python scripts/reference_pages.py

`tests/test_docs_commands.py` fails while a page differs from what this prints.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from enbloc.api.reasons import PendingReason
from enbloc.cli.main import cli as commands
from enbloc.config import parse, render
from enbloc.controllers.job_states import JOB_ACTIONS, STATES
from enbloc.engine.core.tables.phase import ALLOWS
from enbloc.gangs.compatibility import FIELDS
from enbloc.gangs.constraints import Effect

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))
from scripts.metrics_reference import tables as metrics  # noqa: E402

SITUATIONS = ROOT / "tests" / "situations"
BEGIN, END = re.compile("<!-- generated: [a-z]+ -->\n"), "<!-- end of the generated part -->\n"
EXAMPLES = {
    PendingReason.NOT_ENOUGH_PODS: "pods-missing",
    PendingReason.SCHEDULING_GATED: "scheduling-gate",
    PendingReason.OTHER_SCHEDULER: "misspelt-scheduler-name",
    PendingReason.FAILED_CREATE: "quota-stops-the-third-pod",
    PendingReason.UNSUPPORTED_CONSTRAINT: "unsupported-constraint",
    PendingReason.GANG_INVALID: "misspelt-queue",
    PendingReason.GROUP_NOT_READY: "group-waits-for-another-gang",
    PendingReason.TIMED_OUT: "waiting-time-over",
    PendingReason.NOT_ENOUGH_RESOURCES: "too-big-for-the-cluster",
    PendingReason.UNSCHEDULABLE: "gpus-on-one-node",
    PendingReason.QUEUE_FULL: "queue-capability-at-allocate",
    PendingReason.CLAIM_NOT_ALLOWED: "task-groups-beyond-the-quota",
    PendingReason.BLOCKED_BY_FIFO: "behind-the-fifo-head",
    PendingReason.HOLD_RELEASED: "claims-released",
}
"""Of each reason one situation, which `tests/test_situations.py` runs."""
HELP: dict[str, Any] = {"max_content_width": 100, "help_option_names": ["-h", "--help"]}
_SAID = re.compile(r"# (state|reason|sentence|cause|in the way|remedy|start|gang|config|until): (.+)$")


def pages() -> dict[str, str]:
    """File under docs/ → its text."""
    parts = {
        "reasons.md": examples(),
        "compatibility.md": compatibility(),
        "job-states.md": job_states(),
        "gang-phases.md": gang_phases(),
        "architecture.md": rules(),
        "metrics.md": metrics(),
    }
    return {"cli.md": cli(), "config.md": config(), **{name: _with_part(name, text) for name, text in parts.items()}}


def _with_part(name: str, text: str) -> str:
    """A page with its generated part written anew."""
    page = (ROOT / "docs" / name).read_text()
    begin = BEGIN.search(page)
    assert begin is not None, name
    return page[: begin.end()] + text + page[page.index(END) :]


def cli() -> str:
    """Every command with its help, as `--help` prints it."""
    lines = [
        "# Commands",
        "",
        "Every command and its options, as `enbloc COMMAND --help` prints them.",
        "Exit codes: 0 done; 1 the thing asked about is not so; 2 bad usage or bad input.",
        "",
    ]
    for name, command in _commands(commands, "enbloc"):
        context = click.Context(command, info_name=name, terminal_width=100, **HELP)
        lines += [f"## {name}", "", "```text", command.get_help(context).rstrip(), "```", ""]
    return "\n".join(lines)


def _commands(group: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(group, click.Group):
        return
    context = click.Context(group, info_name=name, **HELP)
    for sub in group.list_commands(context):
        command = group.get_command(context, sub)
        if command is None or command.hidden:
            continue
        yield f"{name} {sub}", command
        yield from _commands(command, f"{name} {sub}")


def config() -> str:
    head = """# Config

One YAML file configures every component (`--config FILE`). This is the effective config without one, as `enbloc
config` prints it; every key has its default here. Volcano's `actions` and `tiers` work as they are
([rules C](semantics.md#c-configuration)).
"""
    return f"{head}\n```yaml\n{render(parse(None)).rstrip()}\n```\n"


def compatibility() -> str:
    lines = ["| dialect | object | field | value | effect | instead |", "|---|---|---|---|---|---|"]
    for field in sorted(FIELDS, key=lambda field: (field.dialect.lower(), field.kind)):
        kind = field.kind.partition(".")[0]
        way_out = field.way_out if field.effect is Effect.HELD else ""
        cells = (field.dialect, kind, f"`{field.path}`", field.case, str(field.effect), way_out)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def job_states() -> str:
    lines = ["| phase | meaning | by itself |", "|---|---|---|"]
    for state in STATES.values():
        ways = "; ".join(f"**{to}** when {when}" for to, when in state.by_itself.items())
        lines.append(f"| {state.phase} | {state.meaning} | {ways or '–'} |")
    lines += ["", f"| phase | {' | '.join(JOB_ACTIONS)} |", "|---" * (len(JOB_ACTIONS) + 1) + "|"]
    for state in STATES.values():
        cells = [state.by_action.get(action) or "–" for action in JOB_ACTIONS]
        lines.append(f"| {state.phase} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def gang_phases() -> str:
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    {one} --> {to}: {when}" for one, allows in ALLOWS.items() for to, when in allows.next.items()]
    lines += ["```", "", "| phase | what it means | its tasks are placed | may claim room | what says why it waits |"]
    lines += ["|---|---|---|---|---|"]
    for one, allows in ALLOWS.items():
        claims = "yes" if allows.may_claim else "no"
        lines.append(f"| {one} | {allows.means} | {allows.attempted} | {claims} | {allows.says_why} |")
    return "\n".join(lines) + "\n"


_RULE = re.compile(r"^- \*\*([A-Z]\d+)(?: ([^*]+?))?\.?\*\*", re.MULTILINE)
MOST_PLACES = 12


def rules() -> str:
    """Each rule with the modules that cite it."""
    lines = ["| rule | stands in |", "|---|---|"]
    texts = {str(path.relative_to(ROOT / "src" / "enbloc")): path.read_text() for path in _modules()}
    for code, name in _RULE.findall((ROOT / "docs" / "semantics.md").read_text()):
        cited = re.compile(rf"\b{code}\b")
        counts = {path: len(cited.findall(text)) for path, text in texts.items()}
        places = sorted((path for path, count in counts.items() if count), key=lambda path: (-counts[path], path))
        shown = ", ".join(f"`{path}`" for path in places[:MOST_PLACES])
        more = f" and {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else ""
        lines.append(f"| {f'{code} {name}'.strip()} | {shown or '–'}{more} |")
    return "\n".join(lines) + "\n"


def _modules() -> list[Path]:
    return sorted((ROOT / "src" / "enbloc").rglob("*.py"))


def examples() -> str:
    return "\n".join(_example(reason, name) for reason, name in EXAMPLES.items()) + "\n"


def _example(reason: PendingReason, name: str) -> str:
    comment, _, body = (SITUATIONS / f"{name}.yaml").read_text().partition("\n\n")
    said: dict[str, list[str]] = {}
    story = []
    for line in comment.splitlines():
        match = _SAID.match(line)
        if match is None:
            story.append(line.removeprefix("# "))
        else:
            said.setdefault(match[1], []).append(match[2])
    lines = [f"### {reason.value}", "", *textwrap.wrap(" ".join(story), 128), ""]
    if reason is PendingReason.HOLD_RELEASED:
        lines += [
            "An Event has this reason; a moment later the gang is attempted again, and waits for another one.",
            "",
        ]
    lines += ["```text", *textwrap.wrap(said["sentence"][0], 128)]
    lines += [f"{head}: {text}" for head in ("cause", "in the way") for text in said.get(head, ())]
    lines += [f"would help: {text}" for text in said.get("remedy", ())]
    lines += [f"start:      {text}" for text in said.get("start", ())]
    lines += ["```", "", "<details><summary>The objects</summary>", ""]
    if "config" in said:
        lines += [f"Config: `{said['config'][0]}`", ""]
    lines += ["```yaml", body.rstrip(), "```", "", "</details>", ""]
    return "\n".join(lines)


def main() -> None:
    for name, text in pages().items():
        (ROOT / "docs" / name).write_text(text)


if __name__ == "__main__":
    main()
