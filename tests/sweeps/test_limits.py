"""Whole sweeps in front of a fake provider: a cap on their USD, and limits on calls that take no trial's time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from runner.agents.cli import CliAgent
from runner.errors import ConfigError
from runner.executors.threads import ThreadExecutor
from runner.gateway import provider
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.jobs.sweep import ALL_JUDGED, CAPPED, SOME_INVALID, SweepJob
from runner.records import (
    Budget,
    CallLimits,
    Model,
    Prices,
    Scoring,
    SpendLimits,
    Status,
    TierScoring,
    TrialRecord,
)
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import Cell, Settings, Sweep
from runner.sweeps.pricing import Pricing
from runner.tracking.mlflow import NoTracker
from runner.trials import run as trial
from tests.support.tasks_factory import dataset, make_task

pytestmark = pytest.mark.docker

ASK = """
import json, sys, urllib.request
body = {"model": "m", "messages": [{"role": "user", "content": sys.argv[3]}]}
headers = {"authorization": "Bearer " + sys.argv[2], "content-type": "application/json"}
for _ in range(int(sys.argv[4])):
    asked = urllib.request.Request(sys.argv[1] + "/v1/chat/completions", json.dumps(body).encode(), headers)
    urllib.request.urlopen(asked)
"""
COST = 0.0019
UNASKED = CallLimits(preflight=False)
"""The tests count what trials ask."""
Run = Callable[..., int]


def asker(times: int = 1) -> CliAgent:
    """An agent that asks so many times, and ends."""
    script = ASK.replace("{", "{{").replace("}", "}}")
    argv = ("python3", "-c", script, "{base_url}", "{key}", "{prompt}", str(times))
    return CliAgent(name="asker", version="1", argv=argv)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a sweep over all made tasks in front of an upstream; returns its exit code."""

    def run(url: str, workers: int = 1, agent: CliAgent | None = None, **settings: Any) -> int:
        prices = Prices(input=2.0, output=10.0, cache_hit=0.5)
        cell = Cell(
            agent=agent or asker(),
            model=Model(name="fake", id="openai/x", api_base=url, prices=prices),
            dataset=dataset(tmp_path / "tasks"),
            budget=Budget(usd=1.0),
            attempts=1,
        )
        chosen = Settings(
            name="made",
            outputs=tmp_path / "outputs",
            scoring=Scoring(name="s", tiers={"unknown": TierScoring(budgets=(1.0,), tau=1.0)}),
            pricing=Pricing(name="p", date="2026-01-01", source="made up"),
            sandbox=DockerSandboxes(),
            executor=ThreadExecutor(workers=workers),
            tracker=NoTracker(),
            job=SweepJob(),
            **{"record": None, "fresh": False, "dry_run": False, "gateway": UNASKED, **settings},
        )
        return chosen.job.run(Sweep(cells=(cell,), settings=chosen, composed=()))

    return run


def _records(tmp_path: Path) -> list[TrialRecord]:
    found = tmp_path.glob("outputs/trials/*/*/record.json")
    return [TrialRecord.model_validate_json(path.read_bytes()) for path in found]


