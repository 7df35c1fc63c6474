"""Reward files that break the format are refused, and none counts as a reward."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from runner.benchmarks.harbor.reward_files import REWARD_BYTES, only_file, read_reward
from runner.errors import VerifierError

TEXTS = {
    "empty": b"",
    "blank": b" \n\t ",
    "a word": b"one",
    "two numbers": b"1 1",
    "two lines": b"1\n0",
    "a comma": b"1,0",
    "a percentage": b"100%",
    "a fraction": b"1/1",
    "hexadecimal": b"0x1",
    "an underscore": b"0_1",
    "nan": b"nan",
    "infinity": b"inf",
    "negative infinity": b"-Infinity",
    "too large for a float": b"1e999",
    "above one": b"1.5",
    "a hundred": b"100",
    "below zero": b"-0.1",
    "quoted": b'"1"',
    "json in text": b'{"reward": 1}',
    "true": b"true",
    "a nul behind": b"1\x00",
    "a nul before": b"\x001",
    "utf-16": "1".encode("utf-16"),
    "utf-16 without a mark": "1".encode("utf-16-le"),
    "utf-32": "1".encode("utf-32"),
    "utf-8 with a mark": b"\xef\xbb\xbf1",
    "not utf-8": b"1\xff",
    "latin digits above ascii": "¹".encode(),
    "arabic digits": "١".encode(),
    "full width digits": "１".encode(),
    "a sign alone": b"+",
    "a point alone": b".",
    "an exponent alone": b"e1",
    "an expression": b"0+1",
    "escape codes": b"\x1b[1m1",
}
JSONS = {
    "empty": b"",
    "blank": b"  ",
    "no pairs": b"{}",
    "a number": b"1",
    "a list": b"[1]",
    "a list of objects": b'[{"reward": 1}]',
    "a text": b'"1"',
    "null": b"null",
    "true": b"true",
    "a reward in quotes": b'{"reward": "1"}',
    "a reward of null": b'{"reward": null}',
    "a reward in a list": b'{"reward": [1]}',
    "a reward in an object": b'{"reward": {"reward": 1}}',
    "nan": b'{"reward": NaN}',
    "infinity": b'{"reward": Infinity}',
    "negative infinity": b'{"reward": -Infinity}',
    "too large for a float": b'{"reward": 1e999}',
    "a whole number without end": b'{"reward": 1' + b"0" * 400 + b"}",
    "nan beside it": b'{"reward": 1, "other": NaN}',
    "words beside it": b'{"reward": 1, "other": "x"}',
    "above one": b'{"reward": 1.5}',
    "below zero": b'{"reward": -1}',
    "none of that name": b'{"a": 1, "b": 1}',
    "another case": b'{"Reward": 1, "b": 0}',
    "broken": b'{"reward": 1',
    "two objects": b'{"reward": 0}{"reward": 1}',
    "the reward twice": b'{"reward": 0, "reward": 1}',
    "the reward twice, once in escapes": b'{"reward": 0, "\\u0072eward": 1}',
    "another name twice": b'{"reward": 1, "speed": 1, "speed": 0}',
    "a comment": b'{"reward": 1} // 0',
    "a trailing comma": b'{"reward": 1,}',
    "single quotes": b"{'reward': 1}",
    "utf-16": '{"reward": 1}'.encode("utf-16"),
    "utf-16 without a mark": '{"reward": 1}'.encode("utf-16-be"),
    "utf-32": '{"reward": 1}'.encode("utf-32"),
    "utf-8 with a mark": b'\xef\xbb\xbf{"reward": 1}',
    "not utf-8": b'{"reward\xff": 1}',
    "deep": b'{"reward":' * 6000,
    "deep lists": b"[" * 60_000,
    "a name that is half a character": b'{"\\ud800": 1}',
    "half a character beside it": b'{"reward": 1, "\\udfff": 0}',
    "a name without end": b'{"reward": 1, "' + b"n" * 5000 + b'": 0}',
    "a thousand columns": json.dumps({f"c{n}": 0 for n in range(1001)}).encode(),
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_text_that_is_not_a_number_in_range_is_refused(case: str) -> None:
    with pytest.raises(VerifierError):
        read_reward({"reward.txt": TEXTS[case]})


@pytest.mark.parametrize("case", JSONS)
def test_json_that_is_not_a_flat_object_of_numbers_is_refused(case: str) -> None:
    """The text file beside it does not count then either."""
    with pytest.raises(VerifierError):
        read_reward({"reward.json": JSONS[case], "reward.txt": b"1"})


@pytest.mark.parametrize(
    ("content", "reward"),
    [("1.0000000000000002", 1.0), ("-0.0", 0.0), ("-1e-12", 0.0), ("1e-400", 0.0), ("+.5", 0.5), ("1.", 1.0)],
)
def test_a_number_just_outside_the_range_counts_as_the_bound(content: str, reward: float) -> None:
    """Rounding may put the mean of many ones above one, in tests that nobody tampered with."""
    found, _ = read_reward({"reward.txt": content.encode()})
    assert str(found) == str(reward)


def _one(path: Path, kind: bytes, content: bytes = b"", size: int | None = None) -> Path:
    member = tarfile.TarInfo("reward.txt")
    member.type, member.linkname, member.size = kind, "/etc/hostname", len(content) if size is None else size
    with tarfile.open(path, "w") as archive:
        archive.addfile(member, io.BytesIO(content) if kind == tarfile.REGTYPE else None)
    return path


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.DIRTYPE,
        tarfile.FIFOTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        b"Z",
    ],
    ids=["link", "hard link", "folder", "pipe", "device", "disk", "odd"],
)
def test_only_a_regular_file_is_read(tmp_path: Path, kind: bytes) -> None:
    with pytest.raises(VerifierError, match="not a regular file"):
        only_file(_one(tmp_path / "t", kind))


@pytest.mark.parametrize("size", [REWARD_BYTES + 1, 10_000_000])
def test_a_huge_reward_is_refused_unread(tmp_path: Path, size: int) -> None:
    with pytest.raises(VerifierError, match="bytes long"):
        only_file(_one(tmp_path / "t", tarfile.REGTYPE, b"1" * size))


def test_an_empty_tar_is_refused(tmp_path: Path) -> None:
    tarfile.open(tmp_path / "t", "w").close()
    with pytest.raises(VerifierError, match="not a regular file"):
        only_file(tmp_path / "t")
