"""The differential verifier on real containers: a small tool (`TOOL`) against itself and its mutants."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from pydantic import TypeAdapter

from metrics.differential import METRICS, Phase, Rules
from runner.benchmarks.cli_tool_bench.case_file import read_cases
from runner.benchmarks.cli_tool_bench.comparison import Comparison
from runner.benchmarks.cli_tool_bench.reference_runs import ReferenceRun
from runner.benchmarks.cli_tool_bench.semantic import JudgeVerdict
from runner.benchmarks.cli_tool_bench.verifier import DETAILS
from runner.errors import VerifierError
from runner.protocols import Submission
from runner.records import ExecSpec, SandboxSpec, Task, Verdict
from runner.records.cases import CaseResult, CaseSide
from runner.sandbox.cases import launch
from runner.sandbox.cases.box import stream
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.inside import PYTHON
from tests.support.tool_task_factory import (
    PROJECT,
    SCORES,
    TOOL,
    furnished,
    make_tool_task,
    seal,
    tool_dataset,
)
from tests.support.waiting import once

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("no_page")]


REFERENCE = "bash /solution/solve.sh"


@dataclass(frozen=True)
class Bench:
    """Judges workspaces, which share the stored results of the reference."""

    root: Path
    cache: Path
    sandboxes: DockerSandboxes

    def task(self, **verifier: Any) -> Task:
        dataset = tool_dataset(self.root / "tasks", self.cache, **verifier)
        dataset.prepare(print)
        (task,) = dataset.tasks()
        assert task.refused is None
        return task

    def judge(self, script: str, into: Path, **verifier: Any) -> Verdict:
        """Return the verdict on the workspace that an agent's shell script leaves."""
        task = self.task(**verifier)
        spec = SandboxSpec(name="agent", image=self.sandboxes.image(task.environment), user="agent")
        judge = tool_dataset(self.root / "tasks", self.cache, **verifier).verifier
        assert task.solution
        with self.sandboxes.open(spec) as agent:
            command = ExecSpec(argv=("bash", "-ec", script), uploads={"/solution": task.solution})
            result = agent.exec(command)
            assert result.exit_code == 0, result
            agent.kill()
            return judge.verify(Submission(task, agent, self.sandboxes, into))


@pytest.fixture(scope="session")
def sandboxes() -> DockerSandboxes:
    base_image.ensure(connect(), print)
    return DockerSandboxes()


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory, common: Path, sandboxes: DockerSandboxes) -> Bench:
    root = tmp_path_factory.mktemp("differential")
    make_tool_task(root / "tasks")
    return Bench(root, furnished(root / "cache", common, "results"), sandboxes)


def ended(verdict: Verdict) -> dict[str, int]:
    """Return phase -> number of valid cases that ended in it."""
    counts = {phase: int(verdict.components[f"ended_{phase}"]) for phase in Phase}
    return {phase: count for phase, count in counts.items() if count}


def test_the_reference_equals_itself(bench: Bench, tmp_path: Path) -> None:
    before = {*(bench.cache / "results").glob("*.json")}  # of other tests of this file, which share the bench
    verdict = bench.judge(REFERENCE, tmp_path)
    assert verdict.error is None
    assert (verdict.reward, ended(verdict)) == (1.0, {"passed": 8})
    assert {name: verdict.components[name] for name in SCORES} == dict.fromkeys(SCORES, 1.0)
    assert verdict.components["unstable_cases"] == 0
    assert verdict.components["runtime_median"] > 0
    assert min(verdict.components[f"runtime_{side}"] for side in ("reference", "candidate")) > 0
    assert verdict.components["reference_lines"] == 20
    assert 0.2 < verdict.components["cpu_median"] < 5
    assert verdict.components["workspace_depth"] == 0
    assert len({*(bench.cache / "results").glob("*.json")} - before) <= 1


def mutant(old: str, new: str) -> str:
    assert old in TOOL, "the tool has changed, and this mutant with it"
    return TOOL.replace(old, new)


def written(tool: str, project: str = PROJECT) -> str:
    """Return a script that leaves this tool in the workspace."""
    return f"cat > tally.py <<'PY'\n{tool}\nPY\ncat > pyproject.toml <<'TOML'\n{project}\nTOML\n"


SLOW_SECONDS = 1.0
"""Delay of the slow mutant: more than the tool takes on a busy machine."""


class Mutant(NamedTuple):
    """A changed tool and its outcome, derived by hand from four valid cases and a bad one in each of two classes."""

    tool: str
    phases: dict[str, int]
    """Phase -> number of the eight valid cases that end in it."""
    scores: tuple[float, ...]
    """exec, state, exact, fuzzy and semantic match, by a judge that answers yes to everything."""
    agreement: tuple[float, float] = (1.0, 1.0)
    """Agreement in positive and in negative cases."""


