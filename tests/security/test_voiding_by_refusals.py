"""No agent can make a trial invalid by having its model's provider refuse its calls.

A refusal is our failure only if the provider also refuses our own smallest call through the agent's configured API. No
request of an agent's can cause that.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runner.agents.cli import CliAgent
from runner.gateway import Gateway
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.records import ApiName, Budget, Model, Prices, Status, TrialRecord
from runner.records.trial_files import LEDGER, PROBE_LEDGER
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import Cell
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from runner.trials.context import TrialContext
from runner.trials.run import run_to_the_end
from tests.support.tasks_factory import dataset, make_task

pytestmark = pytest.mark.docker

ASK = """
import json, sys, urllib.request
url, key, path, body = sys.argv[1:5]
headers = {"authorization": "Bearer " + key, "content-type": "application/json"}
urllib.request.urlopen(urllib.request.Request(url + path, body.encode(), headers))
"""
CHAT = ("/v1/chat/completions", '{"messages": [{"role": "user", "content": "hi"}]}')
RESPONSES = ("/v1/responses", '{"input": "hi"}')
OK, REFUSES = Behaviour(text="ok"), Behaviour(status_code=403, message="Your prompt was flagged.")


def asking(api: ApiName, path: str, body: str) -> CliAgent:
    """Return an agent that calls once, through any API."""
    script, body = (text.replace("{", "{{").replace("}", "}}") for text in (ASK, body))
    argv = ("/opt/assay/python/bin/python3", "-c", script, "{base_url}", "{key}", path, body, "{prompt}")
    return CliAgent(name="asking", version="1", argv=argv, api=api)


@pytest.fixture
def run(tmp_path: Path, gateway: Gateway) -> Callable[..., TrialRecord]:
    """Run a trial, and repeat it if that could help. The ledgers are in `tmp_path`."""

    def run(agent: CliAgent, upstream: FakeUpstream) -> TrialRecord:
        make_task(tmp_path / "tasks", "made")
        prices = Prices(input=2.0, output=10.0, cache_hit=0.5)
        model = Model(name="fake", id="openai/x", api_base=upstream.url, prices=prices)
        tasks = dataset(tmp_path / "tasks")
        cell = Cell(agent=agent, model=model, dataset=tasks, budget=Budget(), attempts=1)
        sandboxes, store = DockerSandboxes(), Store(tmp_path / "outputs")
        sandboxes.prepare((), print)
        (planned,) = make_plan([cell], sandboxes, lambda _: ()).trials
        return run_to_the_end(planned, TrialContext(sandboxes, gateway, store, "test", {}), 2, lambda: False)

    return run


def test_a_server_without_the_agents_api_was_an_error_of_the_agents(
    run: Callable[..., TrialRecord],
) -> None:
    with FakeUpstream(OK, apis=("chat",)) as upstream:
        record = run(asking("responses", *RESPONSES), upstream)
    assert (record.status, record.reward, record.retries) == (Status.INFRA_INVALID, None, ()), record
    assert record.error
    assert record.error.type == "ProviderRefused"
    assert (
        "refused this agent's call (404) and our own smallest call by the responses API (404)"
        in record.error.message
    )
    assert (record.cost_usd, record.turns) == (0.0, 0)


def test_a_key_that_is_revoked_midway_is_ours(run: Callable[..., TrialRecord]) -> None:
    with FakeUpstream(Behaviour(status_code=401)) as upstream:
        record = run(asking("chat", *CHAT), upstream)
        assert len(upstream.requests) == 2, "and is not tried again"
    assert (record.status, record.retries) == (Status.INFRA_INVALID, ())


@pytest.mark.parametrize(
    ("behaviours", "apis", "ask"),
    [
        ([OK], ("chat",), RESPONSES),  # an API that is not configured, and that the server does not have
        ([REFUSES, OK], ("chat",), CHAT),  # words that the provider does not serve
        ([Behaviour(status_code=400), OK], ("chat",), CHAT),  # a request that the provider rejects
        ([Behaviour(status_code=404), OK], ("chat",), CHAT),
    ],
    ids=["another API", "flagged words", "a bad request", "something that is not there"],
)
def test_a_loser_that_has_its_provider_refuse_it_has_lost(
    run: Callable[..., TrialRecord],
    tmp_path: Path,
    behaviours: list[Behaviour],
    apis: tuple[ApiName, ...],
    ask: tuple[str, str],
) -> None:
    with FakeUpstream(*behaviours, apis=apis) as upstream:
        record = run(asking("chat", *ask), upstream)
    assert (record.status, record.reward) == (Status.AGENT_ERROR, 0.0), record
    assert (record.turns, record.cost_usd) == (0, 0.0), "our own call is no part of its spend"
    (ledger,) = tmp_path.glob(f"outputs/trials/*/*/{LEDGER}")
    assert len(ledger.read_bytes().splitlines()) == 1
    assert len((ledger.parent / PROBE_LEDGER).read_bytes().splitlines()) == 1
