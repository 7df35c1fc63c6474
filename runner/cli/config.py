"""Turn composed configuration into frozen objects.

Everything is resolved, imported and validated here, before any container starts. YAML names the *variable* that holds a
secret and never the secret, so that a composed configuration may be shown and stored.

Paths: `${root:tasks/x}` in YAML starts at the data that ships with Assay; a relative path, typed on the command line or
in a user's own YAML, starts where the user is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from runner.cli import models
from runner.cli.arguments import DATA, config_folders, keys_at, option_nodes, target
from runner.errors import ConfigError
from runner.protocols import Agent, helper_of
from runner.records import AXES, Budget, Judge, Model, Scoring
from runner.records.base import SECRET
from runner.resources import ROOT
from runner.sweeps.cells import LONGEST_NAME, NO_MODEL, Cell, Settings, Sweep
from runner.sweeps.pricing import Pricing, priced
from runner.sweeps.refusals import absent_keys
from runner.sweeps.store_address import CREDENTIALS, checked, is_address, local_folder
from runner.sweeps.tiers import read_tiers
from runner.sweeps.yaml_files import leaves
from runner.terminal.suggestions import suggest

OmegaConf.register_new_resolver("root", lambda path: str(ROOT / path), replace=True)
OmegaConf.register_new_resolver("limit", lambda most: "unlimited" if most is None else most, replace=True)

_PER_CELL = (*AXES, "attempts")
"""Keys in which cells of one sweep may differ."""
_KEY_VARIABLE = re.compile(r"(^|\.)(more|(api_)?key)_env$")
_SCORING_WORD = re.compile(r"[+~]*scoring\b(?:\.(?P<key>[\w.]+)=)?")


def load(configs: Sequence[DictConfig], typed: Sequence[str] = ()) -> Sweep:
    """Return the sweep that the composed jobs of one command form. Raises `ConfigError`; starts nothing.

    `typed` is the command line, which says whether a scoring was asked for.
    """
    if not configs:
        raise ConfigError("Nothing to run: a pattern such as glob(...) matches no option.")
    configs = _with_whole_models(configs, config_folders(typed))
    nodes = [_resolved(config) for config in configs]
    for node in nodes:
        _check_placement(node)
    _check_same_settings(nodes)
    scorings = _scorings(nodes)
    _check_env(nodes, typed)
    cells = _cells(nodes, build(nodes[0].get("pricing"), "pricing", Pricing))
    shared = {key: value for key, value in nodes[0].items() if key not in _PER_CELL}
    shared |= {"name": shared.get("name") or _name(cells), "scoring": scorings[0]}
    is_typed = len(scorings) > 1 or any(_SCORING_WORD.match(word) for word in typed)
    sweep = Sweep(
        cells=cells,
        settings=build(shared, "", Settings),
        composed=tuple(OmegaConf.to_container(config) for config in configs),
        scorings=scorings if is_typed else (),
        scoring_keys=_keys_of_scoring(typed),
        named=bool(nodes[0].get("name")),
    )
    if len(scorings) > 1 and not sweep.settings.job.several_scorings:
        raise ConfigError(
            f"{len(scorings)} scorings were given, and this job takes one. To compare scorings of finished trials: "
            "job=sensitivity name=SWEEP."
        )
    if sweep.settings.dry_run and not sweep.settings.job.plans:
        raise ConfigError("dry_run=true shows what would be run, and this job runs no trial: leave it out.")
    if sweep.settings.job.needs_keys and not sweep.settings.dry_run:
        _check_keys(cells)
    if sweep.settings.sweep_budget.usd is not None:
        _check_prices(cells)
    return sweep


def load_composed(composed: Iterable[dict[str, Any]]) -> Sweep:
    """Return the sweep that `Sweep.composed` of another process forms here. Raises `ConfigError`."""
    return load([OmegaConf.create(dict(node)) for node in composed])


def build(node: Any, where: str, kind: type[BaseModel] | None = None) -> Any:
    """Build the object that a resolved node describes, of its `_target_` or of `kind`, nested nodes first.

    Raises `ConfigError` with the key, the reason and the nearest valid key of each fault.
    """
    if not isinstance(node, dict):
        raise ConfigError(f"{where}: a mapping is needed, not {node!r}.")
    prefix = f"{where}." if where else ""
    chosen: Any = target(node["_target_"], where) if "_target_" in node else kind
    if chosen is None:
        raise ConfigError(f"{where}: `_target_` is missing: which class is it?")
    values = {}
    for key, value in node.items():
        if isinstance(value, dict) and "_target_" in value:
            values[key] = build(value, f"{prefix}{key}")
        elif key != "_target_":
            values[key] = _fitted(chosen, key, value)
    try:
        return chosen(**values)
    except ValidationError as error:
        faults = [_fault(chosen, prefix, fault) for fault in error.errors()]
        raise ConfigError("\n".join(faults)) from error


def _data(group: str) -> type[Any] | None:
    return target(DATA[group], group) if group in DATA else None


def _resolved(config: DictConfig) -> dict[str, Any]:
    """Return plain values with every interpolation resolved. Raises `ConfigError`."""
    try:
        node: Any = OmegaConf.to_container(_located(config), resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        key = error.full_key
        raise ConfigError(
            f"{key}: it has no default. Add {key}=...; --help GROUP=OPTION, as --help dataset=harbor, says what it is."
        ) from error
    except OmegaConfBaseException as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"{error.full_key or 'configuration'}: {reason}") from error
    return dict(node)


def _located(config: DictConfig) -> DictConfig:
    """Return the configuration with a folder of this machine as `outputs`, where that is the address of a store."""
    outputs = config.get("outputs")
    if not is_address(outputs):
        if OmegaConf.select(config, "store.address"):
            raise ConfigError("store.address: type outputs=s3://BUCKET/PREFIX instead.")
        return config
    address = checked(outputs)
    located = config.copy()
    OmegaConf.set_struct(located, False)  # noqa: FBT003 - its own signature
    local = OmegaConf.select(located, "store.local")
    located.outputs = str(Path(local).expanduser().absolute() if local else local_folder(address))
    OmegaConf.update(located, "store.address", address)
    return located


def _with_whole_models(configs: Sequence[DictConfig], folders: Sequence[Path]) -> list[DictConfig]:
    """Return the configurations with models to which nothing must be added (`models.completed`).

    Servers are asked only for jobs that call models: all others work without them.
    """
    asked: models.Windows = {}
    whole = []
    for config in configs:
        job = OmegaConf.select(config, "job._target_")
        asks = bool(job) and target(job, "job").needs_keys
        keys = ("name", "base_url", "id", "api_key_env", "context_window", "params")
        selected = {key: OmegaConf.select(config, f"model.{key}") for key in keys}
        node = {
            key: OmegaConf.to_container(value) if isinstance(value, DictConfig) else value
            for key, value in selected.items()
        }
        changes = models.completed(node, folders, asked if asks else None)
        if changes:
            config = config.copy()  # noqa: PLW2901 - others may read the original
            OmegaConf.set_struct(config, False)  # noqa: FBT003 - its own signature
            for key, value in changes.items():
                OmegaConf.update(config, f"model.{key}", value)
        whole.append(config)
    return whole


def _scorings(nodes: Sequence[dict[str, Any]]) -> tuple[Scoring, ...]:
    """Return each scoring once, in order. `tiers` may name a tiers file."""
    found = []
    for node in nodes:
        scoring = node.get("scoring")
        if isinstance(scoring, dict) and isinstance(scoring.get("tiers"), str):
            scoring = {**scoring, **read_tiers(Path(scoring["tiers"]).expanduser().absolute())}
        found.append(build(scoring, "scoring", Scoring))
    return tuple(scoring for at, scoring in enumerate(found) if scoring not in found[:at])


def _keys_of_scoring(typed: Sequence[str]) -> tuple[str, ...]:
    """Return the typed keys of the scoring; none if a whole scoring was typed, or if only a preset sets it."""
    found = [match["key"] for word in typed if (match := _SCORING_WORD.match(word))]
    return tuple(key for key in found if key) if all(found) else ()


def _cells(nodes: Sequence[dict[str, Any]], pricing: Pricing) -> tuple[Cell, ...]:
    """Return one cell per distinct name, in order; equal nodes become one object."""
    built: dict[str, Any] = {}

    def part(node: dict[str, Any], group: str) -> Any:
        if group not in node:
            raise ConfigError(f"{group}: nothing was chosen. Add {group}=OPTION.")
        key = json.dumps([group, node[group]], sort_keys=True, default=str)
        if key not in built:
            built[key] = build(node[group], group, _data(group))
        return built[key]

    parts = [
        [part(_with_helper(_with_judge(node, pricing), pricing), group) for group in AXES] for node in nodes
    ]
    budgets = _distinct([budget for *_, budget in parts])
    cells: dict[str, Cell] = {}
    for node, chosen, budget in zip(nodes, parts, budgets, strict=True):
        agent, model, dataset, _ = chosen
        if agent.uses_model and model.replayed:
            from runner.gateway.cassette import sealed  # noqa: PLC0415 - brings the gateway's libraries

            model = sealed(model)
        if agent.uses_model:
            _check_needs(agent, model)
        model, prices = priced(model, budget, pricing) if agent.uses_model else (NO_MODEL, "")
        values = {"agent": agent, "model": model, "dataset": dataset, "budget": budget, "prices": prices}
        cell = build({**values, "attempts": node.get("attempts")}, "", Cell)
        if cells.setdefault(cell.name, cell) != cell:
            raise ConfigError(
                f"two different cells are called {cell.name}: results could not be told apart. Give what differs "
                "a name of its own (an option file in conf/), or run them as two commands."
            )
    return tuple(cells.values())


def _distinct(budgets: Sequence[Budget]) -> list[Budget]:
    """Return the budgets. The names of those that share one get their differing limits added: `default_turns_50`."""
    renamed = []
    for budget in budgets:
        twins = [other for other in budgets if other.name == budget.name]
        limits = [key for key in Budget.model_fields if len({getattr(twin, key) for twin in twins}) > 1]
        name = "_".join([budget.name, *(f"{key}_{getattr(budget, key)}".lower() for key in limits)])
        renamed.append(budget.model_copy(update={"name": name}))
    return renamed


def _with_judge(node: dict[str, Any], pricing: Pricing) -> dict[str, Any]:
    """Return the node with prices for the dataset's judge model, if there is one."""
    dataset: Any = node.get("dataset")
    verifier = dataset.get("verifier") if isinstance(dataset, dict) else None
    if not isinstance(verifier, dict) or verifier.get("judge") is None:
        return node
    judge: Judge = build(verifier["judge"], "dataset.verifier.judge", Judge)
    model, _ = priced(judge.model, Budget(name="judge", usd=judge.usd), pricing)
    judge = judge.model_copy(update={"model": model})
    return {**node, "dataset": {**dataset, "verifier": {**verifier, "judge": judge.model_dump()}}}


