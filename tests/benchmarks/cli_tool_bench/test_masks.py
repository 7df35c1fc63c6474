"""Masks of the authors' scripts as replacements: what is read of them, what they do in a trial, and attacks on them."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path

import pytest
from pydantic import ValidationError

from runner.benchmarks.cli_tool_bench import normalize_outputs
from runner.benchmarks.cli_tool_bench.normalizers import Normalizer, normalize
from runner.benchmarks.cli_tool_bench.published_tasks.masks import Masks, read_masks
from runner.errors import TaskError
from runner.records.cases import CaseResult
from runner.sandbox.docker.provider import DockerSandboxes
from tests.benchmarks.cli_tool_bench.test_verifier import REFERENCE, Bench, sandboxes, written
from tests.support.checkout_factory import BASE
from tests.support.tool_task_factory import SCORES, TOOL, furnished, make_tool_task, tool_dataset

__all__ = ["sandboxes"]
ESCAPES = ("\\x1b\\[[0-9;]*m", "")
"""The replacement of the base class: its pattern is a text without a prefix, where `\\x1b` is a character."""


def masks(body: str, top: str = "") -> Masks:
    """Read a method `sanitize_stdout` with this body, which begins in line 6."""
    method = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    script = f"{top}\nimport re\nclass Adapter(BaseRepoAdapter):\n    SEEN = 'seen'\n"
    return read_masks(f"{script}    def sanitize_stdout(self, raw_stdout):\n{method}\n", BASE)


def pairs(found: Masks) -> list[tuple[str, str]]:
    return [(rule.pattern, rule.replacement) for rule in found.normalizers]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return re.sub(r'in \\d+s', 'in Ns', raw_stdout)", [("in \\d+s", "in Ns")]),
        ("return re.sub('a', 'b', raw_stdout, flags=re.M | re.IGNORECASE)", [("(?im)a", "b")]),
        ("return re.sub(pattern='a', repl='b', string=raw_stdout.strip())", [("a", "b")]),
        ("return re.compile('a+', re.S).sub('b', raw_stdout)", [("(?s)a+", "b")]),
        ("out = CLOCK.sub('', raw_stdout)\nreturn out.replace('a.b', '\\\\1')", [("c", ""), ("a\\.b", "\\\\1")]),
        ("return re.sub('a' 'b' + 'c', self.SEEN, raw_stdout)", [("abc", "seen")]),
        ("for old, new in [('a', '1'), ('b', '2')]:\n    raw_stdout = re.sub(old, new, raw_stdout)\nreturn raw_stdout",
         [("a", "1"), ("b", "2")]),
        ("if not raw_stdout:\n    return ''\nt = raw_stdout\nfor old in WORDS:\n    t = t.replace(old, '')\nreturn t",
         [("x", ""), ("y", "")]),
        # A value that is not used is not replaced, as in the authors' own script.
        ("out = re.sub('a', '', raw_stdout)\nout = re.sub('b', '', raw_stdout)\nreturn out", [("b", "")]),
    ],
)  # fmt: skip
def test_replacements_that_stand_in_the_script_are_read(body: str, expected: list[tuple[str, str]]) -> None:
    found = masks(body, "CLOCK = re.compile('c'); WORDS = ('x', 'y')")
    assert (pairs(found), found.remarks) == (expected, ())


def test_replacements_of_the_base_class_come_where_they_are_called() -> None:
    first = masks("out = super().sanitize_stdout(raw_stdout)\nreturn re.sub('a', 'b', out)")
    last = masks("return super().sanitize_stdout(re.sub('a', 'b', raw_stdout))")
    (inherited,) = {*pairs(first)} - {("a", "b")}
    assert (pairs(first), pairs(last)) == ([inherited, ("a", "b")], [("a", "b"), inherited])


@pytest.mark.parametrize("body", ["return raw_stdout", "return super().sanitize_stdout(raw_stdout)", "pass"])
def test_a_method_that_masks_nothing_leaves_nothing(body: str) -> None:
    assert masks(body) == Masks((), ())


@pytest.mark.parametrize(
    "line",
    [
        "out = re.sub('b', lambda found: '', out)",
        "out = re.sub('b', '', out, count=1)",
        "out = re.sub('b', '', out, 1)",
        "out = re.sub('(', '', out)",
        "out = re.sub('b', r'\\2', out)",
        "out = re.sub('b' * 9999999999, '', out)",
        "out = '\\n'.join(sorted(out.splitlines()))",
        "out = self.helped(out)",
        "out: str = out[:9]",
        "out += '1'",
        "if 'x' in out: out = re.sub('b', '', out)",
        "while True: out = re.sub('b', '', out)",
        "for x in range(10**9): out = re.sub('b', '', out)",
        "import os; os.system('touch /tmp/ran')",
    ],
)
def test_what_is_not_read_is_named_and_leaves_the_rest(line: str) -> None:
    found = masks(f"out = re.sub('a', '', raw_stdout)\n{line}\nout = re.sub('c', '', out)\nreturn out")
    assert pairs(found) == [("a", ""), ("c", "")]
    assert found.remarks == ("line 7 of its sanitize_stdout is not taken over",)


@pytest.mark.parametrize(
    "body",
    [
        "\n".join(["n0 = 'ab'", *(f"n{i + 1} = n{i} + n{i}" for i in range(60)), "return re.sub(n60, '', raw_stdout)"]),
        "n = n\nreturn re.sub(n, '', raw_stdout)",
        "".join("  " * i + f"for x{i} in 'a', 'b', 'c', 'd':\n" for i in range(15)) + "  " * 15
        + "raw_stdout = raw_stdout.replace(x1, '')",
        "return re.sub(" + "+".join(["'a'"] * 5000) + ", '', raw_stdout)",
        "\n".join(["raw_stdout = re.sub('a', 'b', raw_stdout)"] * 5000 + ["return raw_stdout"]),
    ],
    ids=["names of names", "a name of itself", "loops", "a long sum", "many"],
)  # fmt: skip
def test_a_hostile_script_is_given_up(body: str) -> None:
    began = time.monotonic()
    found = masks(body)
    assert not found.normalizers
    assert len(found.remarks) == 1
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("script", ["def", "x = (", "\0"])
def test_a_script_that_is_not_python_is_refused(script: str) -> None:
    with pytest.raises(TaskError, match=r"start\.py is not Python"):
        read_masks(script, BASE)


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [("(", ""), ("a", r"\1"), ("a" * 1001, ""), ("a", "b" * 201), ("", ""), ("\ud800", ""), ("(?P<n>a)", r"\g<m>")],
)  # fmt: skip
def test_a_normalizer_is_checked(pattern: str, replacement: str) -> None:
    with pytest.raises(ValidationError):
        Normalizer(pattern=pattern, replacement=replacement)


def results(*texts: str) -> list[CaseResult]:
    return [CaseResult(exit_code=0, stdout=text, how="copy") for text in texts]


def outputs(normalizers: list[Normalizer], *texts: str) -> list[str]:
    return [result.stdout for result in normalize(results(*texts), normalizers)]


def test_replacements_are_made_in_their_order() -> None:
    rules = [Normalizer(pattern=r"\d+s", replacement="Ns"), Normalizer(pattern="(N)s", replacement=r"<\1>")]
    assert outputs(rules, "took 12s", "", "ü\ud800 3s\n", "Ns", "took 12s") == [
        *("took <N>", "", "ü\ud800 <N>\n", "<N>", "took <N>"),
    ]


ATTACKS = {
    "nested quantifiers": (r"(a+)+$", "a" * 60 + "b{}"),
    "a quadratic search": (r"\d+\.\d+ms", "1" * (1 << 18) + "{}"),
    "alternatives": (r"(a|a)*b$", "a" * 60 + "{}"),
    "a lazy gap": (r"a.*?b.*?c.*?d", "ab" * 20_000 + "{}"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_output_that_makes_a_pattern_slow_stays_as_it_is_and_stalls_nothing(attack: str) -> None:
    """In one process, such a match takes hours and cannot be interrupted."""
    pattern, text = ATTACKS[attack]
    used = time.monotonic()
    rules = [Normalizer(pattern=pattern, replacement="")]
    assert outputs(rules, "before", text.format(1)) == ["before", text.format(1)]
    assert time.monotonic() - used < 60 + 10 * normalize_outputs.CPU_SECONDS


def test_many_outputs_that_make_a_pattern_slow_take_no_longer_than_a_few() -> None:
    """What comes after the first slow ones is given up, whatever made them slow."""
    slow = [text.format(number) for _, text in ATTACKS.values() for number in range(10)]
    rules = [Normalizer(pattern=pattern, replacement="") for pattern, _ in ATTACKS.values()]
    used = time.monotonic()
    assert outputs(rules, "before", *slow) == ["before", *slow]
    limit = normalize_outputs.CPU_SECONDS * normalize_outputs.SLOW
    assert time.monotonic() - used < 60 + 10 * limit


def test_an_output_that_grows_beyond_all_bounds_stays_as_it_is() -> None:
    rules = [Normalizer(pattern="(?=[ax])", replacement="x" * 200)] * 4
    text = "a" * (1 << 20)
    assert outputs(rules, text) == [text]


TIMED = TOOL.replace(
    'print(len(words), "words")', 'print(len(words), "words in", __import__("time").time_ns(), "ns")'
)
MASK = """
[[normalize]]
pattern = '\\d+ ns'
replacement = 'N ns'
"""


@pytest.fixture
def masked(tmp_path: Path, common: Path, sandboxes: DockerSandboxes) -> Bench:
    """A task whose tool prints how long it took, with a mask for that."""
    make_tool_task(tmp_path / "tasks", tool=TIMED)
    with (tmp_path / "tasks" / "tally" / "task.toml").open("a") as file:
        file.write(MASK)
    return Bench(tmp_path, furnished(tmp_path / "cache", common, "results"), sandboxes)


@pytest.mark.docker
def test_masked_outputs_are_compared_on_both_sides(masked: Bench, tmp_path: Path) -> None:
    """Without the mask, nothing of the class could be judged."""
    verdict = masked.judge(REFERENCE, tmp_path)
    assert {name: verdict.components[name] for name in SCORES} == dict.fromkeys(SCORES, 1.0)
    assert (verdict.components["unstable_cases"], verdict.components["moving_cases"]) == (0, 0)
    wrong = masked.judge(written(TIMED.replace("words in", "word in")), tmp_path)
    assert (wrong.reward, wrong.components["exec"]) == (0.5, 1.0)
    hostile = TIMED.replace('"words in"', '"words in", "1" * (1 << 20)')
    slow = masked.judge(written(hostile), tmp_path)
    assert (slow.reward, slow.components["exec"]) == (0.5, 1.0)


def test_only_a_task_with_a_mask_has_another_digest(tmp_path: Path) -> None:
    folder = make_tool_task(tmp_path / "tasks")
    (before,) = tool_dataset(tmp_path / "tasks", tmp_path).tasks()
    assert "normalize" not in (folder / "task.toml").read_text()
    with (folder / "task.toml").open("a") as file:
        file.write(MASK)
    (after,) = tool_dataset(tmp_path / "tasks", tmp_path).tasks()
    assert (after.refused, before.refused) == (None, None)
    assert before.digest != after.digest
    with (folder / "task.toml").open("a") as file:
        file.write("\n[[normalize]]\npattern = '('\nreplacement = ''\n")
    (refused,) = tool_dataset(tmp_path / "tasks", tmp_path).tasks()
    assert "normalize" in str(refused.refused)
