"""Whole trials with a judge: its cost is apart from the agent's, and without its verdicts there is no result."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from runner.agents.cli import CliAgent
from runner.benchmarks.cli_tool_bench.verifier import DETAILS
from runner.gateway import Gateway
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.records import Budget, Model, Prices, Status, Usage
from runner.records.trial_files import JUDGE_LEDGER
from runner.report.trials_table import trials_table
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import Cell
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from runner.trials.context import TrialContext
from runner.trials.run import run_to_the_end
from tests.support.tool_task_factory import PROJECT, TOOL, furnished, make_tool_task, tool_dataset

pytestmark = pytest.mark.docker

SWAPPED = TOOL.replace("sorted(set(words))", "sorted(set(words), reverse='four' in words)")
"""The tool with its lines in another order than the reference's in one of eight valid cases."""
AGENT = """
import json, sys, urllib.request
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
headers = {"Authorization": "Bearer " + sys.argv[2], "Content-Type": "application/json"}
urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/v1/chat/completions", body, headers)).read()
"""
"""Program that calls its model once. Code that writes the tool is appended."""
USAGE = Usage(input_tokens=1000, output_tokens=100)
JUDGE_USD = 0.002
"""Cost of one answer of the judge."""
YES = Behaviour(text='{"equivalent": true}', usage=USAGE)
NONSENSE = Behaviour(text="Perhaps.", usage=USAGE)


def an_agent() -> CliAgent:
    files = {"tally.py": SWAPPED, "pyproject.toml": PROJECT}
    code = f"{AGENT}for name, text in {files!r}.items(): open(name, 'w').write(text)\n"
    code = code.replace("{", "{{").replace("}", "}}")
    argv = ("/opt/assay/python/bin/python3", "-c", code, "{base_url}", "{key}", "{prompt}")
    return CliAgent(name="swapping", version="1", argv=argv)


def a_model(fake: FakeUpstream, usd: float) -> dict[str, Any]:
    return {"name": "m", "id": "openai/x", "api_base": fake.url, "prices": Prices(input=usd, output=10 * usd)}


def test_a_judges_cost_is_separate_and_without_its_verdicts_the_trial_is_invalid(
    tmp_path: Path, common: Path
) -> None:
    base_image.ensure(connect(), print)
    make_tool_task(tmp_path / "tasks")
    sandboxes = DockerSandboxes()
    with (
        tempfile.TemporaryDirectory(prefix="assay-") as folder,
        FakeUpstream(NONSENSE) as model,
        FakeUpstream(*4 * (NONSENSE,), YES) as judge,
    ):
        Path(folder).chmod(0o755)
        dataset = tool_dataset(
            tmp_path / "tasks",
            furnished(tmp_path / "cache", common, "results"),
            reward="semantic_match",
            judge={"model": a_model(judge, 1.0), "usd": 1.0, "at_once": 1},
        )
        dataset.prepare(print)
        cell = Cell(
            agent=an_agent(),
            model=Model.model_validate(a_model(model, 100.0)),
            dataset=dataset,
            budget=Budget(),
            attempts=1,
        )
        (trial,) = make_plan([cell], sandboxes, lambda _: ()).trials
        with Gateway(Path(folder)) as gateway:
            context = TrialContext(sandboxes, gateway, Store(tmp_path / "outputs"), "test", {})
            invalid = run_to_the_end(trial, context, 1, lambda: False)
            assert len(model.requests) == 1, "a judge's failure does not pay for the rollout again"
            record = run_to_the_end(trial, context, 0, lambda: False)
            assert gateway.spent["usd"] == pytest.approx(2 * 100 * JUDGE_USD + 5 * JUDGE_USD)

    assert invalid.error
    assert (invalid.status, invalid.reward) == (Status.INFRA_INVALID, None)
    assert (invalid.error.type, invalid.error.phase) == ("JudgeError", "verify")
    assert invalid.judge_usd == pytest.approx(4 * JUDGE_USD)

    assert record.verdict
    assert (record.status, record.reward) == (Status.COMPLETED, 1.0), record
    assert record.verdict.components["exact_match"] == 0.875
    assert record.cost_usd == pytest.approx(2 * 100 * JUDGE_USD)
    assert record.judge_usd == pytest.approx(5 * JUDGE_USD)
    assert (record.usage.input_tokens, record.turns) == (2000, 1)
    assert record.retries[0].judge_usd == pytest.approx(4 * JUDGE_USD)
    assert "judge" in record.digests
    table = trials_table([trial.row()], {record.key: record})
    assert table["judge_usd"].tolist() == [pytest.approx(5 * JUDGE_USD)]
    assert table["cost_usd"].tolist() == [pytest.approx(2 * 100 * JUDGE_USD)]

    folder_of = Store(tmp_path / "outputs").folder(record.key)
    assert len((folder_of / JUDGE_LEDGER).read_text().splitlines()) == 1
    judged = json.loads((folder_of / DETAILS).read_text())["judged"]
    assert [(one["line"], one["class"], one["equivalent"]) for one in judged] == [(1, "COUNT", True)]
    assert judged[0]["reference"] != judged[0]["candidate"]