def _with_helper(node: dict[str, Any], pricing: Pricing) -> dict[str, Any]:
    """Return the node with prices for the agent's helper model, if there is one."""
    agent: Any = node.get("agent")
    if not isinstance(agent, dict) or not isinstance(agent.get("helper_model"), dict):
        return node
    helper: Model = build(agent["helper_model"], "agent.helper_model", Model)
    budget: Budget = build(node.get("budget"), "budget", Budget)
    model, _ = priced(helper, budget, pricing)
    return {**node, "agent": {**agent, "helper_model": model.model_dump()}}


def to_yaml(composed: Iterable[dict[str, Any]]) -> str:
    """Return configurations that Hydra composed, as a YAML document per cell."""
    return yaml.safe_dump_all(composed, sort_keys=False, allow_unicode=True)


def _check_placement(node: dict[str, Any]) -> None:
    """Raise `ConfigError` for a file meant for the whole configuration that was composed into a node of its own."""
    for group in ("experiment", "agent_model"):
        if group in node:
            raise ConfigError(
                f"the chosen {group} has no effect: its file must begin with `# @package _global_`."
            )


def _check_env(nodes: Sequence[dict[str, Any]], typed: Sequence[str]) -> None:
    """Raise `ConfigError` if `dataset.env` names the variable of an API key, of any option or of the store."""
    names = [name for node in nodes for name in dict(leaves(node)).get("dataset.env") or ()]
    if not names:
        return
    taken = sorted(CREDENTIALS.intersection(names))
    if taken and any((node.get("store") or {}).get("address") for node in nodes):
        raise ConfigError(
            f"dataset.env: {taken[0]} opens the store of the records, which no sandbox may change: leave it out, or "
            "choose a folder as outputs."
        )
    known = [*nodes, *option_nodes(config_folders(typed))]
    found = (value for node in known for path, value in leaves(node) if _KEY_VARIABLE.search(path))
    keys = {name for value in found for name in (value if isinstance(value, list) else [value])}
    if secret := sorted(keys.intersection(names)):
        raise ConfigError(
            f"dataset.env: {secret[0]} is where a provider's key is, which no sandbox ever gets: leave it out. "
            "Agents reach their model through the gateway."
        )


