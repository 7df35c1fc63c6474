"""The account of job=environment: what became of a project, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.benchmarks.project_setup.deliverables import DOCKERFILE, PROJECT, SCRIPT, WORKSPACE
from runner.benchmarks.project_setup.rerun import plain
from runner.records import Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner.benchmarks.project_setup.deliverables import Rerun
    from runner.records import ErrorInfo, TrialRecord

LINES = 40
"""Number of lines of output that are quoted when something went wrong."""


def summary(measured: Rerun | None) -> str:
    """Return one sentence on the project's tests."""
    if measured is None:
        return "Nothing was run from scratch."
    if not measured.outcomes:
        return "The image was built, and no test was executed." if measured.image else "It was not built."
    return f"From scratch: {measured.outcomes.words}."


def account(name: str, record: TrialRecord, measured: Rerun | None, dockerfile: str | None) -> str:
    """Return the account in Markdown. `dockerfile` is the text of the agent's Dockerfile, if there is one."""
    by = record.agent if record.model == "none" else f"{record.agent} with {record.model}"
    lines = [f"# {name}", "", f"{by} worked on it on {record.finished_at:%Y-%m-%d}. {summary(measured)}", ""]
    if measured and measured.readings:
        lines += [*_table(measured), ""]
    if measured and measured.outcomes and dockerfile is not None:
        lines += [*_usage(name, dockerfile), ""]
    lines += [*_spent(record, measured), ""]
    return "\n".join([*lines, *_what_went_wrong(record, measured)]).rstrip() + "\n"


def _table(measured: Rerun) -> Iterator[str]:
    yield "| framework | passed | failed | skipped | read from |"
    yield "|---|---:|---:|---:|---|"
    for reading in measured.readings:
        outcomes = reading.outcomes
        way = "its result files" if reading.way == "file" else "what it prints"
        yield f"| {reading.framework} | {outcomes.passed} | {outcomes.failed} | {outcomes.skipped} | {way} |"


def _usage(name: str, dockerfile: str) -> Iterator[str]:
    base = "--build-arg BASE=assay-base:TAG " if "${BASE}" in dockerfile or "$BASE" in dockerfile else ""
    tag = name.lower()
    yield f"To run it again, beside `{DOCKERFILE}` and `{SCRIPT}`, with the project at PATH:"
    yield ""
    yield f"    cp -r PATH {PROJECT}"
    yield f"    docker build {base}-t {tag} ."
    script = f'-v "$PWD/{SCRIPT}:/{SCRIPT}:ro"'
    yield f"    docker run --rm {script} -w {WORKSPACE}/{PROJECT} {tag} bash /{SCRIPT}"
    if base:
        yield ""
        yield "BASE is any Debian 13 with python3 and git; `docker images assay-base` shows the TAG of ours."


def _spent(record: TrialRecord, measured: Rerun | None) -> Iterator[str]:
    cost = "an unknown sum" if record.cost_usd is None else f"{record.cost_usd:.4f} USD"
    tokens = f"{record.usage.input_tokens} tokens in, {record.usage.output_tokens} out"
    yield f"It took {record.seconds.agent:.0f} s and {record.turns} model calls ({tokens}): {cost}."
    if measured and measured.image:
        yield f"Building it and running its tests from scratch took {measured.seconds:.0f} s."


def faults(record: TrialRecord, measured: Rerun | None) -> list[str]:
    """Return what went wrong, in sentences; empty if nothing did."""
    errors = [measured.error if measured else None, record.error]
    reasons = list(dict.fromkeys(_fault(error) for error in errors if error))
    if record.status is Status.COMPLETED and not reasons:
        return []
    return [f"The trial ended as {record.status.value}.", *reasons]


def _what_went_wrong(record: TrialRecord, measured: Rerun | None) -> Iterator[str]:
    if found := faults(record, measured):
        yield "## What went wrong"
        yield ""
        yield from (f"- {fault}" for fault in found)
    if measured and not measured.outcomes and measured.output.strip():
        yield ""
        yield "The end of what was printed:"
        yield ""
        yield from (f"    {line}" for line in plain(measured.output).splitlines()[-LINES:])


def _fault(fault: ErrorInfo) -> str:
    return " ".join(plain(fault.message).split())