def test_a_sweep_that_has_spent_its_cap_starts_no_new_trial(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b", "c"):
        make_task(tmp_path / "tasks", name)
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        assert run(upstream.url, sweep_budget=SpendLimits(usd=1.5 * COST), dry_run=True) == ALL_JUDGED
        assert "No new trial starts once 0.00285 usd are spent" in capsys.readouterr().out
        assert run(upstream.url, sweep_budget=SpendLimits(usd=1.5 * COST)) == CAPPED
        assert "1 trials were not started" in capsys.readouterr().out
        records = _records(tmp_path)
        assert [record.status for record in records] == [Status.COMPLETED] * 2
        assert [record.cost_usd for record in records] == pytest.approx([COST] * 2)
        assert run(upstream.url, sweep_budget=SpendLimits(usd=1.5 * COST)) == ALL_JUDGED, (
            "a new command spends anew"
        )
    assert len(_records(tmp_path)) == 3


@pytest.mark.parametrize(
    "cap", [{"input_tokens": 1000}, {"output_tokens": 50}, {"turns": 1}, {"wall_seconds": 1e-9}], ids=str
)
def test_a_sweep_ends_at_any_of_its_budgets(run: Run, tmp_path: Path, cap: dict[str, float]) -> None:
    for name in ("a", "b"):
        make_task(tmp_path / "tasks", name)
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        assert run(upstream.url, sweep_budget=SpendLimits.model_validate(cap)) == CAPPED
    assert len(_records(tmp_path)) == (0 if "wall_seconds" in cap else 1)


def test_a_spoiled_trial_is_not_repeated_once_the_cap_is_spent(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repetition starts with a trial's whole budget, so the sweep's cap holds it back as it does a new trial."""
    monkeypatch.setattr(trial, "BACK_OFF_SECONDS", (0.1,))
    make_task(tmp_path / "tasks", "a")
    monkeypatch.setattr(provider, "BACK_OFF_SECONDS", 0.01)
    with FakeUpstream(Behaviour(text="ok"), Behaviour(status_code=500)) as upstream:
        assert run(upstream.url, agent=asker(times=2), sweep_budget=SpendLimits(usd=0.5 * COST)) == CAPPED
        assert len(upstream.requests) == 1 + provider.ATTEMPTS
    (record,) = _records(tmp_path)
    assert (record.status, record.retries) == (Status.INFRA_INVALID, ())
    assert record.cost_usd == pytest.approx(COST)


def test_waiting_for_other_trials_calls_is_not_the_agents_time(run: Run, tmp_path: Path) -> None:
    """Calls of 8 s, one at a time, in two trials that have 13 s each."""
    for name in ("a", "b"):
        make_task(tmp_path / "tasks", name, toml='[agent]\nuser = "1000"\ntimeout_sec = 13\n')
    with FakeUpstream(Behaviour(text="ok", seconds=8.0)) as upstream:
        assert run(upstream.url, workers=2, gateway=CallLimits(concurrency=1, preflight=False)) == ALL_JUDGED
        assert upstream.most_at_once == 1
    first, second = sorted(_records(tmp_path), key=lambda record: record.seconds.waiting)
    assert (first.status, second.status) == (Status.COMPLETED, Status.COMPLETED)
    assert first.seconds.waiting < 3
    assert second.seconds.waiting > 3
    assert second.seconds.agent > 13


def test_an_agent_that_hangs_ends_on_time_though_calls_are_limited(run: Run, tmp_path: Path) -> None:
    make_task(tmp_path / "tasks", "a", toml='[agent]\nuser = "1000"\ntimeout_sec = 2\n')
    with FakeUpstream(Behaviour(text="ok", seconds=30.0)) as upstream:
        assert run(upstream.url, gateway=CallLimits(concurrency=1, preflight=False)) == ALL_JUDGED
    (record,) = _records(tmp_path)
    assert record.status is Status.TIMEOUT
    assert record.seconds.agent < 25


def test_a_wrong_key_spoiled_every_trial_of_a_sweep_three_times(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody saw why. Trials that are not started now have a reason, and run once the key is right."""
    for name in ("a", "b"):
        make_task(tmp_path / "tasks", name)
    sweep = tmp_path / "outputs/made"
    with FakeUpstream(Behaviour(status_code=401, message="No such key.")) as upstream:
        assert run(upstream.url, gateway=CallLimits(preflight=False, refusals=1)) == SOME_INVALID
        assert len(upstream.requests) == 2, "the first trial's, and our own after it"
        text = " ".join(capsys.readouterr().out.split())
        assert "asker · fake · a: The provider of fake refused this agent's call (401)" in text
        assert "No more trials of fake by chat are started (gateway.refusals=1)." in text
        assert "1 trials were not started: their model's provider refuses." in text
        kinds = {(record.error and record.error.type, record.retries) for record in _records(tmp_path)}
        assert kinds == {("ProviderRefused", ())}
        table = pd.read_csv(sweep / "trials.csv")
        assert table["outcome"].tolist() == ["infra_invalid", "not run"]
        assert table["reason"][1].startswith(
            "not run: 1 trial(s) before it were refused. The provider of fake"
        )
        page = " ".join((sweep / "report/index.html").read_text().split())
        assert "1 trial not run, of 1 task: b. 1 trial(s) before it were refused." in page
        with pytest.raises(ConfigError, match="No such key"):
            run(upstream.url, gateway=CallLimits())
        assert len(_records(tmp_path)) == 1, "nothing was started"
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        assert run(upstream.url, gateway=CallLimits()) == ALL_JUDGED
        assert len(upstream.requests) == 3, "one before the first trial"
    table = pd.read_csv(sweep / "trials.csv")
    assert (len(table), set(table["status"])) == (2, {"completed"})
