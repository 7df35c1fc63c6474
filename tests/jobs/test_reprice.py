"""`job=reprice`: what a sweep would cost, score and rank at other prices, from its token counts."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.errors import ConfigError
from runner.gateway.call_prices import price
from runner.jobs.import_trials import read_mapping
from runner.records import HelperSpend, ModelCall, Retry, Usage
from runner.records.base import ErrorInfo
from runner.report.foreign_trials import import_trials
from runner.report.repriced_ranks import compare_prices
from runner.report.repricing import NO_CACHE_COUNTS, NO_CALLS, NO_COUNTS, NO_RATE, Terms, reprice
from runner.resources import ROOT
from runner.sweeps.pricing import Pricing
from runner.sweeps.store import Store
from tests.report.plans import record, row, write_sweep
from tests.support.records_factory import model_call
from tests.support.sweeps import AGENTMETER, Cli, finished_sweep

LAW = settings(max_examples=8, deadline=None)
AGENTS = ("codex", "kimi_cli", "mini_swe_agent")
TASKS = ("easy-1", "easy-2", "hard-1")
ID = "openai/x"
RATES = {"input": 2.0, "output": 10.0, "cache_creation": 2.5, "cache_hit": 0.5}
CALL = Usage(input_tokens=1000, cache_creation_tokens=100, cache_hit_tokens=400, output_tokens=200)
"""At `RATES`: 0.0010 fresh, 0.0020 output, 0.00025 written, 0.0002 read, in all 0.00345 USD."""
USAGES = st.builds(
    lambda fresh, created, hit, output: Usage(
        input_tokens=fresh + created + hit,
        cache_creation_tokens=created,
        cache_hit_tokens=hit,
        output_tokens=output,
    ),
    *[st.integers(0, 20_000)] * 4,
)
TRIALS = st.lists(
    st.tuples(st.booleans(), st.lists(USAGES, max_size=3)),
    min_size=len(AGENTS) * len(TASKS),
    max_size=len(AGENTS) * len(TASKS),
)

pytestmark = pytest.mark.usefixtures("no_page")


def snapshot(factor: float = 1.0, **fields: Any) -> Pricing:
    """Return a snapshot with `RATES` times `factor` as the rates of the only model."""
    rates = {name: factor * rate for name, rate in RATES.items()}
    values = {"name": "s", "date": "2026-06-04", "source": "a test", "prices": {ID: rates}}
    return Pricing.model_validate(values | fields)


def write(
    outputs: Path, trials: Sequence[tuple[bool, Sequence[Usage | None]]], *, with_ledgers: bool = True
) -> Path:
    """Write a sweep of `AGENTS` on `TASKS`, priced by `snapshot()`, with the calls of each trial."""
    prices = snapshot().usd(ID)
    assert prices
    planned = [row(agent, task, model="glm") for agent in AGENTS for task in TASKS]
    records = {}
    for each, (passed, usages) in zip(planned, trials, strict=False):
        calls = [
            model_call(at, usage=usage, cost_usd=None if usage is None else price(usage, prices))
            for at, usage in enumerate(usages)
        ]
        costs = [call.cost_usd for call in calls]
        records[each.key] = record(
            each,
            passed=passed,
            usage=sum((usage for usage in usages if usage), Usage()),
            cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
        )
        if with_ledgers:
            write_ledger(Store(outputs).folder(each.key), calls)
    return write_sweep(outputs, planned, records, "mine")


def write_ledger(folder: Path, calls: Sequence[ModelCall]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ledger.jsonl").write_text("".join(f"{call.model_dump_json()}\n" for call in calls))


def compared(sweep: Path, scale: float = 1.0, **terms: Any) -> pd.DataFrame:
    """Return the table of `job=reprice`."""
    compare_prices(sweep, Terms(**terms), lambda _: (), scale, sweep / "repriced.csv")
    return pd.read_csv(sweep / "repriced.csv", index_col="cell")


def content(folder: Path) -> dict[str, str]:
    """Return the digest of each file."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


# --- laws -------------------------------------------------------------------------------------------------------------


