"""The versions of two judges, which are part of trial keys, are raised by hand: these tests make it hard to forget.

The digests ignore comments, docstrings, annotations, imports and the names of files.
"""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

import pytest

import metrics
import runner
from runner.benchmarks.nl2repo.verifier import SuiteVerifier
from runner.benchmarks.project_setup.verifier import ProjectSetupVerifier

BENCHMARKS = Path(runner.__file__).parent / "benchmarks"
SUITE_JUDGE = [
    *(BENCHMARKS / "nl2repo" / "pytest_inside").glob("*.py"),
    *(BENCHMARKS / "nl2repo" / f"{name}.py" for name in ("verifier", "judged_copy", "suite_results")),
]
SETUP_JUDGE = [
    *(BENCHMARKS / "project_setup" / "watch_inside").rglob("*.py"),
    *(BENCHMARKS / "project_setup" / "frameworks").glob("*.py"),
    *(BENCHMARKS / "project_setup" / f"{name}.py" for name in ("verifier", "rerun", "watched_results")),
    Path(metrics.__file__).parent / "deviations.py",
]
QUESTION = (
    "The code of a judge has changed; its digest is now {}. Does the judge decide anything differently? "
    "Then set JUDGE_VERSION to this digest. If not, change only the literal here."
)


def digest_of(files: list[Path]) -> str:
    """Return the digest of what source files mean, whatever the files are called."""
    return digest([file.read_text() for file in files])


def digest(sources: list[str]) -> str:
    """Return the digest of what Python sources mean, in any order."""
    meanings = sorted(repr(meaning(ast.parse(source))) for source in sources)
    return hashlib.sha256("\n".join(meanings).encode()).hexdigest()


def meaning(node: object) -> object:
    """Return a syntax tree without what cannot change a decision. It is the same on all versions of Python."""
    if isinstance(node, list):
        return [meaning(child) for child in node if not is_silent(child)]
    if not isinstance(node, ast.AST):
        return node
    fields = ((name, value) for name, value in ast.iter_fields(node) if value is not None and value != [])
    return type(node).__name__, [
        (name, meaning(value)) for name, value in fields if name not in ("annotation", "returns")
    ]


def is_silent(node: object) -> bool:
    """Tell whether a statement is an import, a docstring or the version itself."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Expr(value=ast.Constant(value=str())) | ast.Assign(targets=[ast.Name(id="JUDGE_VERSION")]):
            return True
    return False


def test_judge_of_hidden_suites() -> None:
    found = digest_of(SUITE_JUDGE)
    assert found == "e01a4c40c83ca8e70e6772db26fcba061ce48e6f4c310a2888026d01492dd250", QUESTION.format(found)


def test_judge_of_projects_to_set_up() -> None:
    found = digest_of(SETUP_JUDGE)
    assert found == "6aa08b32dcfab48e07eb4a1819acbdcc2b8393ced7bf185c34eb426b067eb72b", QUESTION.format(found)


def test_versions_are_part_of_what_shapes_a_reward(tmp_path: Path) -> None:
    assert SuiteVerifier(cache=tmp_path).shaping["judge"].startswith("1e4ce56a")
    assert ProjectSetupVerifier().shaping["judge"].startswith("c7b08bcb")


BEFORE = """
import os
JUDGE_VERSION = "1"
def reward(good: int) -> float:
    return good / 2
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("good / 2", "good / 2  # half", True),
        ("    return", '    """Return half."""\n    return', True),
        ("good: int", "good: float", True),
        ("import os", "from os import path", True),
        ('"1"', '"2"', True),
        ("good / 2", "good / 3", False),
        ("good / 2", "good // 2", False),
        ("good: int", "good: int = 0", False),
        ("2", "None", False),
    ],
)
def test_only_decisions_change_a_digest(old: str, new: str, same: bool) -> None:  # noqa: FBT001 - a case of the table
    assert (digest([BEFORE.replace(old, new)]) == digest([BEFORE])) is same
