"""The verifier of NL2Repo-Bench: upstream's own tests on a copy of the workspace, in a sandbox of their own.

Only files travel. In the copy, the named files are deleted, and upstream's packaging files and tests are put over it
(`judged_copy`). Then a shell runs the task's commands; those before the first with pytest are the installation. Tests
never have a network. A plugin of ours sends results test by test over a socket to a process of root's, so a suite that
is cut short keeps its results. Exit codes, output and files do not count.

What this cannot exclude: the candidate's code runs in pytest's own process. Code that is written to be judged can make
an object that equals everything, dig the reporter out of the interpreter's memory and speak for it, or change the judge
and restore it before it is checked. Files, plugins, start-up hooks of Python, packages named like the judge's, output,
exit codes, messages without the reporter's word and patched reports gain nothing: each is a test in
`tests/security/test_suites.py` and `test_suite_forgeries.py`.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from runner.benchmarks.nl2repo import pytest_inside
from runner.benchmarks.nl2repo.judged_copy import write_copy
from runner.benchmarks.nl2repo.suite import HIDDEN, WORKSPACE, Suite, packaging, read_suite, runs_tests
from runner.benchmarks.nl2repo.suite_results import (
    Reported,
    counts,
    junit,
    only_of,
    passed,
    read_reports,
    summary,
)
from runner.errors import (
    ConfigError,
    EngineError,
    MachineError,
    SpoiledMachine,
    VerifierError,
    WorkspaceTooLarge,
)
from runner.records import (
    ErrorInfo,
    ExecResult,
    ExecSpec,
    Image,
    Record,
    SandboxSpec,
    Task,
    Verdict,
)
from runner.sandbox.inside import PYTHON

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from runner.protocols import Sandbox, SandboxProvider, Submission

JUDGE_VERSION = "1e4ce56aa2cfb66bc6f13dc6ff231c9e417d78db4eac2f3b3bc20b24142c9b54"
"""Version of the judge, which is part of every trial key: a new value runs finished trials again.
`tests/benchmarks/test_judge_versions.py` says when to change it."""
USER, UID = "agent", 1000
"""Unprivileged user that runs installations and tests."""
PLACE = "/opt/assay-judge"
GRACE_SECONDS = 30.0
INDEX_ALLOWED = {"PIP_NO_INDEX": "0"}
"""Variables for installations with a network: our image turns off pip's index."""


class SuiteVerifier(Record):
    """Verifier that installs a copy of the workspace and runs the hidden suite on it."""

    cache: Path
    """Absolute folder for fetched files; safe to delete."""
    install_network: Literal["none", "open"] = "none"
    """open: installations may use the package index, for tasks whose image lacks packages. The candidate's code runs in
    installations and could fetch the library that it should have written."""

    @property
    def judge(self) -> None:
        """Return None, because tests decide and not a model."""

    @property
    def shaping(self) -> dict[str, str]:
        """See `protocols.Verifier`."""
        return {"install_network": self.install_network, "judge": JUDGE_VERSION}

    def verify(self, submission: Submission) -> Verdict:
        """See `protocols.Verifier`. Raises `VerifierError` when the suite is not here."""
        began = time.monotonic()
        task, sandbox, folder = submission.task, submission.sandbox, submission.folder
        suite = suite_of(task)
        workspace = folder / "workspace.tar"
        try:
            sandbox.get(sandbox.workdir, workspace)
            reported, image, output = self.run(task, suite, workspace, submission.sandboxes, folder)
        except (WorkspaceTooLarge, FileNotFoundError, SpoiledMachine) as error:
            return Verdict(reward=0.0, mode="separate", error=ErrorInfo.of(error, "verify"))
        verdict = _verdict(suite, reported, folder, output)
        return verdict.model_copy(update={"image": image.id, "seconds": time.monotonic() - began})

    def run(
        self, task: Task, suite: Suite, workspace: Path, sandboxes: SandboxProvider, into: Path
    ) -> tuple[Reported, Image, str]:
        """Run the suite on a workspace's tar; return its report, the image, and the output of the commands.

        Raises `ConfigError` for a sandbox without images, and what starting a machine raises.
        """
        image = sandboxes.image(task.verifier.environment or task.environment)
        if image.origin == "none":
            raise ConfigError("sandbox=local cannot judge hidden suites: use sandbox=docker.")
        first = next(at for at, command in enumerate(suite.commands) if runs_tests(command))
        split = first if self.install_network == "open" else 0
        results = []
        with ExitStack() as stack:
            place = stack.enter_context(_open(task, image, sandboxes, "open" if split else "none"))
            hidden = _lay_out(task, suite, workspace, place, into)
            if split:
                results.append(_launch(place, suite, (0, split), INDEX_ALLOWED))
                place = stack.enter_context(_open(task, place.snapshot(), sandboxes, "none"))
            results.append(_launch(place, suite, (split, len(suite.commands)), {}))
        everything = read_reports("".join(result.stdout for result in results), len(suite.commands))
        reported = only_of(everything, {f"{WORKSPACE}/{path}" for path in hidden})
        return reported, image, "".join(result.stderr for result in results)


