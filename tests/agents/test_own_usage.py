"""An agent's own count of its tokens: whatever it wrote, the result is four plausible counts or a `ValueError`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from runner.agents import read_inside
from runner.agents.cli import CliAgent
from runner.agents.own_usage import MOST_TOKENS, parse
from runner.records import OwnUsage, Usage, UsageReport
from tests.agents.trials import shipped

REPORT = UsageReport(
    input_tokens="[?type=='usage'].[fresh, hit][]",
    cache_hit_tokens="[?type=='usage'].hit",
    output_tokens="[?type=='usage'].out",
)
COUNTS = OwnUsage(input_tokens=9, cache_hit_tokens=4, output_tokens=7)


def line(**changed: Any) -> str:
    return json.dumps({"type": "usage", "fresh": 5, "hit": 4, "out": 7} | changed)


@pytest.mark.parametrize(
    "text",
    [
        line(),
        f"\n {line()}\n\n",
        f'{{"type": "other"}}\n{line()}\n[]',
        json.dumps(json.loads(line()), indent=4),
    ],
)
def test_numbers_are_found_among_json_values_of_any_layout(text: str) -> None:
    assert parse(REPORT, text) == COUNTS


def test_calls_are_summed_and_what_nobody_asked_for_is_not_said() -> None:
    counts = parse(REPORT, f"{line()}{line(hit=None)}{line(fresh=1)}")
    assert counts == OwnUsage(
        input_tokens=19, cache_hit_tokens=8, output_tokens=21, cache_creation_tokens=None
    )


@pytest.mark.parametrize("text", ["", " \n", "[]", '{"type": "usage"}'])
def test_nothing_said_is_none_and_not_zero(text: str) -> None:
    assert parse(REPORT, text) is None


@pytest.mark.parametrize(
    "text",
    [
        line(out=-1),
        line(out=MOST_TOKENS + 1),
        line(out=1.5),
        line(out=True),
        line(out="7"),
        line(out=float("nan")),
        line(out=float("inf")),
        line(out={"a": 1}),
        '{"type": "usage", "out": 1' + "0" * 5000 + "}",
        line()[:-1],
        f"{line()} and that was all",
        "\x00",
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
)
def test_hostile_and_broken_words_are_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse(REPORT, text)


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_no_text_escapes_as_anything_else(text: str) -> None:
    try:
        counts = parse(UsageReport(input_tokens="[]", output_tokens="[].out"), text)
    except ValueError:
        return
    assert counts is None or all(count is None or count >= 0 for _, count in counts)


def test_a_difference_is_told_count_by_count() -> None:
    counted = Usage(input_tokens=10, cache_creation_tokens=3, cache_hit_tokens=4, output_tokens=5)
    assert COUNTS.beyond(counted) == OwnUsage(input_tokens=-1, cache_hit_tokens=0, output_tokens=2)


def test_a_subagents_tokens_are_kimi_clis_too() -> None:
    """The main agent's file has them, one payload deeper."""
    usage = {"input_other": 6, "input_cache_read": 4, "input_cache_creation": 0, "output": 5}
    status = {"type": "StatusUpdate", "payload": {"token_usage": usage}}
    deeper = {"type": "SubagentEvent", "payload": {"event": status}}
    report = shipped("kimi_cli").usage
    assert report
    counts = parse(report, "".join(json.dumps({"message": message}) for message in (status, deeper)))
    assert counts == OwnUsage(input_tokens=20, cache_creation_tokens=0, cache_hit_tokens=8, output_tokens=10)


def test_an_expression_that_is_none_fails_at_the_door() -> None:
    usage = {"input_tokens": "[", "output_tokens": "a"}
    with pytest.raises(ValidationError, match="Invalid jmespath expression"):
        CliAgent.model_validate({"name": "a", "version": "1", "argv": ("a", "{prompt}"), "usage": usage})


def read(pattern: Path, most: int = 100) -> subprocess.CompletedProcess[str]:
    """Run the reader as the runtime does in a sandbox."""
    argv = [sys.executable, "-I", "-S", "-c", Path(read_inside.__file__).read_text(), str(pattern), str(most)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


def test_files_are_printed_in_their_order(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "wire").write_text(name)
    assert read(tmp_path / "*" / "wire").stdout == "a\nb\n"
    assert read(tmp_path / "*" / "nothing").stdout == ""


@pytest.mark.parametrize("thing", ["link", "pipe", "directory", "large"])
def test_what_is_no_modest_regular_file_is_not_read(tmp_path: Path, thing: str) -> None:
    """A link could lead to a file that only root may read; reading a pipe would not end."""
    path, other = tmp_path / "x", tmp_path / "y"
    other.write_text("secret")
    make: dict[str, Callable[[], object]] = {
        "link": lambda: path.symlink_to(other),
        "pipe": lambda: os.mkfifo(path),
        "directory": path.mkdir,
        "large": lambda: path.write_text("x" * 101),
    }
    make[thing]()
    assert "secret" not in refused(path)


def test_a_device_without_an_end_is_not_read() -> None:
    refused(Path("/dev/zero"))


def refused(path: Path) -> str:
    ended = read(path)
    assert ended.returncode != 0
    return ended.stdout + ended.stderr
