"""`job=make_cli_task` from package to task, with a model behind real HTTP that answers well, badly and hostilely."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runner.benchmarks.cli_tool_bench.dataset import ToolTask
from runner.benchmarks.sources.task_toml import read_toml
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.records import Usage
from runner.resources import ROOT
from tests.support.sweeps import Cli

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("_small_classes")]

USAGE = Usage(input_tokens=1000, output_tokens=100)
"""Costs 0.002 USD at the prices below."""
RECIPE = {
    "tool": "verlore",
    "source": "pypi",
    "package": "semver",
    "version": "3.1.1",
    "category": "Utility Libraries",
    "command": "pysemver",
}
SCHEMA = {
    "written_by": "somebody else",
    "command": {
        "name": "pysemver",
        "runnable": False,
        "parameters": [{"names": ["--invented"], "kind": "flag", "type": "boolean"}],
        "subcommands": [
            {"name": "bump", "parameters": [{"names": ["version"], "kind": "argument", "type": "string"}]},
            {"name": "check"},
        ],
    },
}
CONTEXT = "It works on version numbers in three parts, with a prerelease and a build. " * 8
GENERATOR = """\
from fuzz import Case, quote

def common(draw):
    return Case(f"{draw.tool} COMMAND {draw.version()}")

def boundary(draw):
    return Case(f"{draw.tool} COMMAND {draw.version()}-{quote(draw.evil())}")

def error(draw):
    return Case(f"{draw.tool} COMMAND {draw.word()}.{draw.integer()}")
