"""The prompt of a task: context, the whole help, and one verified example per class (section 2.2.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from runner.benchmarks.cli_tool_bench.construction.golden import GoldenClass
from runner.benchmarks.cli_tool_bench.construction.recipe import INSTALL, Language
from runner.records.cases import FILES_ROOT, CaseResult

WRITTEN_IN = {"python": "Python 3", "javascript": "JavaScript for Node.js", "go": "Go"}
TEMPLATE = """\
# {tool}

Write the command-line tool `{tool}` in {language}, from scratch, in your working directory. `{install}` must make the
command `{tool}` available to every user of the machine. Dependencies that it names are there only if that command can
fetch them; if there is no network, use nothing but the standard library. Of your tool, exit code, standard output and
what it does to files are compared with those of an existing tool on many inputs; what it writes to standard error is
free.

## What it does

{context}

## Its help

{help}

## Examples

One of each kind, as the existing tool does it; files lie in the working directory, `{folder}`.

{examples}
"""
LONGEST_PART = 4_000
"""Longest file or output that an example shows, in characters."""


def compose(
    tool: str, language: Language, context: str, pages: Mapping[str, str], classes: Sequence[GoldenClass]
) -> str:
    """Return the prompt. `pages` is command line -> help page. `pages` and `context` are scrubbed already."""
    return TEMPLATE.format(
        tool=tool,
        language=WRITTEN_IN[language],
        install=INSTALL[language],
        context=context.strip(),
        help="\n\n".join(f"{_block(f'$ {command}', page)}" for command, page in pages.items()),
        folder=FILES_ROOT,
        examples="\n\n".join(_section(number, one) for number, one in enumerate(classes, start=1)),
    )


def _section(number: int, golden: GoldenClass) -> str:
    parts = [f"### {number}. {golden.name}", *_files(golden.example.case.files)]
    case = golden.example.case
    if case.prep:
        parts += ["After this preparation:", _block(case.prep)]
    set_ = "".join(f"{name}={value!r} " for name, value in case.env.items())
    parts.append(_block(f"$ {set_}{case.command}", golden.example_result.stdout))
    return "\n\n".join([*parts, *_effects(golden.example_result)])


def _files(files: Mapping[str, str]) -> Iterable[str]:
    for name, text in files.items():
        yield f"`{name}`:" if text else f"`{name}` is empty."
        if text:
            yield _block(text)


def _effects(result: CaseResult) -> Iterable[str]:
    for change in result.changes:
        path = change.path.removeprefix(f"{FILES_ROOT}/")
        if change.change == "deleted":
            yield f"Afterwards `{path}` is gone."
        elif change.kind == "file" and change.text is not None:
            yield f"Afterwards `{path}` holds:" if change.text else f"Afterwards `{path}` is empty."
            if change.text:
                yield _block(change.text)
        else:
            yield f"Afterwards there is a {change.kind} `{path}`."


def _block(*texts: str) -> str:
    """Return texts as a fenced block, with a fence that none of them contains."""
    lines = "\n".join(_cut(text).rstrip("\n") for text in texts if text)
    fence = "```"
    while fence in lines:
        fence += "`"
    return f"{fence}text\n{lines}\n{fence}"


def _cut(text: str) -> str:
    return (
        text if len(text) <= LONGEST_PART else f"{text[:LONGEST_PART]}\n[... {len(text)} characters in all]"
    )