def _check_same_settings(nodes: Sequence[dict[str, Any]]) -> None:
    """Raise `ConfigError` if cells differ in settings of which a sweep has only one value."""
    first = dict(leaves(nodes[0]))
    for node in nodes[1:]:
        other = dict(leaves(node))
        differing = [key for key in first | other if first.get(key) != other.get(key)]
        if shared := [key for key in differing if key.split(".")[0] not in (*_PER_CELL, "scoring")]:
            raise ConfigError(
                f"{shared[0]} differs between cells, and a sweep has one. What can be swept: {', '.join(AXES)}; "
                "and scoring with job=sensitivity."
            )


def _name(cells: Sequence[Cell]) -> str:
    """Return a sweep's name made from its cells, so that the same command resumes it."""
    axes = (
        [cell.agent.name for cell in cells],
        [cell.model.name for cell in cells if cell.agent.uses_model],
        [cell.dataset.name for cell in cells],
        [cell.budget.name for cell in cells if cell.budget.name != "default"],
    )
    whole = "__".join("+".join(dict.fromkeys(axis)) for axis in axes if axis)
    name = re.sub(r"[^\w.+-]", "-", whole)
    if len(name) <= LONGEST_NAME:
        return name
    # A digest of the whole name, because two sweeps may differ in what is cut off.
    digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - 9]}-{digest}"