ALL = (1.0, 1.0, 1.0, 1.0, 1.0)
NO_OUTPUT_IS_COMPARED = (1.0, 0.5, 0.5, 0.5, 0.5)
"""Scores if one class of two fails at its side effects: its correct output does not count."""
MUTANTS = {
    "a wrong exit code": Mutant(mutant("Path(file).unlink()", "Path(file).unlink()\n        sys.exit(3)"),
                               {"passed": 4, "crash": 4}, (0.5, 1.0, 0.5, 0.5, 0.5), (0.5, 1.0)),
    "extra white space": Mutant(mutant("(word, words.count(word))", '(" ", word, "", words.count(word), "\\n")'),
                               {"passed": 8}, ALL),
    "swapped lines": Mutant(mutant("sorted(set(words))", "sorted(set(words), reverse=True)"),
                           {"passed": 6, "output": 2}, (1.0, 1.0, 0.75, 0.75, 1.0)),
    "a file not deleted": Mutant(mutant("        Path(file).unlink()\n", ""),
                                {"passed": 4, "side_effects": 4}, NO_OUTPUT_IS_COMPARED),
    "an extra file": Mutant(mutant("        for word in", '        Path("notes").touch()\n        for word in'),
                           {"passed": 4, "side_effects": 4}, NO_OUTPUT_IS_COMPARED),
    "an extra hidden file": Mutant(mutant("        for word in", '        Path(".notes").touch()\n        for word in'),
                                  {"passed": 8}, ALL),
    "slow": Mutant(mutant("    command, file =", "    import time; time.sleep(1.0)\n    command, file ="),
                  {"passed": 8}, ALL),
    # Missing side effects show only in the class that has some, as `state` is compared in every case.
    "crashing": Mutant(mutant("    command, file =", "    import os; os.abort()\n    command, file ="),
                      {"crash": 8}, (0.0, 0.5, 0.0, 0.0, 0.0), (0.0, 1.0)),
    "output and no deeds": Mutant(mutant('        Path("log").mkdir()', '        return print(len(words), "words")'),
                                 {"passed": 4, "side_effects": 4}, NO_OUTPUT_IS_COMPARED),
    "nothing is refused": Mutant(mutant('        sys.exit("usage: tally count|log FILE")', "        return"),
                                {"passed": 8}, ALL, (1.0, 0.5)),
}  # fmt: skip


BEHAVIOUR = TypeAdapter(dict[str, list[CaseResult]])
"""Name of a mutant, or `the reference` -> its results, in the order of the cases."""


@pytest.fixture(scope="session")
def behaviour(bench: Bench, common: Path) -> dict[str, list[CaseResult]]:
    """Return the results of the reference and all mutants, which run once for all workers."""
    return BEHAVIOUR.validate_json(
        once(common / "mutants.json", lambda: BEHAVIOUR.dump_json(behave(bench)).decode())
    )


def behave(bench: Bench) -> dict[str, list[CaseResult]]:
    """Run the reference and all mutants, installed side by side in one machine to save time."""
    task = bench.task()
    image = bench.sandboxes.image(task.environment)
    tools = {"the reference": TOOL, **{name: mutant.tool for name, mutant in MUTANTS.items()}}
    files = {
        f"/opt/{number}/tally": f"#!/usr/bin/python3\n{tool}\nmain()\n"
        for number, tool in enumerate(tools.values())
    }
    given = read_cases(bench.root / "tasks" / "tally" / "cases.jsonl")
    calls = [
        case.model_copy(update={"command": f"PATH=/opt/{number}:$PATH; {case.command}"})
        for number in range(len(tools))
        for case in given
    ]
    with bench.sandboxes.open(SandboxSpec(name="mutants", image=image, user="root")) as place:
        chmod = ExecSpec(argv=("sh", "-c", "chmod -R a+rx /opt"), user="root", files=files)
        assert place.exec(chmod).exit_code == 0
        side = CaseSide(name="mutants", image=place.snapshot(), lanes=2)
        with bench.sandboxes.cases(side) as box:
            results = dict(stream(box, calls))
    count = len(given)
    return {
        name: [results[number * count + index] for index in range(count)] for number, name in enumerate(tools)
    }