"""
LEAVES = "raise SystemExit(0)\n\ndef common(draw): pass\ndef boundary(draw): pass\ndef error(draw): pass\n"
NOT_THERE = GENERATOR.replace("COMMAND", "explode")


def _say(text: str) -> Behaviour:
    return Behaviour(text=text, usage=USAGE)


def _generator(command: str) -> Behaviour:
    return _say(f"```python\n{GENERATOR.replace('COMMAND', command)}```")


GOOD = (_say(json.dumps(SCHEMA)), _generator("bump major"), _generator("check"))
LAST = _say(CONTEXT)
RECIPE_WORD = (
    "job.recipe={" + ", ".join(f"{key}: {json.dumps(value)}" for key, value in RECIPE.items()) + ", cap: 2}"
)


def _words(path: Path, *others: str) -> tuple[str, ...]:
    return (
        "job=make_cli_task",
        "dataset=cli_tool_bench",
        f"job.path={path}",
        "job.written_by=model",
        *others,
    )


def _model(fake: FakeUpstream) -> tuple[str, ...]:
    base = (
        "model=gpt",
        f"model.api_base={fake.url}",
        "model.id=openai/x",
        "model.prices={input: 1, output: 10}",
    )
    return (*base, RECIPE_WORD)


def test_a_model_writes_a_task_whose_recording_gives_the_same_bytes(cli: Cli, tmp_path: Path) -> None:
    """Bad answers go back with their fault; invented flags are dropped; the task is accepted; a replay is equal."""
    answers = (
        _say("Sure, here is the schema you asked for."),
        GOOD[0],
        _say(f"```python\n{LEAVES}```"),
        _say(NOT_THERE),
        *GOOD[1:],
        LAST,
    )
    with FakeUpstream(*answers) as fake:
        made = cli(*_words(tmp_path / "tasks"), *_model(fake), f"record={tmp_path / 'tapes'}")
        assert made.code == 0, made.out + made.err
        assert len(fake.requests) == len(answers)
        again = cli(*_words(tmp_path / "tasks"), *_model(fake))
        assert again.code == 0
        assert len(fake.requests) == len(answers)  # nothing is paid for twice
        first, *_ = fake.requests
        assert first["temperature"] == 0
    assert "2 classes, 20 cases; oracle 1, nop 0" in made.out
    assert "; 0.0140 USD" in made.out
    folder = tmp_path / "tasks" / "verlore"
    tool = read_toml(folder / "task.toml", ToolTask)
    assert tool.made is not None
    assert tool.made.written_by == ("openai/x",)
    report = json.loads((folder / "making" / "report.json").read_text())
    assert report["invented by the schema"] == ["--invented"]
    assert "compare" in " ".join(report["dropped by the cap"]).lower()
    prompt = (folder / "instruction.md").read_text()
    assert "semver" not in prompt.lower()
    replayed = cli(
        *_words(tmp_path / "again"), "model=cassette", f"model.path={tmp_path / 'tapes'}", RECIPE_WORD
    )
    assert replayed.code == 0, replayed.out + replayed.err
    for name in ("task.toml", "instruction.md", "cases.jsonl", "golden.jsonl"):
        assert (tmp_path / "again" / "verlore" / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([_say("I would rather not.")] * 4, "schema.json: openai/x failed 4 times: The answer is not JSON"),
        (
            [GOOD[0], *[_say(NOT_THERE)] * 4],
            "generators/BUMP_MAJOR.py: openai/x failed 4 times: no common case succeeds",
        ),
    ],
    ids=["prose", "no working instance"],
)
def test_a_model_that_never_answers_well_discards_the_tool_with_the_reason(
    cli: Cli, tmp_path: Path, answers: list[Behaviour], reason: str
) -> None:
    with FakeUpstream(*answers) as fake:
        made = cli(*_words(tmp_path / "tasks"), *_model(fake))
    assert made.code == 2
    assert reason in made.err
    assert not (tmp_path / "tasks" / "verlore" / "task.toml").exists()


def test_the_cap_holds_and_what_was_written_is_kept(cli: Cli, tmp_path: Path) -> None:
    with FakeUpstream(*GOOD, LAST) as fake:
        capped = cli(*_words(tmp_path / "tasks"), *_model(fake), "job.usd=0.0065")
        written = len(fake.requests)
        assert capped.code == 3
        assert 1 <= written < 4
        rest = cli(*_words(tmp_path / "tasks"), *_model(fake))
        assert rest.code == 0, rest.out + rest.err
        assert len(fake.requests) == 4
    assert (tmp_path / "tasks" / "verlore" / "making" / "schema.json").exists()


def test_a_dry_run_says_what_it_may_cost_and_writes_nothing(cli: Cli, tmp_path: Path) -> None:
    with FakeUpstream() as fake:
        planned = cli(*_words(tmp_path / "tasks"), *_model(fake), "dry_run=true")
        assert not fake.requests
    assert planned.code == 0
    assert "at most 4 answers are asked for" in planned.out
    assert "All together (1): at most 1.79 USD (job.usd=5)." in planned.out
    assert not (tmp_path / "tasks").exists()


def test_without_a_model_and_without_answers_a_tool_is_rejected_by_name(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "tasks"
    made = cli("job=make_cli_task", "dataset=cli_tool_bench", f"job.path={path}", RECIPE_WORD)
    assert made.code == 2
    assert (
        "verlore: schema: schema.json is missing: write it by hand, or name a model= that writes it"
        in made.err
    )


ASKING = """
import sys
from runner.__main__ import main
from runner.benchmarks.cli_tool_bench.construction import making, questions

def run(self):
    question = questions.context_question(self.recipe.tool, "", {})
    self.answers.get(question, making.check_context)
    return making.MadeTask(folder=self.work, classes=0, cases=0, oracle=1, nop=0)

making.Making.run = run
sys.exit(main(sys.argv[1:]))
"""
"""A command that makes only one step of a task."""


def test_two_commands_that_made_one_task_each_paid_for_the_answers(cli: Cli, tmp_path: Path) -> None:
    """Each also removed the folder with which the other one tried the finished task."""
    slow = LAST.model_copy(update={"seconds": 2.0})
    with FakeUpstream(slow, slow) as fake:
        words = [*_words(tmp_path / "tasks"), *_model(fake), f"outputs={cli.outputs}", "tracker=none"]
        commands = [
            subprocess.Popen([sys.executable, "-c", ASKING, *words], cwd=ROOT, stdout=subprocess.PIPE)
            for _ in range(2)
        ]
        printed = [command.communicate()[0] for command in commands]
        assert [command.returncode for command in commands] == [0, 0], printed
        assert len(fake.requests) == 1