def suite_of(task: Task) -> Suite:
    """Return the suite of a task. Raises `VerifierError` when it was not fetched, or contradicts itself."""
    try:
        suite = read_suite(task.verifier.tests or Path())
    except FileNotFoundError as error:
        raise VerifierError(
            f"The hidden tests of {task.name} are not here: fetch them with job=setup."
        ) from error
    if len(suite.expected or ()) > suite.count:
        raise VerifierError(
            f"{len(suite.expected or ())} tests of {task.name} are expected to pass and {suite.count} are published: "
            "the count or the suite is wrong."
        )
    return suite


def _open(
    task: Task, image: Image, sandboxes: SandboxProvider, network: Literal["none", "open"]
) -> AbstractContextManager[Sandbox]:
    environment = task.verifier.environment or task.environment
    spec = SandboxSpec(
        name=f"{task.name}-suite",
        image=image,
        environment=environment,
        user="root",
        network=network,
        runtime=True,
    )
    return sandboxes.open(spec)


def _lay_out(task: Task, suite: Suite, workspace: Path, place: Sandbox, into: Path) -> frozenset[str]:
    """Put the copy in its place; return the paths of hidden files. A suite without files uses those of the image.

    Raises `SpoiledMachine` if the engine cannot unpack the workspace in two attempts and can unpack an empty one.
    """
    hidden = (task.verifier.tests or Path()) / HIDDEN
    if not any(hidden.iterdir()):
        hidden = into / "hidden.tar"
        place.get(WORKSPACE, hidden)
    copy = into / "judged.tar"
    try:
        paths = write_copy(workspace, hidden, copy, suite.deleted, packaging, UID)
        try:
            try:
                place.put(copy, "/")
            except EngineError:  # perhaps for a reason of its own
                place.put(copy, "/")
        except MachineError as error:
            write_copy(None, hidden, copy, suite.deleted, packaging, UID)
            place.put(copy, "/")  # raises if the engine fails at an empty workspace too
            raise SpoiledMachine(f"The workspace cannot be copied: {error}") from error
    finally:
        copy.unlink(missing_ok=True)
    return paths


def _launch(place: Sandbox, suite: Suite, between: tuple[int, int], env: Mapping[str, str]) -> ExecResult:
    """Run the commands whose numbers are in `range(*between)`. The suite's variables override `env`."""
    start, end = between
    spec = {
        "commands": suite.commands[start:end],
        "first": start,
        "seconds": suite.command_seconds,
        "workdir": WORKSPACE,
        "user": USER,
        "plugins": suite.plugins,
        "judged": [at for at in range(start, end) if runs_tests(suite.commands[at])],
        "env": {**env, **suite.env},
    }
    folder = f"{PLACE}-{start}"
    command = ExecSpec(
        argv=(PYTHON, f"{folder}/launch.py", f"{folder}/spec.json"),
        cwd="/",
        user="root",
        files={f"{folder}/spec.json": json.dumps(spec)},
        uploads={folder: Path(pytest_inside.__file__).parent},
        timeout_seconds=suite.command_seconds * (end - start) + GRACE_SECONDS,
    )
    return place.exec(command)


def _verdict(suite: Suite, reported: Reported, into: Path, output: str) -> Verdict:
    """Return the verdict, and write the reports and output to files in `into`."""
    for index, command in enumerate(suite.commands):
        if runs_tests(command):
            (into / f"junit-{index}.xml").write_bytes(junit(command, index, reported))
    text = summary(reported, suite.commands)
    (into / "verifier.stdout").write_text(f"{text}\n\n{output}", encoding="utf-8", errors="replace")
    good = len(passed(reported, suite.expected))
    judged = [ended for ended in reported.commands if runs_tests(suite.commands[ended.command])]
    installs = [ended for ended in reported.commands if ended not in judged]
    late = any(ended.code is None for ended in judged)
    components = {
        "tests_passed": float(good),
        "tests_published": float(suite.published or suite.count),
        "install": float(all(ended.code == 0 for ended in installs)),
        "forged": float(bool(reported.forged)),
        **{f"tests_{name}" if not name.startswith("failure_") else name: value
           for name, value in counts(reported, suite.expected, late=late).items()},
    }  # fmt: skip
    if suite.published:
        components |= {
            "tests_counted": float(suite.count),
            "score_by_published_count": min(1.0, good / suite.published),
        }
    # More tests can pass than are published only where all tests in hidden files count: a candidate can invent some.
    return Verdict(
        reward=min(1.0, good / suite.count),
        components=components,
        mode="separate",
        output=text[-4000:],
    )
