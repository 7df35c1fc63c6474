"""Check what was typed against the options in `conf/` and the classes they name, before Hydra is imported.

Hydra advises to add a misspelt key with `+`, and then runs with it. Here such a key is refused, with the nearest one
that exists. This needs the command line and the YAML files; a class is imported only to learn its keys.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from runner.cli.former_names import present_name
from runner.errors import ConfigError
from runner.resources import CONF, own_conf
from runner.terminal.suggestions import suggest

DATA = {
    "model": "runner.records.Model",
    "budget": "runner.records.Budget",
    "scoring": "runner.records.Scoring",
    "pricing": "runner.sweeps.pricing.Pricing",
}
"""Group whose options are data, without `_target_` -> the record of an option."""
NODES = {
    "gateway": "runner.records.CallLimits",
    "store": "runner.sweeps.store_address.StoreSettings",
    "sweep_budget": "runner.records.SpendLimits",
}
"""Key of `config.yaml` that holds more keys -> the record of those."""
_REFUSED = {
    (
        "sandbox",
        "podman",
    ): "Podman is refused: on it, a fresh folder of a container held files of its image, so that a "
    "planted reward would count (docs/adr/0030-podman-stays-refused.md). Use Docker Engine 20.10 or later.",
}
"""Option that users look for, by its group -> why there is none."""
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
"""Flag of Hydra -> whether it takes a value."""
_QUESTIONS = ("-c", "--cfg", "--hydra-help")
"""Flags that Hydra answers itself."""
_OVERRIDE = re.compile(r"(?P<sign>\+\+|\+|~)?(?P<key>[^=]+?)(?P<given>=(?P<value>.*))?", re.DOTALL)
_WORD = re.compile(r"[\w.-]+")
_PLAIN = re.compile(r"[\w/+.%*@?|: -]*", re.ASCII)
"""Value that Hydra's grammar takes without quotes."""
_MARKS, _BRACKETS = frozenset("'\",\\$"), frozenset("()[]{}")
"""Characters with a meaning in Hydra's grammar. Brackets have none in a path."""

Flags = Sequence[tuple[str, str]]
"""Flags, each with its value or an empty string."""


def check(argv: Sequence[str]) -> list[str]:
    """Return the command line for Hydra. Raises `ConfigError` for an option or key that does not exist.

    A dotted key becomes `++key=value`, so that `agent.env.DEBUG=1` needs no `+`: whether a key exists is decided by its
    class and not by what the YAML file spells out. A key of the typed job needs no `job.`.
    """
    flags, typed_overrides = split(argv)
    overrides = [_override(word) for word in typed_overrides]
    folders = config_folders(argv)
    chosen = {key: words for _, key, value in overrides if (words := _words(value))}
    several = is_multirun(flags)
    out = [word for flag, value in flags for word in (flag, value) if word]
    job_keys = _keys_of_job(folders, chosen.get("job", []))
    for sign, typed, value in overrides:
        if typed == "experiment" and value == "null":
            continue  # Hydra 1.3 fails on it, and leaving it out means the same
        key = f"job.{typed}" if typed in job_keys else typed
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
    """Return the folders of options: the user's own `conf/`, the shipped one, and those that `--config-dir` adds.

    They are in Hydra's order, in which the first file of a name counts. Raises `ConfigError` if a folder does not
    exist, and for a `config.yaml` in the user's own.
    """
    own = own_conf()
    if own and (own / "config.yaml").exists():
        raise ConfigError(
            f"{own}/config.yaml cannot stay: options are looked for in this conf/ first, and Assay has a config.yaml "
            "already. Write your values into conf/experiment/NAME.yaml, or run the command in another folder."
        )
    flags, _ = split(words)
    return [*([own] if own else []), CONF, *added_folders(flags)]


def added_folders(flags: Flags) -> list[Path]:
    """Return the folders that `--config-dir` adds. Raises `ConfigError` if one is not there."""
    added = [Path(value) for flag, value in flags if flag in ("-cd", "--config-dir")]
    if absent := [folder for folder in added if not folder.is_dir()]:
        raise ConfigError(f"no such configuration folder: {absent[0]}")
    return added


def is_multirun(flags: Flags) -> bool:
    """Return whether `-m` was typed."""
    return any(flag in ("-m", "--multirun") for flag, _ in flags)


def is_question(flags: Flags) -> bool:
    """Return whether Hydra is only to answer a question."""
    return any(flag in _QUESTIONS for flag, _ in flags)


def split(words: Sequence[str]) -> tuple[Flags, list[str]]:
    """Return the flags and the other words of a command line. Raises `ConfigError` for an unknown flag."""
    flags, others = [], []
    remaining = iter(words)
    for word in remaining:
        if not word.startswith("-"):
            others.append(word)
            continue
        flag, _, value = word.partition("=")
        if flag not in _FLAGS:
            raise ConfigError(f"unknown flag '{word}'. {_instead(flag)}")
        value = value or (next(remaining, "") if _FLAGS[flag] else "")
        if _FLAGS[flag] and not value:
            raise ConfigError(f"{flag} needs a value. See python -m runner --help.")
        flags.append((flag, value))
    return flags, others


