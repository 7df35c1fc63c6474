"""The questions to a model that writes a document, entry by entry (section 3.1.2). Code and tests are data only."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from runner.benchmarks.nl2repo.specification.entries import Entry
from runner.benchmarks.nl2repo.specification.used_names import TestFile
from runner.benchmarks.sources.answers import Question
from runner.benchmarks.sources.fences import RULE, enclosed, token_of

LONGEST_SOURCE = 24_000
"""Longest source of one entry that a model sees, in characters."""
LONGEST_TESTS = 16_000
"""Longest excerpt of tests that a model sees with an entry, in characters."""
LONGEST_README = 20_000
OVERVIEW, EXAMPLES = "overview.md", "examples.md"
_STYLE = """\
Answer in plain Markdown without headings, and with nothing else. Use your own words: do not quote the code or its
comments. Whoever reads it has neither code nor tests, and must be able to write the library again so that the tests
pass.
"""
ENTRY = """\
You write one entry of the specification of a Python library, `{name}`: {kind} `{signature}`.
{fenced}
Say what it is for; every parameter, by name, with its type and default; what it returns; every exception that it
raises and when; texts of messages that tests compare; and each rule of its behaviour that the code shows or a test
checks. Say nothing that the code does not do.
"""
DESCRIPTION = """\
You write the section "Project Description" of the specification of a Python library, `{name}`, for somebody who will
write it again without seeing it: in 80 to 300 words its goals, its scope, its main parts and how they work together.
{fenced}
"""
NODES = """\
You write the section "Implementation Nodes" of the specification of a Python library, `{name}`: one to three short
examples of how its important parts are imported and used, with their results.
{fenced}
Answer with one block of Python, and nothing else. Use only modules and names that the tests import.
"""


def overview_question(name: str, readme: str, entries: Sequence[Entry]) -> Question:
    """Return the question for the description of a library."""
    listed = "\n".join(f"{entry.kind} {entry.name}{entry.signature}" for entry in entries if entry.public)
    texts = {"readme": readme[:LONGEST_README], "inventory": listed[:LONGEST_SOURCE]}
    return _question(OVERVIEW, DESCRIPTION + _STYLE, {"name": name}, texts)


def examples_question(name: str, statements: Sequence[str], tests: Sequence[TestFile]) -> Question:
    """Return the question for examples of the use of a library."""
    texts = {
        "imports": "\n".join(statements),
        "tests": "\n\n".join(file.text for file in tests)[:LONGEST_TESTS],
    }
    return _question(EXAMPLES, NODES, {"name": name}, texts)


def entry_question(name: str, entry: Entry, source: str, tests: Sequence[TestFile]) -> Question:
    """Return the question for one entry; `source` is the code of the entry."""
    texts = {"code": source[:LONGEST_SOURCE], "tests": _excerpt(entry, tests)}
    kind = "the function or method" if entry.parameters is not None else f"the {entry.kind}"
    about = {"name": name, "kind": kind, "signature": f"{entry.name}{entry.signature}"}
    return _question(f"entries/{entry.name}.md", ENTRY + _STYLE, about, texts)


def entry_source(root: Path, entry: Entry) -> str:
    """Return the lines of code that define an entry, as they stand."""
    text = file_source(root, entry)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and node.lineno == entry.line:
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    return ""


def file_source(root: Path, entry: Entry) -> str:
    """Return the text of the file that defines an entry."""
    return (root / entry.file).read_text("utf-8", errors="replace")


def _excerpt(entry: Entry, tests: Sequence[TestFile]) -> str:
    """Return the functions of the tests that name an entry, or the class of an `__init__`, up to the limit."""
    word = entry.owner if entry.short == "__init__" else entry.short
    named = re.compile(rf"\b{re.escape(word)}\b")
    parts = []
    for file in tests:
        lines = file.text.splitlines()
        for node in ast.walk(file.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                part = "\n".join(lines[first - 1 : node.end_lineno])
                if named.search(part):
                    parts.append(part)
    return "\n\n".join(dict.fromkeys(parts))[:LONGEST_TESTS]


def _question(file: str, template: str, about: dict[str, str], texts: dict[str, str]) -> Question:
    token = token_of(**texts)
    return Question(
        file=file,
        step="document",
        instruction=template.format(**about, fenced=RULE.format(token=token)),
        material=enclosed(token, **texts),
    )
