"""Reading input: what is accepted, and one plain line for everything that is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from enbloc.scenario import documents
from enbloc.scenario.documents import BadInput, read_documents, read_mapping


def values(tmp_path: Path, text: str) -> list[Any]:
    path = tmp_path / "in.yaml"
    path.write_bytes(text.encode())
    return [document.value for document in read_documents([str(path)])]


def problem(tmp_path: Path, text: str | bytes) -> str:
    path = tmp_path / "in.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadInput) as caught:
        read_documents([str(path)])
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(str(path))
    return line.removeprefix(str(path))


def test_documents_are_numbered_as_in_the_stream(tmp_path: Path) -> None:
    path = tmp_path / "in.yaml"
    path.write_text("# a comment\n---\na: 1\n---\n# empty\n---\nb: 2\n...\n---\nc: 3\n")
    assert [(d.number, d.value) for d in read_documents([str(path)])] == [(1, {"a": 1}), (3, {"b": 2}), (4, {"c": 3})]


def test_empty_files_hold_nothing(tmp_path: Path) -> None:
    assert values(tmp_path, "") == values(tmp_path, "# only words\n") == values(tmp_path, "---\n---\n") == []


def test_plain_scalars_are_what_kubectl_reads(tmp_path: Path) -> None:
    text = "{a: 1, b: 1.5, c: yes, d: ~, e: '1', f: 2020-01-01, g: 0x10, h: 1e3, i: 010, j: 1:30, k: 09, l: -3, m: 1Gi}"
    assert values(tmp_path, text) == [
        {
            "a": 1,
            "b": 1.5,
            "c": True,
            "d": None,
            "e": "1",
            "f": "2020-01-01",
            "g": 16,
            "h": 1000.0,
            "i": 8,
            "j": "1:30",
            "k": "09",
            "l": -3,
            "m": "1Gi",
        }
    ]


def test_json_and_yaml_may_be_mixed(tmp_path: Path) -> None:
    text = json.dumps({"a": [1, {"b": None}]}) + "\n---\na: [1, {b: null}]\n---\n{a: [1, {b: }]}\n"
    assert values(tmp_path, text) == [{"a": [1, {"b": None}]}] * 3


def test_anchors_and_merge_keys_work(tmp_path: Path) -> None:
    assert values(tmp_path, "x: &x {p: 1, q: 2}\ny: {<<: *x, q: 3}\n") == [
        {"x": {"p": 1, "q": 2}, "y": {"q": 3, "p": 1}}
    ]


def test_lists_are_flattened_and_keep_their_path(tmp_path: Path) -> None:
    path = tmp_path / "in.yaml"
    path.write_text("apiVersion: v1\nkind: List\nitems: [{kind: A}, {kind: B}]\n")
    assert [(d.number, d.value, d.prefix) for d in read_documents([str(path)])] == [
        (1, {"kind": "A"}, "items[0]."),
        (1, {"kind": "B"}, "items[1]."),
    ]


def test_a_directory_means_its_manifests_in_name_order(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.json", "c.yml", "notes.txt"):
        (tmp_path / name).write_text(json.dumps({"from": name}))
    assert [d.value["from"] for d in read_documents([str(tmp_path)])] == ["a.json", "b.yaml", "c.yml"]


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "text, reported",
    [
        ("a: [1", ":1: line 2, column 1: "),
        ("a: 1\n---\nb: {\n", ":2: line 4, column 1: "),
        ("a: b: c", ":1: line 1, column 5: "),
        ("a: {b: 1, b: 2}", ":1: a.b: is defined twice"),
        ('{"a": 1, "a": 2}', ":1: a: is defined twice"),
        ("a: [{1: x}]", ":1: a[0].1: a key is a text"),
        ("? [a]\n: b", ":1: a key is a text"),
        ("a: .nan", ":1: a: .nan is no number"),
        ('{"a": 99999999999999999999}', "out of range"),
        ("a: " + "9" * 5000, "out of range"),
        ("a: 1e999", "out of range"),
        ("a: &a [*a]", ":1: a[0]: the alias *a is inside what it names"),
        ("a: *b", "names nothing before it"),
        ("<<: 3", "only mappings can be merged"),
        ("a: !!binary aGk=", "the tag 'binary' is not supported"),
        (LAUGHS, "1,000,000 values"),
        ("[" * 5000, "deeper than 100"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "deeper than 100"),
        ('{"a":' * 150 + "1" + "}" * 150, "deeper than 100"),
        ("- a", ":1: an object is a mapping, not a list"),
        ("just words", ":1: an object is a mapping, not a text"),
        ("kind: List\nitems: [1]", ":1: items[0]: an object is a mapping"),
        ("kind: List\nitems: {}", ":1: items: must be a list"),
        ("a: \x00", "control characters"),
    ],
)
def test_what_cannot_be_read_is_reported_in_one_line(tmp_path: Path, text: str, reported: str) -> None:
    assert reported in problem(tmp_path, text)


def test_nothing_is_constructed_from_a_tag(tmp_path: Path) -> None:
    assert values(tmp_path, "a: !!python/object/apply:os.system [x]") == [{"a": ["x"]}]


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    assert "not UTF-8 text (byte 3)" in problem(tmp_path, b"a: \xff\xfe")


def test_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(BadInput, match="larger than 64 MiB"):
        read_documents([str(path)])
    path.write_text("a: 1\n---\na: 2\n---\na: 3\n")
    monkeypatch.setattr(documents, "DOCUMENTS", 2)
    with pytest.raises(BadInput, match="more than 2 documents"):
        read_documents([str(path)])
    monkeypatch.undo()
    monkeypatch.setattr(documents, "TOTAL_BYTES", 30)
    with pytest.raises(BadInput, match="together"):
        read_documents([str(path), str(path)])


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nope: cannot be read: no such file"):
        read_documents([str(tmp_path / "nope")])
    with pytest.raises(BadInput, match="directory without manifests"):
        read_documents([str(tmp_path)])
    with pytest.raises(BadInput, match="null byte"):
        read_documents(["a\0b"])


def test_a_config_file_is_one_mapping(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("")
    assert read_mapping(str(path)) == {}
    path.write_text("a: 1\n---\nb: 2\n")
    with pytest.raises(BadInput, match="holds 2 documents"):
        read_mapping(str(path))
    path.write_text("[1]")
    with pytest.raises(BadInput, match="must be a mapping, not a list"):
        read_mapping(str(path))