def _keys_of_job(folders: Sequence[Path], chosen: Sequence[str]) -> set[str]:
    """Return the keys of the typed job that need no `job.`, because nothing else has their name."""
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
    """Yield the content of every option of every group."""
    for folder in folders:
        yield from map(_read, sorted(folder.glob("*/*.yaml")))


@cache
def scalars() -> tuple[str, ...]:
    """Return the keys of `config.yaml` itself."""
    return tuple(key for key in _read(CONF / "config.yaml") if key != "defaults")


@cache
def _defaults() -> dict[str, str]:
    """Return the default option of each group."""
    listed = _read(CONF / "config.yaml")["defaults"]
    return {group: option for item in listed if isinstance(item, dict) for group, option in item.items()}


def target(name: str, where: str) -> type[Any]:
    """Return the class that `_target_: name` at key `where` names, by an earlier name too.

    Raises `ConfigError` if it cannot be imported.
    """
    try:
        module, _, attribute = present_name(name).rpartition(".")
        found: type[Any] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{where}._target_: cannot import '{name}': {error}") from error
    return found


def keys_at(kind: Any, path: Sequence[str | int]) -> list[str] | None:
    """Return the keys that are valid at `path` beneath a configured class; None where any key is."""
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


def _override(word: str) -> tuple[str, str, str | None]:
    """Return the sign, the key and the value of an override. Raises `ConfigError` for a word that is not one."""
    parts = _OVERRIDE.fullmatch(word)
    if not parts or not (parts["given"] or parts["sign"] == "~"):
        raise ConfigError(f"'{word}' is not KEY=VALUE. {_instead(word)}")
    return parts["sign"] or "", parts["key"], parts["value"]


def _instead(word: str) -> str:
    """Return a hint on what to type instead of a bare word or an unknown flag."""
    name = word.lstrip("-").replace("-", "_")
    as_option = next((f"{group}={name}" for group in groups() if name in options(group)), None)
    if as_option or name in [*groups(), *scalars()]:
        return f"Did you mean {as_option or f'{name}=...'}?"
    return "See python -m runner --help."


def _words(value: str | None) -> list[str]:
    """Return the options that a value names; none if Hydra has to find them (`glob(*)`, `[a,b]`)."""
    words = [word.strip().strip("'\"") for word in (value or "").split(",")]
    return words if all(_WORD.fullmatch(word) for word in words) else []


def _for_hydra(value: str) -> str:
    """Return a value as Hydra's grammar takes it: with `~/` expanded, and in quotes where it needs them.

    No shell expands the `~` of `dataset.root=~/tasks`. Quotes are needed by pinned versions (`NAME==VERSION`), by some
    folders (`größe`, `a&b`, `/tasks (copy)`) and by recorded cells (`codex·gpt`).
    """
    if value.startswith("~/"):
        value = str(Path.home()) + value[1:]
    structure = _MARKS if value.startswith(("/", "./", "../")) else _MARKS | _BRACKETS
    return value if _PLAIN.fullmatch(value) or structure & set(value) else f"'{value}'"


def _check_options(folders: Sequence[Path], group: str, words: Sequence[str], *, several: bool) -> None:
    """Raise `ConfigError` for an option that does not exist, and for several options without `-m`."""
    valid = options(group, folders)
    for word in words:
        if word not in valid:
            reason = _REFUSED.get((group, word)) or suggest(word, valid)
            raise ConfigError(f"unknown {group} '{word}'. {reason}")
        _read(valid[word])
    if len(words) > 1 and not several:
        raise ConfigError(
            f"{group}={','.join(words)} names {len(words)} options: add -m to run each of them."
        )


def _check_key(folders: Sequence[Path], key: str, chosen: dict[str, list[str]]) -> None:
    """Raise `ConfigError` unless `key` exists in a typed option of its group, or in any if none was typed."""
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
    """Return the position of the first unknown name in `path`, and the names that are valid there."""
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
    """Yield an option's content, then that of the options of its group on which it builds, in whatever folder."""
    node = _read(file)
    yield node
    for base in node.get("defaults", []):
        places = (folder / file.parent.name / f"{base}.yaml" for folder in folders)
        if isinstance(base, str) and (inherited := next(filter(Path.is_file, places), None)):
            yield from lineage(inherited, folders)


def _read(file: Path) -> dict[str, Any]:
    import yaml  # noqa: PLC0415 - a third of the time of --help, which reads no YAML

    try:
        node = yaml.safe_load(file.read_text()) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not YAML: {error}") from error
    if not isinstance(node, dict):
        raise ConfigError(f"{file} must hold keys and values.")
    return node
