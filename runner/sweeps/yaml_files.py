"""Read and write YAML files that one job writes and others take as given, such as tiers and core sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from runner.errors import ConfigError
from runner.files import write_atomically
from runner.records import Record
from runner.records.base import first_fault

Kind = TypeVar("Kind", bound=Record)


def read_yaml(path: Path, kind: type[Kind], where: str) -> Kind:
    """Return the record in a file that the key `where` names. Raises `ConfigError` if it cannot be read as one."""
    try:
        return kind.model_validate(yaml.safe_load(path.read_text()))
    except OSError as error:
        raise ConfigError(f"{where}: {path} cannot be read ({error.strerror}).") from error
    except ValidationError as error:
        fault = first_fault(error, "the whole")
        raise ConfigError(f"{where}: {path} is not a {kind.__name__} ({fault}).") from error
    # ValueError: a date that does not exist. RecursionError: endless nesting.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: {path} is not YAML: {' '.join(str(error).split())}") from error


def write_yaml(path: Path, record: Record, title: str) -> None:
    """Write a record below a comment line.

    Raises `ConfigError` if the file exists with other content, because scores may refer to it.
    """
    node = yaml.safe_dump(record.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=110)
    text = f"# {title}\n{node}"
    if path.exists() and path.read_text() != text:
        raise ConfigError(
            f"job.path: {path} is there already, and scores may rest on it; choose another path=."
        )
    write_atomically(path, text.encode())


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value of nested mappings by its dotted key; tuples as lists, as files have them."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, f"{path}.{key}" if path else str(key))
    else:
        yield path, list(node) if isinstance(node, tuple) else node
