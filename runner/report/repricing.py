"""The cost of a sweep's trials at other prices (AgentMeter section 6), from the token counts of their calls.

Nothing is written here. Only prices change: an agent that knew of others, or met its cap sooner, might have acted
otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from metrics.errors import listed
from runner.errors import ConfigError
from runner.gateway.call_prices import price
from runner.records import ModelCall, Prices, Record, Scoring, TrialRecord, Usage
from runner.records.trial_files import LEDGER
from runner.report.competition import contenders
from runner.report.leaderboard import lines
from runner.report.trial_sources import sweep_trials
from runner.sweeps.pricing import Pricing
from runner.sweeps.store import Store, ledger_spend, ledgers

_COUNTS = ("input_tokens", "cache_creation_tokens", "cache_hit_tokens", "output_tokens")
NO_COUNTS = "tokens were not all counted"
NO_CACHE_COUNTS = "cache tokens were not counted (job.cache_hits=0 takes all input as fresh)"
NO_RATE = "the snapshot lacks a rate that it needs, such as that of cache reads"
NO_PRICE = "the snapshot has no price of the model"
NO_SPLIT = "two models were asked, and the calls of each are not known"
NO_CALLS = "long calls cost more, and only the sum of its calls is known"


class Terms(Record):
    """The assumptions under which trials are priced anew."""

    pricing: Pricing
    entries: dict[str, str] = {}
    """Model -> its entry in the snapshot, as typed by the user."""
    ids: dict[str, str] = {}
    """Model -> its configured litellm id. The id in a ledger takes precedence."""
    cache_hits: float | None = None
    """Share of the input of each call that is read from a cache, none being written to it; None: as counted."""

    def usage(self, counted: Usage) -> Usage:
        """Return token counts as the assumption about caches has them."""
        if self.cache_hits is None:
            return counted
        hits = round(self.cache_hits * counted.input_tokens)
        return counted.model_copy(update={"cache_creation_tokens": 0, "cache_hit_tokens": hits})


class Cost(NamedTuple):
    """Cost of one trial."""

    usd: float | None
    why: str = ""
    """Reason why the cost is unknown."""


class Repricer:
    """Prices trials under some terms."""

    def __init__(self, terms: Terms, own: Mapping[str, Prices]) -> None:
        """`own` has the prices of models that brought them along, which hold unless the snapshot has another."""
        self.terms = terms
        self._own = own
        self._known: dict[tuple[str, str], Prices | None] = {}
        self.kept: set[str] = set()
        """Models that keep their own prices."""
        self.unpriced: dict[str, str] = {}
        """Models without a price -> the id that was looked for."""

    def of_record(self, record: TrialRecord, folder: Path) -> Cost:
        """Price a trial by its ledgers, or by the sum on its record if they are not there or not whole."""
        if record.model == "none":
            return Cost(record.cost_usd)
        own = self._own.get(record.model)
        if own and own.per_second is not None and record.model not in self.terms.entries:
            self.kept.add(record.model)  # priced by the hour: token counts say nothing about its cost
            return Cost(record.cost_usd, NO_COUNTS)
        failures: set[str] = set()
        helper = self._helper(record, folder)

        def cost_of(call: ModelCall) -> float | None:
            name = record.helper.model if record.helper and call.model == helper else record.model
            found = self._of_usage(name, call.usage, call.model)
            failures.add(found.why)
            return found.usd

        spends = [ledger_spend(path, cost_of) for path in ledgers(folder)]
        if spends and sum((spend.usage for spend in spends), Usage()) == record.usage:
            costs = [spend.cost_usd for spend in spends]
            return Cost(None, max(failures)) if None in costs else Cost(sum(cost or 0.0 for cost in costs))
        if record.helper and record.helper.turns:
            return Cost(None, NO_SPLIT)
        if record.cost_usd is None:  # perhaps because some of its tokens are not in the sum
            return Cost(None, NO_COUNTS)
        return self.of_sum(record.model, record.usage)

    def _helper(self, record: TrialRecord, folder: Path) -> str:
        """Return the id of the helper model in the trial's ledgers: the one whose tokens the record gives as its own.

        Empty if no helper was asked, or if both models have the same id and therefore the same price.
        """
        if not record.helper:
            return ""
        counted: dict[str, Usage] = {}

        def count(call: ModelCall) -> None:
            counted[call.model] = counted.get(call.model, Usage()) + (call.usage or Usage())

        ledger_spend(folder / LEDGER, count)  # of the last try, as in the record
        return next((name for name, usage in counted.items() if usage == record.helper.usage), "")

    def of_row(self, row: Mapping[Any, Any]) -> Cost:
        """Price a trial of an imported table by its counts, each of which may be missing."""
        if row["model"] == "none":
            return Cost(None if pd.isna(row["cost_usd"]) else float(row["cost_usd"]), NO_COUNTS)
        counts = {name: None if pd.isna(row[name]) else int(row[name]) for name in _COUNTS}
        if self.terms.cache_hits is not None:
            counts |= dict.fromkeys(_COUNTS[1:3], 0)
        if None in (counts["input_tokens"], counts["output_tokens"]):
            return Cost(None, NO_COUNTS)
        if None in counts.values():
            return Cost(None, NO_CACHE_COUNTS)
        return self.of_sum(str(row["model"]), Usage.model_validate(counts))

    def of_sum(self, model: str, usage: Usage) -> Cost:
        """Price the sum of a trial's calls. Where long calls cost more, the sum must not be as long as a long call."""
        prices = self._prices(model, "")
        if prices and prices.tiers and usage.input_tokens > prices.tiers[0].above_input_tokens:
            return Cost(None, NO_CALLS)
        return self._of_usage(model, usage, "")

    def _of_usage(self, model: str, usage: Usage | None, model_id: str) -> Cost:
        prices = self._prices(model, model_id)
        if prices is None:
            return Cost(None, NO_PRICE)
        if usage is None:
            return Cost(None, NO_COUNTS)
        cost = price(self.terms.usage(usage), prices)
        return Cost(cost, NO_RATE if cost is None else "")

    def _prices(self, model: str, model_id: str) -> Prices | None:
        """Return the prices of a model: those of the typed entry, of its id or of its name, or else its own."""
        key = (model, model_id)
        if key not in self._known:
            entries = self.terms.entries
            wanted = (
                [entries[model]] if model in entries else [model_id, self.terms.ids.get(model, ""), model]
            )
            found = (self.terms.pricing.usd(name) for name in wanted if name)
            self._known[key] = next((one for one in found if one and one.known), None)
            if self._known[key] is None:
                if model in self._own:
                    self._known[key] = self._own[model]
                    self.kept.add(model)
                else:
                    self.unpriced[model] = next(name for name in wanted if name)
        return self._known[key]


