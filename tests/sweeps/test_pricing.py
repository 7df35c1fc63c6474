"""Snapshots of prices: what they say, how they reach a model, and the job that writes them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_dir
from pydantic import ValidationError

from metrics.cost import TokenCounts, TokenRates, call_cost
from runner.cli import arguments
from runner.cli.config import load
from runner.errors import ConfigError
from runner.gateway.call_prices import price
from runner.jobs.prices import configured
from runner.records import Budget, Model, Prices, PriceTier, Usage
from runner.resources import CONF
from runner.sweeps.cells import Sweep
from runner.sweeps.pricing import Entry, Pricing, from_litellm, priced

Command = Callable[..., subprocess.CompletedProcess[str]]

SHIPPED = CONF / "pricing/2026-11-22.yaml"
PAPER = CONF / "pricing/agentmeter-2026-06-04.yaml"


def shipped(file: Path) -> Pricing:
    return Pricing.model_validate(yaml.safe_load(file.read_text()))


def snapshot(**fields: Any) -> Pricing:
    return Pricing.model_validate({"name": "s", "date": "2026-06-04", "source": "a test"} | fields)


def loaded(*overrides: str) -> Sweep:
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        return load(
            [compose("config", overrides=arguments.check(["agent=codex", "dry_run=true", *overrides]))]
        )


# --- what a snapshot says ---------------------------------------------------------------------------------------------


def test_the_default_snapshot_is_the_jobs_work_and_prices_every_shipped_model(
    command: Command, tmp_path: Path
) -> None:
    written = tmp_path / "again.yaml"
    ended = command("job=prices", "job.date=2026-11-22", f"job.path={written}")
    assert ended.returncode == 0, ended.stderr
    assert "8 models priced" in ended.stdout
    assert written.read_text() == SHIPPED.read_text()
    assert shipped(SHIPPED).absent == ()
    again = command("job=prices", "job.date=2026-11-22", f"job.path={written}")
    assert again.returncode == 2
    assert "is there already" in again.stderr


def test_the_job_lists_what_the_map_lacks(command: Command, tmp_path: Path) -> None:
    written = tmp_path / "some.yaml"
    ended = command("job=prices", "job.models=[openai/gpt-5.4,nobody/nothing]", f"job.path={written}")
    assert "1 models priced" in ended.stdout
    assert shipped(written).absent == ("nobody/nothing",)
    for words in ("job.path=/proc/none.yaml", f"job.path={tmp_path}/x.yaml job.date=2026-13-01"):
        refused = command("job=prices", *words.split())
        assert (refused.returncode, "Traceback" in refused.stderr) == (2, False), "it was a trace"
    none = command("job=prices", "job.models=[nobody/nothing]", f"job.path={tmp_path}/none.yaml")
    assert (none.returncode, (tmp_path / "none.yaml").exists()) == (2, False)


def test_the_papers_snapshot_gives_back_the_costs_of_its_table() -> None:
    """CLI-Tool-Bench, Table 3: mean kilotokens in and out, mean USD."""
    paper = shipped(PAPER)
    assert paper.cny_per_usd == 6.77
    for model, read, wrote, usd in (
        ("openai/gpt-5.4", 161.86, 9.32, 0.54),
        ("openai/gpt-5.4", 16.90, 3.13, 0.09),
        ("moonshot/kimi-k2.5", 1259.57, 20.58, 0.82),
    ):
        prices = paper.usd(model)
        assert prices is not None
        assert prices.cache_hit is None
        cost = call_cost(TokenCounts(read, 0, 0, wrote), TokenRates(prices.input, prices.output, None, None))
        assert cost / 1000 == pytest.approx(usd, abs=0.006)


def test_every_shipped_model_is_priced_or_marked_absent() -> None:
    ids = set(configured().values())
    assert len(ids) == 8
    for file in (SHIPPED, PAPER):
        pricing = shipped(file)
        assert pricing.name == file.stem
        assert ids == pricing.prices.keys() | set(pricing.absent)
        assert not pricing.prices.keys() & set(pricing.absent)


def test_cny_is_converted_at_the_snapshots_own_rate() -> None:
    tier = PriceTier(above_input_tokens=10, input=13.54, output=6.77)
    entry = Entry(input=6.77, output=67.7, cache_hit=0.0, tiers=(tier,), source="a page")
    prices = snapshot(currency="CNY", cny_per_usd=6.77, prices={"p/m": entry}).usd("p/m")
    assert prices is not None
    assert (prices.input, prices.cache_hit, prices.cache_creation) == (1.0, 0.0, None)
    assert prices.output == pytest.approx(10.0)
    assert (prices.tiers[0].input, prices.tiers[0].above_input_tokens) == (2.0, 10)
    assert (prices.source, prices.date) == ("a page", "2026-06-04")
    assert snapshot(cny_per_usd=6.77, prices={"p/m": entry}).usd("p/m") == Prices(
        **entry.model_dump(exclude={"note"}), date="2026-06-04"
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"currency": "CNY"},
        {"cny_per_usd": 0},
        {"date": "June"},
        {"prices": {"m": {"inptu": 1}}},
        {"prices": {"m": {"tiers": [{"input": 1}]}}},
    ],
)
def test_a_wrong_snapshot_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        snapshot(**fields)


def test_tiers_must_rise() -> None:
    high, low = (PriceTier(above_input_tokens=bound) for bound in (2, 1))
    assert Prices(tiers=(low, high)).tiers == (low, high)
    with pytest.raises(ValidationError, match="must rise"):
        Prices(tiers=(high, low))


def test_both_ways_of_the_map_to_write_tiers() -> None:
    gpt, qwen = (
        from_litellm([model], "2026-11-21").prices[model]
        for model in ("openai/gpt-5.4", "dashscope/qwen3-coder-plus")
    )
    assert [(tier.above_input_tokens, tier.input, tier.output) for tier in gpt.tiers] == [
        (272_000, 5.0, 22.5)
    ]
    assert (qwen.input, [tier.above_input_tokens for tier in qwen.tiers]) == (1.0, [32_000, 128_000, 256_000])


def test_a_bare_name_counts_only_for_its_own_provider() -> None:
    assert from_litellm(["elsewhere/gpt-5.4"], "2026-11-21").absent == ("elsewhere/gpt-5.4",)


# --- how it reaches a model -------------------------------------------------------------------------------------------


def test_a_call_is_charged_at_the_rates_of_its_length() -> None:
    long = PriceTier(above_input_tokens=1000, input=2.0, output=20.0)
    prices = Prices(input=1.0, output=10.0, cache_hit=0.5, tiers=(long,))
    assert price(Usage(input_tokens=1000, output_tokens=100), prices) == pytest.approx(0.002)
    assert price(Usage(input_tokens=1001, output_tokens=100), prices) == pytest.approx(0.004002)
    assert price(Usage(input_tokens=1000, cache_hit_tokens=1), prices) is not None
    assert price(Usage(input_tokens=1001, cache_hit_tokens=1), prices) is None


def test_the_chosen_snapshot_prices_the_model_and_is_named_on_the_cell() -> None:
    (first,) = loaded("model=gpt").cells
    assert first.model.prices == shipped(SHIPPED).usd("openai/gpt-5.4")
    assert first.prices == shipped(SHIPPED).label
    (paper,) = loaded("model=gpt", "pricing=agentmeter-2026-06-04").cells
    assert paper.model.prices.source == "CLI-Tool-Bench"
    assert paper.prices.startswith("agentmeter-2026-06-04@")


def test_prices_of_its_own_beat_the_snapshot() -> None:
    (cell,) = loaded("model=gpt", "model.prices.input=1", "model.prices.output=2").cells
    assert (cell.model.prices, cell.prices) == (Prices(input=1, output=2), "")
    (scripted,) = loaded("model=scripted_hasty").cells
    assert (scripted.model.prices.input, scripted.prices) == (1.25, "")


def test_a_model_without_a_price_is_refused_at_the_door() -> None:
    unknown = ("model=glm", "pricing=agentmeter-2026-06-04")
    with pytest.raises(
        ConfigError,
        match=r"glm \(zai/glm-5.1\) has no price in .*allow_unknown=true budget\.usd=null runs it",
    ):
        loaded(*unknown)
    with pytest.raises(ConfigError, match=r"budget\.usd: glm .* cannot be capped"):
        loaded(*unknown, "pricing.allow_unknown=true")
    (cell,) = loaded(*unknown, "pricing.allow_unknown=true", "budget=unlimited").cells
    assert (cell.model.prices, cell.prices) == (Prices(), "")
    assert price(Usage(input_tokens=1), cell.model.prices) is None
    with pytest.raises(ConfigError, match=r"sweep_budget\.usd: model glm has no price"):
        loaded(*unknown, "pricing.allow_unknown=true", "budget=unlimited", "sweep_budget.usd=5")


def test_a_price_for_input_alone_is_none() -> None:
    half = snapshot(prices={"p/m": {"input": 1.0}})
    with pytest.raises(ConfigError, match="has no price"):
        priced(Model(name="m", id="p/m"), Budget(), half)


def test_another_models_price_changes_the_snapshot_and_no_trial() -> None:
    one = snapshot(prices={"p/m": {"input": 1.0, "output": 2.0}})
    two = snapshot(prices={"p/m": {"input": 1.0, "output": 2.0}, "p/n": {"input": 1.0}})
    model = Model(name="m", id="p/m")
    assert one.label != two.label
    assert priced(model, Budget(), one)[0] == priced(model, Budget(), two)[0]
    assert one.label == one.model_copy(update={"allow_unknown": True}).label
