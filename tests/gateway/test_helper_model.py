"""A session with a helper model: each call has its own model's price, and the budget caps both together."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.errors import ConfigError
from runner.gateway import Gateway, SessionSpec
from runner.gateway.cassette import write_tape
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.records import Budget, Model, Prices
from tests.support.serving import KEY_VARIABLE

REQUEST = {"messages": [{"role": "user", "content": "Say something."}]}


def _model(name: str, url: str, output: float, **fields: object) -> Model:
    prices = Prices(input=0.0, output=output, cache_hit=0.0)
    given = {
        "name": name,
        "id": f"openai/{name}",
        "api_base": url,
        "api_key_env": KEY_VARIABLE,
        "prices": prices,
    }
    return Model.model_validate(given | fields)


def _spec(main: Model, helper: Model, folder: Path, budget: Budget) -> SessionSpec:
    return SessionSpec(
        trial="t", task="t", model=main, helper=helper, budget=budget, ledger=folder / "ledger.jsonl"
    )


def test_each_model_is_asked_by_its_own_name_and_charged_its_own_price(
    gateway: Gateway, tmp_path: Path
) -> None:
    answer = Behaviour(text="Yes.")
    with FakeUpstream(answer) as upstream:
        main, helper = (
            _model("main", upstream.url, 100.0),
            _model("small", upstream.url, 1.0, params={"seed": 7}),
        )
        with gateway.open(_spec(main, helper, tmp_path, Budget())) as session:
            for to_helper in (True, False, True):
                assert gateway.ask(session, REQUEST, helper=to_helper).status_code == 200
            calls = session.calls
            spent = session.helper_spend
            meter = session.meter
    assert [call.model for call in calls] == ["openai/small", "openai/main", "openai/small"]
    assert [sent["model"] for sent in upstream.requests] == ["small", "main", "small"]
    assert [sent.get("seed") for sent in upstream.requests] == [7, None, 7], (
        "each model has its own parameters"
    )
    costs = [call.cost_usd or 0.0 for call in calls]
    assert costs[1] == pytest.approx(100 * costs[0])
    assert costs[0] > 0
    assert spent
    assert (spent.model, spent.turns) == ("small", 2)
    assert spent.cost_usd == pytest.approx(2 * costs[0])
    assert meter.cost_usd == pytest.approx(sum(costs))
    assert meter.turns == 3
    assert 2 * meter.usage.output_tokens == 3 * spent.usage.output_tokens


@pytest.mark.parametrize("last", [True, False], ids=["the helper", "the main model"])
def test_a_budget_is_for_both_models_together(gateway: Gateway, tmp_path: Path, *, last: bool) -> None:
    with FakeUpstream(Behaviour(text="Yes.")) as upstream:
        main, helper = _model("main", upstream.url, 10.0), _model("small", upstream.url, 1.0)
        with gateway.open(_spec(main, helper, tmp_path, Budget(turns=2))) as session:
            answers = [
                gateway.ask(session, REQUEST, helper=one).status_code for one in (not last, last, last)
            ]
    assert answers == [200, 200, 403]
    assert session.meter.refusal == "turns"
    assert len(upstream.requests) == 2


def test_a_cap_in_usd_needs_the_helpers_price(gateway: Gateway, tmp_path: Path) -> None:
    main = _model("main", "http://127.0.0.1:9", 10.0)
    helper = main.model_copy(update={"name": "small", "prices": Prices()})
    with pytest.raises(ConfigError, match="'small' has no price"):
        gateway.open(_spec(main, helper, tmp_path, Budget(usd=1.0)))


def test_a_cap_in_usd_that_the_main_model_spent_leaves_the_helper_nothing(
    gateway: Gateway, tmp_path: Path
) -> None:
    with FakeUpstream(Behaviour(text="Yes.")) as upstream:
        main, helper = _model("main", upstream.url, 1000.0), _model("small", upstream.url, 1000.0)
        with gateway.open(_spec(main, helper, tmp_path, Budget(usd=0.1))) as session:
            answers = [gateway.ask(session, REQUEST).status_code for _ in range(20)]
            assert (answers[0], answers[-1]) == (200, 403)
            assert gateway.ask(session, REQUEST, helper=True).status_code == 403
            assert session.meter.charged["usd"] <= 0.1
    assert session.meter.helper.turns == 0


def test_a_recording_answers_for_both_models_at_the_price_of_each(gateway: Gateway, tmp_path: Path) -> None:
    with FakeUpstream(Behaviour(text="Yes.")) as upstream:
        main = _model("main", upstream.url, 100.0)
        helper = _model("small", upstream.url, 1.0, params={"seed": 7})
        with gateway.open(_spec(main, helper, tmp_path, Budget())) as session:
            for to_helper in (True, False):
                gateway.ask(session, REQUEST, helper=to_helper)
            recorded = session.calls
    write_tape(tmp_path, tape := tmp_path / "tape.jsonl")
    unset = {"backend": "cassette", "api_key_env": "ASSAY_UNSET"}
    played = main.model_copy(update=unset | {"api_key_env": None})
    again = _spec(played, helper.model_copy(update=unset), tmp_path / "again", Budget())
    again = again.model_copy(update={"cassette": tape})
    again.ledger.parent.mkdir()
    with gateway.open(again) as session:
        for to_helper in (False, True):
            assert gateway.ask(session, REQUEST, helper=to_helper).status_code == 200
        assert gateway.ask(session, REQUEST, helper=True).status_code == 403, "each answer is played once"
        calls, spent = session.calls, session.helper_spend
    assert [call.model for call in calls[:2]] == ["openai/main", "openai/small"]
    assert all(call.replayed for call in calls)
    assert {call.model: call.cost_usd for call in calls[:2]} == {
        call.model: call.cost_usd for call in recorded
    }
    assert spent
    assert (spent.turns, spent.cost_usd) == (1, recorded[0].cost_usd)