@pytest.mark.parametrize("name", MUTANTS)
def test_each_mutant_ends_in_its_phases(
    bench: Bench, behaviour: dict[str, list[CaseResult]], name: str
) -> None:
    expected = MUTANTS[name]
    given = read_cases(bench.root / "tasks" / "tally" / "cases.jsonl")
    reference = ReferenceRun(results=tuple(behaviour["the reference"]))
    comparison = Comparison(Rules(), given, reference, behaviour[name], "")
    asked = {pair.digest: JudgeVerdict(equivalent=True) for pair in comparison.questions.values()}
    assert len(asked) == expected.phases.get("output", 0)
    judged = comparison.with_verdicts(asked)
    components, scored = judged.components(), judged.score()
    counts = {phase: int(components[f"ended_{phase}"]) for phase in Phase}
    assert {phase: count for phase, count in counts.items() if count} == expected.phases
    assert tuple(scored.metrics[metric] for metric in METRICS) == expected.scores
    assert (components["positive_agreement"], components["negative_agreement"]) == expected.agreement
    assert scored.build == 1.0


def test_a_slow_candidate_passes_and_its_time_is_reported(
    bench: Bench, behaviour: dict[str, list[CaseResult]]
) -> None:
    given = read_cases(bench.root / "tasks" / "tally" / "cases.jsonl")
    reference = ReferenceRun(results=tuple(behaviour["the reference"]))
    components = Comparison(Rules(), given, reference, behaviour["slow"], "").components()
    assert components["runtime_candidate"] >= SLOW_SECONDS
    assert components["runtime_median"] > 1
    # It sleeps, so its processor time hardly grows. This is why both are reported.
    assert components["cpu_median"] < components["runtime_median"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("true", "Neither 'setup.py' nor 'pyproject.toml' found"),
        (written(TOOL) + "echo 'raise SystemExit(9)' > setup.py", "ended with exit code 1"),
    ],
    ids=["nothing", "refuses"],
)
def test_a_tool_that_cannot_be_installed_gets_zero(
    bench: Bench, tmp_path: Path, script: str, message: str
) -> None:
    verdict = bench.judge(script, tmp_path)
    assert (verdict.reward, ended(verdict)) == (0.0, {"install": 8})
    assert {name: verdict.components[name] for name in SCORES} == dict.fromkeys(SCORES, 0.0)
    assert message in verdict.output


def test_an_installation_that_never_ends_has_failed(bench: Bench, tmp_path: Path) -> None:
    bench.judge("true", tmp_path)  # installs the reference, for which three seconds may be too short
    script = written(TOOL) + "echo 'import time; time.sleep(999)' > setup.py"
    verdict = bench.judge(script, tmp_path, install_seconds=3.0)
    assert (verdict.reward, ended(verdict)) == (0.0, {"install": 8})
    assert "ended with deadline" in verdict.output


@pytest.mark.parametrize(
    "deed", ["os.remove('/bin/sh')", "open('/test_data', 'w')", "os.symlink('/nowhere', '/test_data')"]
)
def test_an_installation_that_breaks_its_machine_voids_no_trial(
    bench: Bench, tmp_path: Path, deed: str
) -> None:
    """Otherwise an agent could void a trial that it is losing."""
    verdict = bench.judge(f'{written(TOOL)}\necho "import os; {deed}" > setup.py', tmp_path)
    assert verdict.reward == 0.0
    assert verdict.error is None
    assert "passed" not in ended(verdict)


INVALID, END = "print('[' * 9_000)", "os.kill(-1, 9)"


@pytest.mark.parametrize(
    ("answer", "broken", "reward"),
    [(INVALID, (0,), 0.0), (END, (0, 2), 0.0), (END, (0,), 1.0)],
    ids=["an invalid answer", "the end of the machine", "the end of the first machine"],
)
def test_a_candidate_that_replaces_the_supervisor_voids_no_trial(
    bench: Bench,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    broken: tuple[int, ...],
    reward: float,
) -> None:
    """No answer on the candidate's side counts as a failure of the engine, unless it is that of its first machine only.

    Images are used in this order: the candidate's, the task's, the candidate's second one if the engine seemed to fail.
    """
    genuine, images = launch.command, []

    def command(work: Literal["prepare", "serve"], side: CaseSide, *given: Any) -> list[str]:
        if side.image.id not in images:
            images.append(side.image.id)
        if work == "serve" and images.index(side.image.id) in broken:
            return [PYTHON, "-c", f"import os, sys\nfor _ in sys.stdin: {answer}; sys.stdout.flush()"]
        return genuine(work, side, *given)

    monkeypatch.setattr(launch, "command", command)
    verdict = bench.judge(written(TOOL), tmp_path)
    assert (verdict.reward, verdict.error) == (reward, None), verdict
    assert ("passed" in ended(verdict)) == (reward == 1.0)


def test_a_command_of_another_name_is_not_found(bench: Bench, tmp_path: Path) -> None:
    verdict = bench.judge(written(TOOL, PROJECT.replace('tally = "', 'tellie = "')), tmp_path)
    assert (verdict.components["build"], ended(verdict)) == (1.0, {"not_found": 8})
    assert verdict.components["negative_agreement"] == 0.0