@LAW
@given(TRIALS)
def test_equal_prices_give_equal_costs_scores_and_ranks(trials: Any) -> None:
    with TemporaryDirectory() as folder:
        cells = compared(write(Path(folder), trials), pricing=snapshot())
    for name in ("AMS", "usd_per_pass", "rank"):
        then, now = cells[f"{name}_then"], cells[f"{name}_now"]
        pd.testing.assert_series_equal(then, now, check_names=False)


@LAW
@given(TRIALS)
def test_doubled_prices_keep_the_order_of_prices_and_with_doubled_budgets_every_rank(trials: Any) -> None:
    with TemporaryDirectory() as folder:
        sweep = write(Path(folder), trials)
        fixed = compared(sweep, pricing=snapshot(2))
        moved = compared(sweep, scale=2, pricing=snapshot(2))
    pd.testing.assert_series_equal(
        2 * fixed["usd_per_pass_then"], fixed["usd_per_pass_now"], check_names=False
    )
    assert (fixed["AMS_now"] <= fixed["AMS_then"] + 1e-12).all()
    assert moved["AMS_now"].tolist() == pytest.approx(moved["AMS_then"].tolist())
    assert moved["rank_now"].tolist() == moved["rank_then"].tolist()


def test_other_prices_may_move_ranks_while_budgets_stay(tmp_path: Path) -> None:
    """Section 6 of the paper says that rankings stay.

    Two easy passes of 0.0069 USD fit the budgets of 0.01 and 0.02, and none at four times the price. The other cell's
    pass of 0.00345 USD still fits one then.
    """
    first = [(True, [CALL] * 2), (True, [CALL] * 2), (False, [CALL])]
    second = [(True, [CALL]), (True, [CALL] * 7), (False, [CALL])]
    none = [(False, [CALL])] * 3
    cells = compared(write(tmp_path, [*first, *second, *none]), pricing=snapshot(4))
    assert cells["AMS_then"].tolist() == pytest.approx([0.5, 0.4, 0])
    assert cells["AMS_now"].tolist() == pytest.approx([0.3, 0.35, 0])
    assert cells["rank_now"].tolist() == [2, 1, 3]


# --- what the terms mean ----------------------------------------------------------------------------------------------


ALL_PASS = [(True, [CALL, CALL])] * 9


def test_an_exchange_rate_divides_prices_in_cny(tmp_path: Path) -> None:
    cells = compared(write(tmp_path, ALL_PASS), pricing=snapshot(6.77, currency="CNY", cny_per_usd=13.54))
    assert cells["usd_per_pass_now"].tolist() == pytest.approx([0.00345] * 3)
    assert cells["usd_per_pass_then"].tolist() == pytest.approx([0.0069] * 3)
    assert set(cells["cny_per_usd"]) == {13.54}


@pytest.mark.parametrize(("share", "usd"), [(None, 0.00345), (0, 0.004), (0.5, 0.00325), (1, 0.0025)])
def test_an_assumption_about_caches_replaces_their_counts(
    tmp_path: Path, share: float | None, usd: float
) -> None:
    cells = compared(write(tmp_path, ALL_PASS), pricing=snapshot(), cache_hits=share)
    assert cells["usd_per_pass_now"].tolist() == pytest.approx([2 * usd] * 3)


def test_long_calls_are_told_apart_by_the_ledger_alone(tmp_path: Path) -> None:
    """Two calls of 1,000 tokens are no long call, although a trial has 2,000."""
    tiers = [{"above_input_tokens": 1500, **{name: 10 * rate for name, rate in RATES.items()}}]
    pricing = snapshot(prices={ID: {**RATES, "tiers": tiers}})
    cells = compared(write(tmp_path / "a", ALL_PASS), pricing=pricing)
    assert cells["usd_per_pass_now"].tolist() == pytest.approx([0.0069] * 3)
    bare = write(tmp_path / "b", ALL_PASS, with_ledgers=False)
    found = reprice(bare, Terms(pricing=pricing, ids={"glm": ID}))[2]
    assert found.trials["cost_usd"].isna().all()
    assert found.why == {NO_CALLS: 9}
    text = compare_prices(bare, Terms(pricing=pricing, ids={"glm": ID}), lambda _: (), 1, tmp_path / "x.csv")
    assert f"Trials whose cost is unknown now: 9, because {NO_CALLS}." in " ".join(text.split())


