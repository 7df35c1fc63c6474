"""Speed of the case engine: part of `make bench`. Measures; asserts nothing.

The cases are those in `ASSAY_CASES`, a `cases.jsonl` of files-to-prompt as the benchmark's authors generate it; without
it, as many like them. Every ratio is the median over cases, each of which was run in all the ways in turn, so that a
busy machine slows all alike.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from docker import DockerClient

from metrics.differential import Rules
from runner.benchmarks.cli_tool_bench.reference_runs import References
from runner.records import Image
from runner.records.cases import FILES_ROOT, Case, CaseResult, CaseSide
from runner.sandbox import inside, tar_streams
from runner.sandbox.cases.box import DockerCaseBox, stream
from runner.sandbox.cases.lane import Lane
from runner.sandbox.cases.launch import arguments
from runner.sandbox.docker import engine
from tests.support.cases_factory import files_to_prompt, prepared

BARE = """
import json, subprocess, sys, time
for line in sys.stdin:
    commands, began = json.loads(line), time.perf_counter()
    for command in commands:
        subprocess.run(["sh", "-c", command], cwd="/test_data", stdin=subprocess.DEVNULL, capture_output=True)
    print(time.perf_counter() - began, flush=True)
"""
"""One fork+exec for each command, timed inside: neither isolation nor transport is part of it."""
FRESH = 6
"""Cases that are also run in a container each: a second a piece."""
SMALL, LARGE = 26, 2006
"""Files in the tool's repository."""


