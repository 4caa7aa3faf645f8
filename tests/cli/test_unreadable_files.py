"""Files that cannot be read: every command that reads one says which, in a sentence, and ends with code 2."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from enbloc.cli.main import cli
from enbloc.cluster.embedded.api.datadir import DataDirError
from enbloc.cluster.embedded.api.private_files import NotPrivate, read_private, write_private
from enbloc.gangs.record_digests import new_keyring, write_keys
from enbloc.up.cluster import read_keyring

DAMAGED = {
    "not UTF-8": b"a: \xe9\xff\xfe\n",
    "a surrogate": b"a: \xed\xa0\x80\n",
    "UTF-16": "a: 1\n".encode("utf-16"),
    "binary": b"\x00\x01\x02",
    "cut off": b'{"a": [1, {"b',
    "compressed": gzip.compress(b"a: 1\n"),
    "deep": b"[" * 100_000,
}
COMMANDS = {
    "sim": ["sim", "FILE.yaml"],
    "sim --config": ["sim", "OK.yaml", "--config", "FILE.yaml"],
    "lint": ["lint", "FILE.yaml"],
    "config": ["config", "--config", "FILE.yaml"],
    "install": ["install", "--config", "FILE.yaml"],
    "explain": ["explain", "x", "--from", "FILE.yaml"],
    "whatif --from": ["whatif", "--from", "FILE.yaml", "drain", "n"],
    "whatif submit": ["whatif", "--from", "OK.yaml", "submit", "FILE.yaml"],
    "whatif config": ["whatif", "--from", "OK.yaml", "config", "FILE.yaml"],
    "replay swf": ["replay", "FILE.swf"],
    "replay csv": ["replay", "FILE.csv"],
    "replay gz": ["replay", "FILE.swf.gz"],
    "replay jsonl": ["replay", "FILE.jsonl"],
    "dashboard": ["dashboard", "FILE.json"],
    "gangs": ["gangs", "--kubeconfig", "FILE"],
    "snapshot": ["snapshot", "--kubeconfig", "FILE"],
    "capture": ["capture", "--kubeconfig", "FILE"],
    "shadow": ["shadow", "--kubeconfig", "FILE"],
    "run": ["run", "--kubeconfig", "FILE"],
    "run --config": ["run", "--config", "FILE.yaml"],
    "up": ["up", "FILE.yaml"],
    "up --config": ["up", "--config", "FILE.yaml"],
}


def refused(tmp_path: Path, arguments: list[str], content: bytes | None) -> str:
    """What a command says to a file; `None`: to a directory in its place."""
    (tmp_path / "OK.yaml").write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: '1'}}\n"
    )
    [name] = [one for one in arguments if one.startswith("FILE")]
    file = tmp_path / name
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    given = [str(tmp_path / one) if one.startswith(("FILE", "OK")) else one for one in arguments]
    answer = CliRunner(env={"HOME": str(tmp_path)}).invoke(cli, given)
    assert isinstance(answer.exception, SystemExit), answer.exception
    assert answer.exit_code == 2, answer.output
    assert str(file) in answer.output.replace("\n", "")
    return answer.output


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("damage", [*DAMAGED, "a directory"])
def test_a_file_that_cannot_be_read_is_named(command: str, damage: str, tmp_path: Path) -> None:
    assert "Traceback" not in refused(tmp_path, COMMANDS[command], DAMAGED.get(damage))


KEYS = {**DAMAGED, "no key": b"{}", "a number": b'{"key-1": 3}', "a short key": b'{"key-1": "c2hvcnQ="}'}


@pytest.mark.parametrize("damage", KEYS)
def test_s2_damaged_record_keys_are_not_replaced_in_silence(damage: str, tmp_path: Path) -> None:
    file, content = tmp_path / "record-keys.json", KEYS[damage]
    write_private(file, content)
    with pytest.raises(DataDirError, match=r"record-keys.json .* move it away"):
        read_keyring(file)
    assert file.read_bytes() == content


def test_s2_record_keys_are_created_once(tmp_path: Path) -> None:
    file = tmp_path / "record-keys.json"
    made = read_keyring(file)
    assert read_keyring(file) == made
    write_private(file, b"")  # it was created, and its content not written yet
    assert read_keyring(file) != made
    write_private(file, json.dumps(write_keys(new_keyring())).encode())
    assert list(read_keyring(file).keys) == ["key-1"]


def test_a_directory_in_place_of_a_private_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotPrivate, match="it is not a regular file; move it away"):
        write_private(tmp_path, b"")
    with pytest.raises(NotPrivate, match="it is not a regular file; move it away"):
        read_private(tmp_path)


RECORDED = {
    **DAMAGED,
    "not compressed": b'["head", {}]\n',
    "no list": gzip.compress(b"3\n"),
    "an empty line": gzip.compress(b"[]\n"),
    "no string": gzip.compress(b"[[1]]\n"),
    "no head": gzip.compress(b'["e", "ADDED", "Pod", {}]\n'),
    "an empty head": gzip.compress(b'["head", {}]\n'),
    "no YAML": gzip.compress(b'["head", {"config": "a: [", "names": [], "version": "1"}]\n'),
    "a short event": gzip.compress(b'["head", {"config": "{}", "names": [], "version": "1"}]\n["e", "ADDED"]\n'),
    "not UTF-8 within": gzip.compress(b'["head", {"config": "{}", "names": [], "version": "\xe9\xff"}]\n'),
    "deep within": gzip.compress(b"[" * 100_000 + b"\n"),
    "damaged within": gzip.compress(b'["head", {}]\n' * 1000)[:20] + b"\xff" * 40,
}


@pytest.mark.parametrize("damage", RECORDED)
def test_a_recording_that_cannot_be_read_is_named(damage: str, tmp_path: Path) -> None:
    (tmp_path / "segment-000001.jsonl.gz").write_bytes(RECORDED[damage])
    (tmp_path / "base.jsonl.gz").write_bytes(RECORDED[damage])
    answer = CliRunner().invoke(cli, ["replay-recording", str(tmp_path)])
    assert isinstance(answer.exception, SystemExit), answer.exception
    assert answer.exit_code == 2
    assert str(tmp_path) in answer.output
