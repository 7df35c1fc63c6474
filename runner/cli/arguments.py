"""The door: what was typed is checked against `conf/` and the classes it names before Hydra is even imported.

Hydra answers a misspelt key with the advice to add it with `+`, and then runs with it; here it is refused, with the
nearest key that exists. Needs nothing but the command line and the YAML files; a class is imported only to learn the
keys of a dotted override.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import yaml

from runner.cli.moved import MOVED
from runner.errors import ConfigError
from runner.resources import CONF, own_conf

AXES = ("agent", "model", "dataset", "budget")
"""Groups that a cell has one of; everything else is the sweep's."""
DATA = {
    "model": "runner.records.Model",
    "budget": "runner.records.Budget",
    "scoring": "runner.records.Scoring",
    "pricing": "runner.sweeps.pricing.Pricing",
}
"""Groups that are data, and so need no `_target_`, with their record."""
NODES = {"gateway": "runner.records.CallLimits", "sweep_budget": "runner.records.SpendLimits"}
"""Keys of `config.yaml` itself that hold more keys, with their record."""

_FLAGS = {
    "-m": False,
    "--multirun": False,
    "-c": True,
    "--cfg": True,
    "--resolve": False,
    "-p": True,
    "--package": True,
    "-cd": True,
    "--config-dir": True,
    "--hydra-help": False,
}
"""Flags that Hydra gets, with whether the next word belongs to them."""
QUESTIONS = ("-c", "--cfg", "--hydra-help")
"""Flags that Hydra answers itself, composing nothing."""
_OVERRIDE = re.compile(r"(?P<sign>\+\+|\+|~)?(?P<key>[^=]+?)(?P<given>=(?P<value>.*))?", re.DOTALL)
_WORD = re.compile(r"[\w.-]+")
_LEXED = re.compile(r"[\w/+.%*@?|: -]*", re.ASCII)
"""Characters of a bare value that Hydra's grammar knows."""
_MARKS, _BRACKETS = frozenset("'\",\\$"), frozenset("()[]{}")
"""By which that grammar makes something of a value; brackets are no more than letters in a path."""


def check(argv: Sequence[str]) -> list[str]:
    """The command line for Hydra. Raises `ConfigError` for an option or key that does not exist.

    A dotted key comes back as `++key=value`: the class it belongs to says whether it exists, not whether its YAML
    happens to spell it out, so `agent.env.DEBUG=1` needs no `+`. A key of the job that was typed needs no `job.`.
    """
    flags, overrides = _split(argv)
    folders = config_folders(argv)
    chosen = {key: words for _, key, value in overrides if (words := _words(value))}
    several = any(flag in ("-m", "--multirun") for flag, _ in flags)
    out = [word for flag, value in flags for word in (flag, value) if word]
    of_job = _keys_of_job(folders, chosen.get("job", []))
    for sign, typed, value in overrides:
        if typed == "experiment" and value == "null":
            continue  # Hydra 1.3 fails on it; leaving it out is what is meant
        key = f"job.{typed}" if typed in of_job else typed
        written = key if value is None else f"{key}={_for_hydra(value)}"
        group = key.partition("@")[0]  # model@dataset.verifier.judge.model=NAME: an option at another place
        if group in groups(folders):
            _check_options(folders, group, [""] if value == "" else chosen.get(key, []), several=several)
            out.append((sign if "@" in key else sign.replace("+", "")) + written)
        elif re.match(r"hydra\b", key):
            out.append(sign + written)
        else:
            _check_key(folders, key, chosen)
            out.append((sign or ("++" if "." in key else "")) + written)
    return out


def config_folders(words: Sequence[str] = ()) -> list[Path]:
    """Return the folders of options in Hydra's order, in which the first file of a name counts: the user's own `conf/`,
    the shipped one, and those that `--config-dir` adds.

    Raises `ConfigError` if a folder is not there, and for a `config.yaml` in the user's own.
    """
    own = own_conf()
    if own and (own / "config.yaml").exists():
        raise ConfigError(
            f"{own}/config.yaml cannot stay: options are looked for in this conf/ first, and Assay has a config.yaml "
            "already. Write your values into conf/experiment/NAME.yaml, or run the command in another folder."
        )
    flags, _ = _split(words)
    added = [Path(value) for flag, value in flags if flag in ("-cd", "--config-dir")]
    if absent := [folder for folder in added if not folder.is_dir()]:
        raise ConfigError(f"no such configuration folder: {absent[0]}")
    return [*([own] if own else []), CONF, *added]