def test_without_a_ledger_the_sum_on_the_record_is_priced(tmp_path: Path) -> None:
    sweep = write(tmp_path, ALL_PASS, with_ledgers=False)
    cells = compared(sweep, pricing=snapshot(2), ids={"glm": ID})
    assert cells["usd_per_pass_now"].tolist() == pytest.approx([0.0138] * 3)


def test_an_answer_without_counts_stays_unknown_and_never_costs_nothing(tmp_path: Path) -> None:
    for with_ledgers in (True, False):
        sweep = write(
            tmp_path / str(with_ledgers), [(True, [CALL, None]), *ALL_PASS[1:]], with_ledgers=with_ledgers
        )
        found = reprice(sweep, Terms(pricing=snapshot(), ids={"glm": ID}))[2]
        assert found.trials["cost_usd"].isna().sum() == 1
        assert found.why == {NO_COUNTS: 1}
    cells = compared(sweep, pricing=snapshot(), ids={"glm": ID})
    assert cells["unpriced_now"].sum() == 1
    assert cells["usd_per_pass_now"].isna().sum() == 1


def test_a_rate_that_is_lacking_is_needed_only_by_what_was_counted(tmp_path: Path) -> None:
    pricing = snapshot(prices={ID: {"input": 2.0, "output": 10.0}})
    sweep = write(tmp_path, [(True, [Usage(input_tokens=1000, output_tokens=200)]), *ALL_PASS[1:]])
    found = reprice(sweep, Terms(pricing=pricing))[2]
    assert found.trials["cost_usd"].notna().sum() == 1
    assert found.why == {NO_RATE: 8}
    assert reprice(sweep, Terms(pricing=pricing, cache_hits=0))[2].why == {}, "nothing is read from caches"


def test_the_tries_that_our_side_spoiled_are_priced_too(tmp_path: Path) -> None:
    sweep = write(tmp_path, ALL_PASS)
    store = Store(tmp_path)
    first = row(AGENTS[0], TASKS[0], model="glm")
    spoiled = Retry(reason=ErrorInfo(type="EngineError", message="gone"), usage=CALL, cost_usd=0.00345)
    found = store.read(first.key)
    assert found
    store.write(
        found.model_copy(update={"usage": found.usage + CALL, "cost_usd": 3 * 0.00345, "retries": (spoiled,)})
    )
    write_ledger(store.folder(first.key) / "earlier/1", [model_call(usage=CALL)])
    now = reprice(sweep, Terms(pricing=snapshot(2)))[2].trials.set_index("key")["cost_usd"]
    assert now[first.key] == pytest.approx(6 * 0.00345)


def test_a_helpers_calls_are_priced_by_its_own_entry(tmp_path: Path) -> None:
    small = Usage(input_tokens=2000, output_tokens=100)
    (planned,) = [row("execution_agent", "easy-1", model="glm")]
    calls = [model_call(0, usage=small, model="openai/y"), model_call(1, usage=CALL, model=ID)]
    helped = HelperSpend(model="small", usage=small, turns=1)
    records = {planned.key: record(planned, usage=small + CALL, cost_usd=1.0, helper=helped)}
    sweep = write_sweep(tmp_path, [planned], records, "mine")
    folder = Store(tmp_path).folder(planned.key)
    write_ledger(folder, calls)
    rates = {ID: RATES, "openai/y": {name: rate / 10 for name, rate in RATES.items()}}

    def cost(prices: dict[str, Any], **terms: Any) -> float:
        pricing = snapshot(prices=prices)
        found = reprice(sweep, Terms(pricing=pricing, ids={"glm": ID}, **terms))[2]
        return float(found.trials.set_index("task")["cost_usd"]["easy-1"])

    assert cost(rates) == pytest.approx(0.00345 + 0.0005)
    doubled = rates | {"twice": {name: 2 * rate for name, rate in RATES.items()}}
    assert cost(doubled, entries={"glm": "twice"}) == pytest.approx(0.0069 + 0.0005), (
        "the helper keeps its own entry"
    )
    assert cost(doubled, entries={"small": "twice"}) == pytest.approx(0.00345 + 0.01)
    with pytest.raises(ConfigError, match=r"has no price of small"):
        cost({ID: RATES})
    (folder / "ledger.jsonl").unlink()
    assert math.isnan(cost(rates)), "the sum of both models' tokens says nothing about each"