def _fitted(kind: Any, key: str, value: Any) -> Any:
    """Return a value in the form that its field needs.

    Paths become absolute, so that nothing depends on the current directory. Numbers become text where a mapping holds
    text, as for environment variables.
    """
    field = getattr(kind, "model_fields", {}).get(key)
    annotation = field.annotation if field else None
    kinds = (annotation, *get_args(annotation))
    if isinstance(value, str) and Path in kinds:
        return Path(value).expanduser().absolute()
    if isinstance(value, list) and tuple[Path, ...] in kinds:
        return tuple(Path(str(one)).expanduser().absolute() for one in value)
    if isinstance(value, dict) and dict[str, Path] in kinds:
        return {str(name): Path(str(one)).expanduser().absolute() for name, one in value.items()}
    if isinstance(value, dict) and annotation == dict[str, str]:
        return {name: str(v) if type(v) in (int, float) else v for name, v in value.items()}
    return value


def _fault(kind: Any, prefix: str, fault: ErrorDetails) -> str:
    """Return one line about a validation error."""
    *path, key = fault["loc"] or ("",)
    where = prefix + ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"{where}: unknown key. {suggest(str(key), keys_at(kind, path) or [])}"
    if fault["type"] == "missing":
        return f"{where}: missing."
    if fault["type"] == "tuple_type":
        return f"{where}: a list is needed: {where}=[{fault['input']}]"
    got = f" (got {fault['input']!r})" if fault["loc"] else ""  # without a place, the input is all of it
    return f"{where.rstrip('.')}: {fault['msg'].removeprefix('Value error, ')}{got}."


def _check_prices(cells: Sequence[Cell]) -> None:
    """Raise `ConfigError` for a paid model without a price, since a cap on USD could not be counted."""
    helpers = [helper for cell in cells if (helper := helper_of(cell.agent))]
    for model in (*(cell.model for cell in cells), *helpers):
        if model.backend == "provider" and not model.prices.known:
            raise ConfigError(
                f"sweep_budget.usd: model {model.name} has no price, so nobody could count it: set model.prices.input "
                "and model.prices.output, or cap sweep_budget.turns or tokens instead."
            )


def _check_needs(agent: Agent, model: Model) -> None:
    """Raise `ConfigError` if the model lacks a field that the agent needs."""
    for field in agent.needs:
        if getattr(model, field) is None:
            raise ConfigError(
                f"agent {agent.name} needs to know the {field} of its model, and model {model.name} does not give it: "
                f"set model.{field}=TOKENS."
            )


def _check_keys(cells: Sequence[Cell]) -> None:
    """Raise `ConfigError` unless the API key of every model that will be called is set."""
    if absent := absent_keys(cells):
        lines = [
            f"model {', '.join(names)} needs {'its API key' if SECRET.search(variable) else 'this setting'}: "
            f"export {variable}=..."
            for variable, names in absent.items()
        ]
        raise ConfigError("\n".join([*lines, "(dry_run=true shows the plan without it.)"]))
