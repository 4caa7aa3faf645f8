"""No message says "1 pods": a count before a noun goes through `plural`, or has a reason to be written by hand."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import enbloc

SOURCE = Path(enbloc.__file__).parent
COUNTED = re.compile(
    r" (more |other |held |later )?(pods|nodes|gangs|groups|PodGroups|jobs|members|roles|replicas|queues|domains"
    r"|objects|events|tasks|lines|times|restarts|warnings|claims|slots|cycles|decisions|attempts|victims|evictions|namespaces)\b"
)
BY_HAND = {
    "{count} pods bound together: ": "of two and more",
    "{numbers['minimum']} pods must start together": "of two and more",
    "{len(set(hidden))} gangs of other namespaces": "of two and more",
    "{bounded.limit} of {unbounded.limit} nodes, which may be reserved at once": "a part of two and more",
    "0/{total} nodes are available": "Kubernetes' own words",
    "{needed} healthy pods and has ": "Kubernetes' own words",
    "{len(roles)} roles are above ": "above a limit",
    "{len(spec.tasks)} roles are above ": "above a limit",
    "{total} replicas in all are above ": "above a limit",
    "{count:,} times by ": "above a limit",
    "{members} members, more than ": "above a limit",
    "{self.kind} of {len(self.slots)} slots": "a repr",
    "{len(self.names)} domains)": "a repr",
    "{_own_name()} gangs": "a command",
    "do not fit on {nodes} nodes, ": "for developers",
    "racks of {nodes} nodes": "for developers",
}


def counts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """A value that is put into a text before a noun in the plural: the line, and both as they are written."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, text in zip(node.values, node.values[1:], strict=False):
            if not isinstance(value, ast.FormattedValue) or not isinstance(text, ast.Constant):
                continue
            if COUNTED.match(str(text.value)) and not is_constant(value.value):
                yield node.lineno, ast.unparse(node)


def is_constant(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id.isupper()


def test_every_count_is_put_before_the_right_number_of_its_noun() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {text}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.parent.name != "bench"
        for line, text in counts(ast.parse(path.read_text()))
        if not any(known in text for known in BY_HAND)
    ]
    assert not found, "\n".join(found)