def test_models_that_brought_their_prices_keep_them(tmp_path: Path) -> None:
    sweep = write(tmp_path, ALL_PASS)
    plan = json.loads((sweep / "sweep.json").read_text())
    (sweep / "sweep.json").write_text(json.dumps(plan | {"prices": {"glm": RATES}}))
    terms = Terms(pricing=snapshot(prices={}))
    text = compare_prices(sweep, terms, lambda _: (), 1, sweep / "repriced.csv")
    assert "Not in the snapshot, so at the prices that they brought along: glm." in text
    assert "0 of 3 ranks differ." in text
    for path in (tmp_path / "trials").rglob("record.json"):
        known = json.loads(path.read_text())
        path.write_text(json.dumps(known | {"digests": {"prices": "2026-11-21@ab"}}))
    with pytest.raises(ConfigError, match=r"no price of glm \(openai/x\)"):
        reprice(sweep, terms)


def test_a_model_that_is_priced_by_the_hour_keeps_its_costs(tmp_path: Path) -> None:
    """Its token counts have no price, so every one of its costs would have become unknown."""
    sweep = write(tmp_path, ALL_PASS)
    plan = json.loads((sweep / "sweep.json").read_text())
    (sweep / "sweep.json").write_text(json.dumps(plan | {"prices": {"glm": {"gpu_hour": 2.5}}}))
    _, before, now = reprice(sweep, Terms(pricing=snapshot(prices={})))
    assert now.kept == ["glm"]
    assert now.trials["cost_usd"].tolist() == before["cost_usd"].tolist()
    assert now.trials["cost_usd"].notna().all()


# --- the job ----------------------------------------------------------------------------------------------------------


def test_the_job_prints_a_table_writes_it_as_csv_and_touches_nothing_else(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs, "mine")
    before = content(cli.outputs)
    ended = cli("job=reprice", "name=mine", "pricing=2026-11-21", "job.scale=0.1", "job.cache_hits=0.5")
    assert ended.code == 0, ended.err
    assert "bench: as run, and with pricing=2026-11-21, 50% of input from caches" in ended.out
    assert "of 9 ranks differ. AMS: Spearman" in ended.out
    assert "Budgets and thresholds of AMS are 0.1 times those of the sweep now." in ended.out
    after = content(cli.outputs)
    assert after.pop("mine/repriced.csv")
    assert {name: after[name] for name in before} == before, "byte by byte"
    assert set(after) - set(before) <= {".lock"}
    cells = pd.read_csv(sweep / "repriced.csv")
    assert cells["rank_then"].tolist() == list(range(1, 10))
    assert set(cells["pricing"].str.partition("@")[0]) == {"2026-11-21"}


def test_the_ranks_of_then_are_those_of_the_leaderboard(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs, "mine")
    assert cli("job=reprice", "name=mine").code == 0
    assert cli("job=report", "name=mine").code == 0
    own = pd.read_csv(sweep / "leaderboard.csv").set_index("cell")
    found = pd.read_csv(sweep / "repriced.csv").set_index("cell")
    assert found["rank_then"].to_dict() == own["rank"].to_dict()
    assert found["AMS_then"].to_dict() == pytest.approx(own["AMS"].to_dict())