def test_the_first_difference_is_readable_also_for_a_private_workspace(bench: Bench, tmp_path: Path) -> None:
    """A candidate's names and output cannot control the terminal on which somebody reads the file."""
    tool = mutant("words.count(word)", "len(word)").replace('"log/total.txt"', r'"log/sum\x1b[2J.txt"')
    text = bench.judge(f"umask 077; {written(tool)} chmod 700 .", tmp_path).output
    assert "line 1, class COUNT, ended in output: tally count words.txt" in text
    assert "--- stdout of the reference\n+++ stdout of the candidate" in text
    assert "-two 2\n" in text
    assert "+two 3\n" in text
    assert "line 5, class LOG, ended in side_effects: tally log words.txt" in text
    assert "-file /test_data/log/total.txt\n+file /test_data/log/sum\\x1b[2J.txt\n" in text
    assert "\x1b" not in (tmp_path / "verifier.stdout").read_text()
    details = json.loads((tmp_path / DETAILS).read_text())
    assert details["cases"][0]["phase"] == "output"
    assert details["classes"]["LOG"]["state"] == 0.0
    assert set(details["how"]) == {"reference", "candidate"}
    assert None not in details["how"].values()


def test_artifact_semantics_compare_stderr_and_the_reward_is_the_chosen_score(
    bench: Bench, common: Path, tmp_path: Path
) -> None:
    artifact = replace(bench, cache=furnished(tmp_path / "cache", common))
    loud = mutant("        for word in", '        print("working", file=sys.stderr)\n        for word in')
    verdict = artifact.judge(written(loud), tmp_path, semantics="artifact", reward="state")
    assert ended(verdict) == {"output": 4, "passed": 4}
    assert (verdict.reward, verdict.components["exact_match"]) == (1.0, 0.5)


SPY = """
import glob, os
found = [p for p in ("/tests", "/solution", "/logs") if os.path.exists(p)]
for top in ("/test_data", "/workspace", "/tmp", "/opt", "/home", "/root", "/run", "/mnt", "/var/tmp"):
    found += [os.path.join(at, name) for at, _, names in os.walk(top) for name in names if "cases.jsonl" in name]
for p in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ"):
    try:
        seen = open(p, errors="replace").read()
    except OSError:
        continue
    found += [word for word in ("tally log", "reference", "candidate") if word in seen]
print("SPY", found)
"""


def test_a_candidate_sees_neither_reference_nor_cases(bench: Bench, tmp_path: Path) -> None:
    """Its own command line is the only case that it sees."""
    spying = SPY.strip().replace("\n", "\n        ")
    tool = mutant("        for word in", f"        {spying}\n        for word in")
    bench.judge(written(tool), tmp_path)
    spied = [line for line in (tmp_path / "verifier.stdout").read_text().splitlines() if "SPY" in line]
    assert spied == ["+SPY []"]


def test_a_reference_that_cannot_be_installed_is_an_error(
    tmp_path: Path, common: Path, sandboxes: DockerSandboxes
) -> None:
    folder = make_tool_task(tmp_path / "tasks")
    (folder / "reference" / "pyproject.toml").write_text("[project")
    seal(folder)
    with pytest.raises(VerifierError, match="The reference of tally cannot be installed"):
        Bench(tmp_path, furnished(tmp_path / "cache", common), sandboxes).judge("true", tmp_path)


def test_a_reference_that_was_not_fetched_is_an_error(bench: Bench, tmp_path: Path) -> None:
    task = bench.task().model_copy(update={"solution": tmp_path / "absent"})
    judge = tool_dataset(bench.root / "tasks", bench.cache).verifier
    spec = SandboxSpec(name="agent", image=bench.sandboxes.image(task.environment), user="agent")
    with bench.sandboxes.open(spec) as agent, pytest.raises(VerifierError, match="fetch it with job=setup"):
        judge.verify(Submission(task, agent, bench.sandboxes, tmp_path))


def test_a_sweep_fetches_the_reference(
    command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    make_tool_task(tmp_path / "tasks")
    words = ("dataset=cli_tool_bench", f"dataset.root={tmp_path / 'tasks'}", "agent=nop", "tracker=none")
    ran = command(*words, "outputs=out", "name=mini")
    assert ran.returncode == 0, ran.stderr
    assert "Fetching reference reference" in ran.stdout + ran.stderr
    (record,) = (tmp_path / "out" / "trials").glob("*/*/record.json")
    assert json.loads(record.read_text())["verdict"]["components"]["build"] == 0.0
    assert len(list((tmp_path / "out" / "references" / "results").glob("*.json"))) == 1