def _keys_of_job(folders: Sequence[Path], chosen: Sequence[str]) -> set[str]:
    """Keys of the job that was typed which may go without `job.`, as nothing else has their name."""
    files = options("job", folders)
    kinds = [target_of(files[name], "job", folders) for name in chosen if name in files]
    keys = {key for kind in kinds for key in keys_at(kind, ()) or ()}
    return keys - {*groups(folders), *scalars()}


def groups(folders: Sequence[Path] = ()) -> list[str]:
    """Return the names of the config groups in these folders, by default in `config_folders()`."""
    found = (group for folder in folders or config_folders() for group in folder.iterdir())
    return sorted({group.name for group in found if group.is_dir() and group.name != "hydra"})


def options(group: str, folders: Sequence[Path] = ()) -> dict[str, Path]:
    """Return the file of each option of a group, by default in `config_folders()`.

    A name with a leading underscore is a base for others, not an option.
    """
    searched = reversed(folders or config_folders())
    found = {file.stem: file for folder in searched for file in (folder / group).glob("[!_]*.yaml")}
    return dict(sorted(found.items()))


def option_nodes(folders: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """The content of every option of every group."""
    for folder in folders:
        yield from map(_read, sorted(folder.glob("*/*.yaml")))


@cache
def scalars() -> tuple[str, ...]:
    """Keys of `config.yaml` itself."""
    return tuple(key for key in _read(CONF / "config.yaml") if key != "defaults")


@cache
def _defaults() -> dict[str, str]:
    """Group -> the option that is composed where nobody chooses another."""
    listed = _read(CONF / "config.yaml")["defaults"]
    return {group: option for item in listed if isinstance(item, dict) for group, option in item.items()}


def suggest(word: str, valid: Iterable[str]) -> str:
    """The nearest of `valid` if one is near, and all of them."""
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - only a mistake needs it

    valid = sorted(valid)
    near = process.extractOne(word, valid, scorer=fuzz.ratio, score_cutoff=60)
    hint = f"Did you mean '{near[0]}'? " if near else ""
    return f"{hint}Valid: {', '.join(valid) or '(none)'}"


def target(name: str, where: str) -> type[Any]:
    """Return the class that `_target_: name` at key `where` names, by an earlier name of its module too.

    Raises `ConfigError` if it cannot be imported.
    """
    module, _, attribute = name.rpartition(".")
    try:
        found: type[Any] = getattr(importlib.import_module(MOVED.get(module, module)), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{where}._target_: cannot import '{name}': {error}") from error
    return found


def keys_at(kind: Any, path: Sequence[str | int]) -> list[str] | None:
    """Keys that may stand at `path` beneath a configured class; None where any may (a free mapping)."""
    for name in path:
        if _is_record(kind):
            field = kind.model_fields.get(name)
            kind = field.annotation if field else None
        else:
            kind = (get_args(kind) or (None,))[-1]
        if get_origin(kind) in (Union, UnionType):
            kind = next((part for part in get_args(kind) if _is_record(part)), kind)
    return sorted(kind.model_fields) if _is_record(kind) else None


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "model_fields")


def _split(argv: Sequence[str]) -> tuple[list[tuple[str, str]], list[tuple[str, str, str | None]]]:
    """Flags with their values, and overrides as (sign, key, value)."""
    flags, overrides = [], []
    words = iter(argv)
    for word in words:
        if word.startswith("-"):
            flag, _, value = word.partition("=")
            if flag not in _FLAGS:
                raise ConfigError(f"unknown flag '{word}'. {_instead(flag)}")
            value = value or (next(words, "") if _FLAGS[flag] else "")
            if _FLAGS[flag] and not value:
                raise ConfigError(f"{flag} needs a value. See python -m runner --help.")
            flags.append((flag, value))
            continue
        parts = _OVERRIDE.fullmatch(word)
        if not parts or not (parts["given"] or parts["sign"] == "~"):
            raise ConfigError(f"'{word}' is not KEY=VALUE. {_instead(word)}")
        overrides.append((parts["sign"] or "", parts["key"], parts["value"]))
    return flags, overrides


def _instead(word: str) -> str:
    """What to type for a bare word or an unknown flag."""
    name = word.lstrip("-").replace("-", "_")
    as_option = next((f"{group}={name}" for group in groups() if name in options(group)), None)
    if as_option or name in [*groups(), *scalars()]:
        return f"Did you mean {as_option or f'{name}=...'}?"
    return "See python -m runner --help."


def _words(value: str | None) -> list[str]:
    """Options that a value names; none where Hydra has to work them out (`glob(*)`, `[a,b]`)."""
    words = [word.strip().strip("'\"") for word in (value or "").split(",")]
    return words if all(_WORD.fullmatch(word) for word in words) else []


def _for_hydra(value: str) -> str:
    """Hydra's grammar has neither the `~` of `dataset.root=~/tasks`, which no shell expands, nor what pinned versions
    (`NAME==VERSION`), folders (`größe`, `a&b`, `/tasks (copy)`) and recorded cells (`codex·gpt`) are written with: such
    a value is quoted.
    """
    if value.startswith("~/"):
        value = str(Path.home()) + value[1:]
    structure = _MARKS if value.startswith(("/", "./", "../")) else _MARKS | _BRACKETS
    return value if _LEXED.fullmatch(value) or structure & set(value) else f"'{value}'"


def _check_options(folders: Sequence[Path], group: str, words: Sequence[str], *, several: bool) -> None:
    valid = options(group, folders)
    for word in words:
        if word not in valid:
            raise ConfigError(f"unknown {group} '{word}'. {suggest(word, valid)}")
        _read(valid[word])
    if len(words) > 1 and not several:
        raise ConfigError(
            f"{group}={','.join(words)} names {len(words)} options: add -m to run each of them."
        )


def _check_key(folders: Sequence[Path], key: str, chosen: dict[str, list[str]]) -> None:
    """Raises unless `key` exists in an option that may be composed: those typed, else any of its group."""
    first, *rest = key.split(".")
    if first not in [*groups(folders), *scalars()] or (rest and first in scalars() and first not in NODES):
        known = [*groups(folders), *scalars(), *_keys_of_job(folders, chosen.get("job", []))]
        raise ConfigError(f"unknown key '{key}'. {suggest(first, known)}")
    candidates = options(first, folders)
    files = [candidates[word] for word in chosen.get(first, []) if word in candidates] or [
        *sorted(candidates.values(), key=lambda file: file.stem != _defaults().get(first))
    ]
    # One by one: imports take time.
    kinds = (kind for file in files if (kind := target_of(file, first, folders)))
    wrong = None
    for kind in [target(NODES[first], first)] if first in NODES else kinds:
        if (fault := _first_wrong(kind, rest)) is None:
            return
        wrong = wrong or fault
    if wrong:
        at, valid = wrong
        where = ".".join([first, *rest[:at]])
        raise ConfigError(f"unknown key '{key}': {where} has no '{rest[at]}'. {suggest(rest[at], valid)}")


def _first_wrong(kind: type[Any], path: Sequence[str]) -> tuple[int, list[str]] | None:
    """Position of the first unknown name in `path`, and what could stand there."""
    for at, name in enumerate(path):
        valid = keys_at(kind, path[:at])
        if valid is not None and name not in valid:
            return at, valid
    return None


def target_of(file: Path, group: str, folders: Sequence[Path]) -> type[Any] | None:
    """Return the class of an option, its own or the one that it inherits within its group; None for a preset."""
    for node in lineage(file, folders):
        if name := node.get("_target_", DATA.get(group)):
            return target(name, group)
    return None


def lineage(file: Path, folders: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Yield an option's content, then that of the options of its group that it builds on, wherever these lie."""
    node = _read(file)
    yield node
    for base in node.get("defaults", []):
        places = (folder / file.parent.name / f"{base}.yaml" for folder in folders)
        if isinstance(base, str) and (inherited := next(filter(Path.is_file, places), None)):
            yield from lineage(inherited, folders)


def _read(file: Path) -> dict[str, Any]:
    try:
        node = yaml.safe_load(file.read_text()) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is no YAML: {error}") from error
    if not isinstance(node, dict):
        raise ConfigError(f"{file} must hold keys and values.")
    return node