def test_a_typed_scoring_holds_on_both_sides(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs, "mine")
    assert cli("job=reprice", "name=mine", "scoring.alpha=1").code == 0
    found = pd.read_csv(sweep / "repriced.csv")
    assert (found["AMS_then"] > 0).any()
    assert json.loads((sweep / "sweep.json").read_text())["scoring"]["alpha"] == 0.6


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            ["pricing=agentmeter-2026-06-04"],
            "has no price of glm (zai/glm-5.1), qwen (dashscope/qwen3.7-max)",
        ),
        (
            ["job.models={gtp: openai/gpt-5.4}"],
            "job.models.gtp: the sweep has no such model; it has glm, gpt",
        ),
        (["job.models={gpt: openai/gpt}"], "job.models.gpt: pricing=2026-11-22 has no entry openai/gpt;"),
        (["job.cache_hits=2"], "job.cache_hits: Input should be less than or equal to 1"),
        (["name=nothing"], "has no sweep named nothing"),
    ],
)
def test_what_cannot_be_priced_is_refused(cli: Cli, words: list[str], reason: str) -> None:
    sweep = finished_sweep(cli.outputs, "mine")
    ended = cli("job=reprice", "name=mine", *words)
    assert ended.code == 2
    assert reason in ended.err
    assert not (sweep / "repriced.csv").exists()


def test_an_unknown_price_is_missing_if_the_user_goes_on_and_another_entry_may_stand_in(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs, "mine")
    words = ("pricing=agentmeter-2026-06-04", "pricing.allow_unknown=true", "job.cache_hits=0")
    ended = cli("job=reprice", "name=mine", *words, "job.models={glm: openai/gpt-5.4}")
    assert ended.code == 0, ended.err
    found = pd.read_csv(sweep / "repriced.csv")
    assert found["AMS_now"].isna().equals(found["model"] == "qwen")


THEIRS = (
    "harness,llm,task_id,difficulty,trial,outcome,score,cost_cents,{tokens},steps,duration_ms,ended",
    "a,m,t1,E,1,ok,1,-,1000,200,4,65000,2026-05-01T10:00:00Z",
    "a,m,t2,M,1,ok,0,-,2000,300,6,75000,2026-05-01T10:10:00Z",
    "a,m,t3,H,1,ok,1,-,-,900,20,600000,2026-05-01T10:20:00Z",
)


def imported(outputs: Path, tokens: str) -> Path:
    """Import trials without costs; `tokens` has the names of two columns."""
    file = outputs.parent / "theirs.csv"
    file.write_text("\n".join(THEIRS).format(tokens=tokens) + "\n")
    mapping = read_mapping(ROOT / "conf/mapping_example.yaml")
    if tokens == "x,y":
        columns = {ours: theirs for ours, theirs in mapping.columns.items() if "tokens" not in ours}
        mapping = mapping.model_copy(update={"columns": columns})
    import_trials(file, mapping, outputs / "theirs", AGENTMETER)
    return outputs / "theirs"


def test_an_import_is_priced_by_its_counts_and_no_count_is_guessed(cli: Cli) -> None:
    sweep = imported(cli.outputs, "prompt_tokens,completion_tokens")
    terms = {"pricing": snapshot(), "entries": {"m": ID}}
    counted = reprice(sweep, Terms(**terms))[2]
    assert counted.why == {NO_CACHE_COUNTS: 2, NO_COUNTS: 1}
    assert counted.trials["cost_usd"].isna().all()
    found = reprice(sweep, Terms(**terms, cache_hits=0))[2]
    assert found.trials["cost_usd"].tolist()[:2] == pytest.approx([0.004, 0.007])
    assert found.why == {NO_COUNTS: 1}


def test_an_import_without_token_counts_is_refused(cli: Cli) -> None:
    imported(cli.outputs, "x,y")
    ended = cli("job=reprice", "name=theirs")
    assert ended.code == 2
    assert "theirs: none of its 3 trials has counts of input and output tokens" in ended.err


def test_a_sweep_of_which_nothing_has_run_is_refused(cli: Cli) -> None:
    write_sweep(cli.outputs, [row("codex", "easy-1")], {}, "mine")
    ended = cli("job=reprice", "name=mine")
    assert ended.code == 2
    assert "no trial of an agent that competes has run" in ended.err
