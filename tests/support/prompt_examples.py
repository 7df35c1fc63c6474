"""Write the examples at the end of a CLI-Tool-Bench prompt: a case of each class, with the reference's effects.

`python -m tests.support.prompt_examples TASK RUN` rewrites them; RUN is the verifier's folder of the reference.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from runner.benchmarks.cli_tool_bench.case_file import read_cases
from runner.benchmarks.cli_tool_bench.reference_runs import StoredCases
from runner.records.cases import Case, CaseResult

HEADING = "## Examples\n"
INTRODUCTION = (
    "One of each kind, as the existing tool does it; files lie in the working directory, `/test_data`.\n"
)


def chosen(cases: Sequence[Case]) -> list[int]:
    """Return the index of a positive case of each class, neither its shortest nor a long one."""
    good: dict[str, list[int]] = {case.command_class: [] for case in cases}
    for index, case in enumerate(cases):
        if not case.negative:
            good[case.command_class].append(index)
    by_size = [sorted(some, key=lambda index: len(cases[index].model_dump_json())) for some in good.values()]
    return [some[len(some) // 4] for some in by_size]


def section(cases: Sequence[Case], results: Sequence[CaseResult]) -> str:
    """Return all examples as Markdown. `results` are those of `cases`, in the same order."""
    examples = [
        _example(number, cases[index], results[index]) for number, index in enumerate(chosen(cases), start=1)
    ]
    return "\n".join([HEADING, INTRODUCTION, *examples])


def _example(number: int, case: Case, result: CaseResult) -> str:
    lines = [f"### {number}. {case.command_class}\n"]
    for name, text in case.files.items():
        lines += [f"`{name}`:\n", _block(text)]
    lines.append(_block(f"$ {case.command}\n{result.stdout}"))
    lines += _effects(result)
    return "\n".join(lines)


def _effects(result: CaseResult) -> Iterator[str]:
    """Yield lines about the files that the case changed."""
    for change in result.changes:
        name = change.path.removeprefix("/test_data/")
        if change.change == "deleted":
            yield f"Afterwards `{name}` is gone.\n"
        elif change.kind == "directory":
            yield f"Afterwards there is a folder `{name}`.\n"
        else:
            yield f"Afterwards `{name}` holds:\n"
            yield _block(change.text or "")


def _block(text: str) -> str:
    ending = "" if text.endswith("\n") or not text else "\n"
    return f"```text\n{text}{ending}```\n"


def main(task: Path, run: Path) -> None:
    """Put the examples of a run into a prompt."""
    cases = read_cases(task / "cases.jsonl")
    results = StoredCases.model_validate_json(run.read_bytes()).of(cases).results
    prompt = task / "instruction.md"
    prompt.write_text(prompt.read_text().partition(HEADING)[0].rstrip() + "\n\n" + section(cases, results))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