def main() -> None:
    """Run every measurement, one line each."""
    given = os.environ.get("ASSAY_CASES")
    cases = (
        [Case.model_validate_json(line) for line in Path(given).read_text().splitlines()]
        if given
        else _cases()
    )
    sandboxes, client = prepared(), engine.connect()
    images = {files: files_to_prompt(sandboxes, files) for files in (SMALL, LARGE)}
    some = cases[:: max(1, len(cases) // 48)]
    _against_bare(client, images[SMALL], some)
    _against_containers(client, images[SMALL], some[:: max(1, len(some) // FRESH)])
    _by_size(client, images, some)
    _all(client, images[SMALL], cases)
    if not given:
        _all_bare(client, images[SMALL], cases)
    _looked_again(client, images[SMALL], cases[:100])


def _cases() -> list[Case]:
    """Return eight hundred cases over the tool's options, on a folder of nine files."""
    files = {
        f"dir/{name}": f"{name}\n" * 3
        for name in ("a.py", "b.txt", "sub/c.md", ".hidden", "d.log", "e f.txt")
    }
    files |= {".gitignore": "*.log\n", "empty.txt": "", "g.py": "print(1)\n"}
    options = (
        "",
        "--cxml",
        "--markdown",
        "--line-numbers",
        "-e py",
        "--include-hidden",
        "--ignore 'sub*'",
        "-o out.txt",
    )
    commands = [f"files-to-prompt {FILES_ROOT}/dir {option}".strip() for option in options]
    return [Case(command_class=commands[n % 8], command=commands[n % 8], files=files) for n in range(800)]


def _against_bare(client: DockerClient, image: Image, cases: Sequence[Case]) -> None:
    """Measure both sides against two bare runs of the same command in a container with the same files."""
    with _sides(client, image) as (reference, candidate), _bare(client, image) as bare:
        floors: list[float] = []
        ways: dict[str, list[float]] = {"sequence": [], "at once": []}
        for case in cases:
            floors.append(bare(case, [case.command] * 2))
            ways["sequence"].append(_seconds(lambda: (reference.run(case), candidate.run(case))))  # noqa: B023
            ways["at once"].append(_seconds(lambda: _at_once(reference, candidate, case)))  # noqa: B023
    for (name, seconds), bound in zip(ways.items(), (1.1, 0.75), strict=True):
        pairs = list(zip(seconds, floors, strict=True))
        ratio = statistics.median(ours / floor for ours, floor in pairs)
        added = statistics.median((ours - floor) / 2 for ours, floor in pairs)
        print(
            f"both sides {name} over two bare runs: {ratio:.2f} (bound {bound}); {added * 1000:+.1f} ms a side"
        )
    print(f"a bare run: {statistics.median(floors) / 2 * 1000:.1f} ms (no bound)")


def _against_containers(client: DockerClient, image: Image, cases: Sequence[Case]) -> None:
    with _sides(client, image) as (reference, candidate):
        ratios = []
        for case in cases:
            fresh = 2 * _seconds(lambda: _in_a_container(client, image, case))  # noqa: B023
            ratios.append(fresh / _seconds(lambda: _at_once(reference, candidate, case)))  # noqa: B023
    print(
        f"a fresh container for each side over both sides at once: {statistics.median(ratios):.1f} (bound 9)"
    )


def _by_size(client: DockerClient, images: dict[int, Image], cases: Sequence[Case]) -> None:
    with ExitStack() as stack:
        small, large = (stack.enter_context(_sides(client, images[files])) for files in (SMALL, LARGE))
        ratios = []
        for case in cases:
            times = [_seconds(lambda: _at_once(*sides, case)) for sides in (small, large)]  # noqa: B023
            ratios.append(times[1] / times[0])
    print(f"a repository of {LARGE} files over one of {SMALL}: {statistics.median(ratios):.2f} (bound 1.25)")


def _all(client: DockerClient, image: Image, cases: Sequence[Case]) -> None:
    """Measure a configuration once the reference's results are known: the candidate alone, two at once."""
    with DockerCaseBox(client.api, CaseSide(name="bench", image=image, lanes=2)) as box:
        reference = dict(stream(box, cases))
        candidate: dict[int, CaseResult] = {}
        seconds = _seconds(lambda: candidate.update(stream(box, cases)))
    print(f"{len(cases)} cases with a warm reference: {seconds:.1f} s (bound 12 s for 800 on two idle cores)")
    same = sum(_seen(reference[index]) == _seen(candidate[index]) for index in range(len(cases)))
    print(f"  of which a candidate that is the reference does the same: {same}")


def _all_bare(client: DockerClient, image: Image, cases: Sequence[Case]) -> None:
    """Measure the floor of all cases, which share their files: their commands alone, two at once."""
    with ExitStack() as stack:
        lanes = [stack.enter_context(_bare(client, image)) for _ in range(2)]
        commands = [case.command for case in cases]
        halves = [commands[::2], commands[1::2]]
        with ThreadPoolExecutor(2) as pool:
            seconds = max(pool.map(lambda run, half: run(cases[0], half), lanes, halves))
    print(f"  of which {len(cases)} bare runs, two at a time, take: {seconds:.1f} s")


def _looked_again(client: DockerClient, image: Image, cases: Sequence[Case]) -> None:
    """Measure what a candidate that differs in every case costs beside its own cases, in three minutes of one hour."""
    with (
        DockerCaseBox(client.api, CaseSide(name="bench", image=image, lanes=2)) as box,
        tempfile.TemporaryDirectory() as folder,
    ):

        def run(cases: Sequence[Case]) -> list[CaseResult]:
            found = dict(stream(box, cases))
            return [found[index] for index in range(len(cases))]

        # Equal cases would be looked at once.
        differing = {n: case.model_copy(update={"env": {"CASE": str(n)}}) for n, case in enumerate(cases)}
        cases = list(differing.values())
        alone = _seconds(lambda: run(cases))
        references = References.of(Path(folder), [], Rules(), run)
        references.look_up(cases, box.how)
        shares = []
        for minutes in (0, 1, 2):
            later = replace(references, minute=lambda: int(time.time() // 60) + minutes)  # noqa: B023
            shares.append(_seconds(lambda: later.look_again(differing, box.how)) / alone)  # noqa: B023
    text = ", ".join(f"{share:.2f}" for share in shares)
    print(
        f"a reference that runs again in every case, over the candidate's cases: {text} (bounds 1.25, 1.25, 0)"
    )


def _at_once(reference: DockerCaseBox, candidate: DockerCaseBox, case: Case) -> None:
    """Run a case on both sides at the same time."""
    with ThreadPoolExecutor(1) as other:
        expected = other.submit(reference.run, case)
        candidate.run(case)
        expected.result()


def _seen(result: CaseResult) -> object:
    """Return the part of a result that is compared."""
    return result.model_dump(exclude={"seconds", "cpu_seconds"})


@contextmanager
def _sides(client: DockerClient, image: Image) -> Iterator[tuple[DockerCaseBox, DockerCaseBox]]:
    with (
        DockerCaseBox(client.api, CaseSide(name="bench-reference", image=image)) as reference,
        DockerCaseBox(client.api, CaseSide(name="bench-candidate", image=image)) as candidate,
    ):
        yield reference, candidate


@contextmanager
def _bare(client: DockerClient, image: Image) -> Iterator[Callable[[Case, Sequence[str]], float]]:
    """Yield a function that returns the seconds of bare runs of commands.

    They run one after the other, on a case's files. These, and what its `prep` makes, are there before and not counted.
    """
    created = client.api.create_container(
        **arguments(client.api, CaseSide(name="bench-bare", image=image), "overlay")
    )
    container = client.containers.get(created["Id"])
    try:
        container.start()
        lane = Lane(client.api, created["Id"], [inside.PYTHON, "-c", BARE], 1 << 20)

        def run(case: Case, commands: Sequence[str]) -> float:
            container.put_archive("/", _tar(case))
            container.exec_run(["sh", "-c", case.prep or "true"])
            return float(lane.ask(json.dumps(commands).encode(), 600))

        yield run
        lane.close()
    finally:
        container.remove(force=True)


def _in_a_container(client: DockerClient, image: Image, case: Case) -> None:
    """create, cp, start, exec, exec, rm -f: the same client library, nothing looked at afterwards."""
    container = client.containers.create(str(image.id), ["sleep", "infinity"], network_mode="none")
    try:
        container.put_archive("/", _tar(case))
        container.start()
        if case.prep:
            container.exec_run(["sh", "-c", case.prep])
        container.exec_run(["sh", "-c", case.command])
    finally:
        container.remove(force=True)


def _tar(case: Case) -> bytes:
    with tar_streams.Packer() as pack:
        pack.directory(FILES_ROOT, 0o777)
        for path, text in case.files.items():
            pack.file(f"{FILES_ROOT}/{path}", text, None)
        return pack.stream().read()


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
