"""The sum of a ledger equals the session's count, however its calls ended."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from shutil import copytree

import pytest

from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.sweeps.store import ledger_spend
from tests.gateway.conftest import Http, Open
from tests.gateway.test_matrix import APIS
from tests.support.waiting import until

WORDS = Behaviour(text="One two three four five six seven.")


@pytest.mark.parametrize(("name", "model"), [("messages", "anthropic/x"), ("chat", "openai/x")])
def test_the_spend_of_calls_that_were_cut_is_the_same_on_the_ledger(
    session: Open, http: Http, name: str, model: str
) -> None:
    """A retry starts from that count. The tokens of a broken stream used to be lost."""
    path, body = APIS[name][0].path, APIS[name][1]() | {"model": "any", "stream": True}
    with FakeUpstream(WORDS, WORDS.model_copy(update={"held": "end"})) as upstream:
        trial = session(upstream.url, id=model, stream="through")
        http(trial).post(path, json=body)
        agent = http(trial)
        with agent.stream("POST", path, json=body) as answer:
            next(answer.iter_bytes())
        agent.close()
        until(lambda: len(trial.calls) == 2)
    spend = ledger_spend(trial.spec.ledger)
    assert (spend.usage, spend.turns, spend.lost) == (trial.meter.usage, 1, 1)
    assert spend.cost_usd == pytest.approx(trial.meter.cost_usd)


def test_what_is_on_disk_tells_of_a_call_under_way_until_it_has_its_line(
    session: Open, http: Http, tmp_path: Path
) -> None:
    """The copy of the ledger is what a killed runner leaves."""
    path, body = APIS["chat"][0].path, APIS["chat"][1]() | {"model": "any"}
    held = Behaviour(text="worth it", held="answer")
    with FakeUpstream(WORDS, held) as upstream, ThreadPoolExecutor(1) as pool:
        trial = session(upstream.url)
        agent = http(trial)
        agent.post(path, json=body)
        waiting = pool.submit(agent.post, path, json=body)
        until(lambda: len(upstream.requests) == 2)
        killed = copytree(trial.spec.ledger.parent, tmp_path / "killed")
        upstream.release()
        waiting.result()
    spend = ledger_spend(killed / "ledger.jsonl")
    assert (spend.turns, spend.lost) == (1, 1)
    trial.close()
    spend = ledger_spend(trial.spec.ledger)
    assert (spend.turns, spend.lost) == (2, 0)
    assert [file.name for file in trial.spec.ledger.parent.iterdir()] == ["ledger.jsonl"]


def test_a_session_knows_that_a_call_could_not_be_written_down(session: Open, http: Http) -> None:
    """The agent got an error of the gateway's, ended, and had failed."""
    path, body = APIS["chat"][0].path, APIS["chat"][1]() | {"model": "any"}
    with FakeUpstream(WORDS) as upstream:
        trial = session(upstream.url)
        http(trial).post(path, json=body).raise_for_status()
        assert trial.unwritten is None
        with Path("/dev/full").open("wb") as full:
            os.dup2(full.fileno(), trial._ledger._file.fileno())  # the disk beneath the ledger
        assert http(trial).post(path, json=body).status_code == HTTPStatus.INTERNAL_SERVER_ERROR
        assert trial.unwritten
