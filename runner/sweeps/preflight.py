"""Ask each model once before the first trial, with a smallest call by each API that the agents of the sweep speak.

A wrong key, an empty account, a model that does not exist and a server that lacks an API are found here, for a fraction
of a cent, and not by trials.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from threading import Event
from typing import TYPE_CHECKING, Final, NamedTuple

from runner.errors import ConfigError
from runner.protocols import helper_of
from runner.records import PREFLIGHT_SMALLEST, ApiName, Model
from runner.sweeps.plan import counted
from runner.terminal.escaping import Say, one_line

if TYPE_CHECKING:
    from pathlib import Path

    from runner.gateway import Gateway
    from runner.gateway.probe import Probe
    from runner.sweeps.plan import PlannedTrial

FOLDER: Final = "preflight"
"""Folder in the sweep's folder with the ledgers of these calls."""
WORDS: Final = 400
"""Longest excerpt of a provider's refusal that is shown, in characters."""
_SECONDS: Final = 120
"""Upper bound on the seconds of a smallest call (`probe.SECONDS`), for a model that is priced by the hour."""
_INPUT_TOKENS: Final = 256
"""Upper bound on the input tokens of a smallest call, including tokens that a server adds."""


class Route(NamedTuple):
    """A model and the API through which it is asked."""

    model: Model
    api: ApiName

    @property
    def name(self) -> str:
        """Name for people, made of model and API."""
        return f"{self.model.name} ({self.api})"

    def usd(self, output_tokens: int) -> float | None:
        """Return the USD of a call with so many tokens of output; None if the model has no price."""
        prices = self.model.prices
        if prices.per_second is not None:
            return prices.per_second * _SECONDS
        if prices.input is None or prices.output is None:
            return None
        return (_INPUT_TOKENS * prices.input + output_tokens * prices.output) / 1e6


def routes(trials: Iterable[PlannedTrial]) -> list[Route]:
    """Return each pair of a provider's model and an API once; judges and agents' helpers are asked by chat."""
    found: dict[tuple[str, str], Route] = {}
    for trial, _ in counted(trials):
        cell, judge = trial.cell, trial.cell.dataset.verifier.judge
        asked = [Route(cell.model, cell.agent.api)] if cell.agent.uses_model else []
        asked += [Route(judge.model, "chat")] if judge else []
        helper = helper_of(cell.agent)
        asked += [Route(helper, "chat")] if helper and not cell.model.replayed else []
        for route in asked:
            if route.model.backend == "provider":
                found.setdefault((route.model.model_dump_json(), route.api), route)
    return list(found.values())


def check(asked: Sequence[Route], gateway: Gateway, folder: Path, note: Say) -> None:
    """Ask all models at once. `folder` is the sweep's.

    Raises `ConfigError` with a line for each model that does not answer, before anything is spent on trials.
    """
    if not asked:
        return
    answers = _ask(asked, gateway, folder / FOLDER)
    if failed := [(route, one) for route, one in zip(asked, answers, strict=True) if one.error]:
        answered = [route for route, one in zip(asked, answers, strict=True) if not one.error]
        lines = [_complaint(route, one, answered) for route, one in failed]
        lines.append("No trial was started. gateway.preflight=false starts without asking first.")
        raise ConfigError("\n".join(lines))
    costs = [one.cost_usd for one in answers]
    spent = "at an unknown price" if None in costs else f"for {sum(cost or 0.0 for cost in costs):.4f} USD"
    note(f"Preflight: {_names(asked)} answered, {spent}.")
    for route, one in zip(asked, answers, strict=True):
        if one.lost_params:
            note(
                f"model {route.name}: {', '.join(one.lost_params)} of model.params cannot be sent to this provider by "
                "this API and is left out; such trials have the flag params_dropped."
            )


def plan_lines(asked: Sequence[Route]) -> Iterator[str]:
    """Yield what the calls before the first trial may cost; nothing if there are none."""
    if not asked:
        return
    usual = [route.usd(PREFLIGHT_SMALLEST) for route in asked]
    worst = [route.usd(route.model.preflight_output) for route in asked]
    known, most = (sum(price for price in prices if price is not None) for prices in (usual, worst))
    unknown = f", {usual.count(None)} of them at an unknown price" if None in usual else ""
    yield (
        f"Preflight: one smallest call to each of {_names(asked)}{unknown}: {known:.4f} USD beside that, up to "
        f"{most:.2f} if models think first (gateway.preflight=false leaves it out)."
    )


def _names(asked: Sequence[Route]) -> str:
    """Name the models, each with its APIs."""
    apis: dict[str, list[str]] = {}
    for route in asked:
        apis.setdefault(route.model.name, []).append(route.api)
    return ", ".join(f"{name} ({', '.join(names)})" for name, names in apis.items())


def _ask(routes: Sequence[Route], gateway: Gateway, folder: Path) -> list[Probe]:
    from runner.gateway.probe import probe  # noqa: PLC0415 - the gateway's libraries load only when a model is used

    stop = Event()

    def ask(numbered: tuple[int, Route]) -> Probe:
        number, route = numbered
        name = re.sub(r"[^\w.-]", "_", f"{number}_{route.model.name}_{route.api}")
        return probe(gateway, route.model, route.api, folder / f"{name}.jsonl", stop.is_set)

    with ThreadPoolExecutor(len(routes), thread_name_prefix="preflight") as pool:
        try:
            return list(pool.map(ask, enumerate(routes, 1)))
        finally:
            stop.set()  # after an error or Ctrl-C, the pool's exit waits for the calls under way


def _complaint(route: Route, failed: Probe, answered: Sequence[Route]) -> str:
    """Return the reason why a model did not answer, in its provider's words, and what to do about it."""
    words = one_line(" ".join(failed.error.message.split()))[:WORDS].rstrip(".") if failed.error else ""
    return f"model {route.name} did not answer a smallest call ({failed.status_code}): {words}. " + _advice(
        route, failed, answered
    )


def _advice(route: Route, failed: Probe, answered: Sequence[Route]) -> str:
    model = route.model
    if failed.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        if model.api_key_env is None:
            return "It names no key: set model.api_key_env=VARIABLE."
        return f"Check the key in {model.api_key_env}, and what it may call."
    if failed.status_code == HTTPStatus.PAYMENT_REQUIRED:
        return "Check the account's balance."
    if not failed.refused:
        return f"Check that {model.api_base or 'the provider'} can be reached from here, and model.id={model.id}."
    others = [one.api for one in answered if one.model == model]
    if others or (route.api != "chat" and failed.status_code == HTTPStatus.NOT_FOUND):
        return (
            f"If its server does not speak {route.api}, choose agents that speak {' or '.join(others) or 'chat'}, or "
            f"set model.apis=[{','.join(others) or 'chat'}]: the gateway then translates {route.api} to chat."
        )
    return f"Check model.id={model.id}, model.api_base and model.params."