class Repriced(NamedTuple):
    """The trials of a sweep, priced anew."""

    trials: pd.DataFrame
    """Trials with `cost_usd` under the terms."""
    why: Counter[str]
    """Reason -> trials whose cost is unknown now, among those that ran."""
    kept: Collection[str]
    """Models that keep the prices that they brought along."""


def reprice(sweep: Path, terms: Terms) -> tuple[Scoring, pd.DataFrame, Repriced]:
    """Return the scoring of a sweep, its trials as they were priced, and as they are under these terms.

    Raises `ConfigError` if there is no such sweep, no trial of a contender has token counts, or a model has no price.
    """
    plan, records, trials = sweep_trials(sweep, sweep.parent)
    helpers = {record.helper.model for record in records.values() if record.helper}
    _check_names({*trials["model"], *helpers}, terms)
    # A record names the snapshot of its prices, if they are of one.
    own = plan.prices.keys() & {
        record.model for record in records.values() if not record.digests.get("prices")
    } | (plan.prices.keys() & helpers)
    repricer = Repricer(terms, {model: plan.prices[model] for model in own})
    store = Store(sweep.parent)
    costs: dict[Any, float | None] = {}
    why: Counter[str] = Counter()
    for at, row in lines(trials[trials["ran"]]).items():
        record = records.get(row["key"])
        found = repricer.of_record(record, store.folder(record.key)) if record else repricer.of_row(row)
        costs[at] = found.usd
        if found.usd is None:
            why[found.why] += 1
    _check_found(sweep, trials, repricer)
    now = pd.Series(costs, dtype=float).reindex(trials.index)
    return plan.scoring, trials, Repriced(trials.assign(cost_usd=now), why, sorted(repricer.kept))


def _check_names(found: Collection[str], terms: Terms) -> None:
    """Raise `ConfigError` for a typed model that is not among those found, or an entry that does not exist."""
    models = sorted(found)
    for model, entry in terms.entries.items():
        if model not in models:
            raise ConfigError(f"job.models.{model}: the sweep has no such model; it has {listed(models)}.")
        if entry not in terms.pricing.prices:
            known = listed(terms.pricing.prices) or "none"
            raise ConfigError(
                f"job.models.{model}: pricing={terms.pricing.name} has no entry {entry}; it has {known}."
            )


def _check_found(sweep: Path, trials: pd.DataFrame, repricer: Repricer) -> None:
    """Raise `ConfigError` if nothing can be said about any trial, or a model without a price was not expected."""
    rows = contenders(trials[trials["ran"]])
    if rows.empty:
        raise ConfigError(
            f"{sweep.name}: no trial of an agent that competes has run, so nothing can be priced."
        )
    if rows[["input_tokens", "output_tokens"]].isna().any(axis=1).all():
        raise ConfigError(
            f"{sweep.name}: none of its {len(rows)} trials has counts of input and output tokens, and a cost is not "
            "guessed from anything else. Import them with these columns (job=import)."
        )
    if repricer.unpriced and not repricer.terms.pricing.allow_unknown:
        name = repricer.terms.pricing.name
        lacking = ", ".join(
            f"{model} ({entry})" if entry != model else model
            for model, entry in sorted(repricer.unpriced.items())
        )
        raise ConfigError(
            f"pricing={name} has no price of {lacking}: choose another pricing=, or name an entry of this one with "
            "'job.models={MODEL: ENTRY}'; pricing.allow_unknown=true goes on all the same, with costs missing."
        )
