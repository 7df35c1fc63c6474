"""The words with which an agent is given a document: our own, or those of the authors' runner."""

from __future__ import annotations

from typing import Literal

from runner.benchmarks.nl2repo.published_folder import DOCUMENT
from runner.benchmarks.nl2repo.suite import WORKSPACE

Wording = Literal["ours", "paper"]

_OURS = """\
Build a Python project in the current directory, {workdir}, from the document {document}, which is all that you get. \
Read the whole document first. Write every module that it describes, with exactly the names, signatures and behaviour \
that it gives, and the packaging files, so that `pip install -e .` installs the library. It will be judged by a test \
suite that you do not have: whatever the document says may be tested.{tests}
Work on your own until the whole project is done; nobody answers questions.
"""
_OUR_TESTS = (
    " Those tests are in the directory already; they must pass as they are, and are put back before judging."
)
_PAPER = """\
{document} in {workdir}, the current directory, describes a project. Implement all of it as the document requires, so \
that it runs directly in this directory and can be used as the document's API Usage Guide says.{tests} Do this step by \
step.
"""
"""Instruction of the authors' runner to OpenHands, in our words: the document is the only requirement, hidden tests are
not mentioned, and nothing says whether anybody answers questions."""
_PAPER_TESTS = " The tests that judge it are in the directory already; they must pass as they are."


def instruction(wording: Wording, *, revealed: bool) -> str:
    """Return the instruction of any task. `revealed` says whether the agent has the tests."""
    words, tests = (_PAPER, _PAPER_TESTS) if wording == "paper" else (_OURS, _OUR_TESTS)
    return words.format(workdir=WORKSPACE, document=DOCUMENT, tests=tests if revealed else "")
