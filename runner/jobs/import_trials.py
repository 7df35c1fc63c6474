"""`job=import`: make a sweep of trials that were run elsewhere, to score, compare and track them like our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from runner.errors import ConfigError
from runner.sweeps import sweep_file
from runner.sweeps.cells import Job, Sweep


class Import(Job):
    """Imports a table by a mapping. Runs nothing; values that the table lacks stay missing."""

    path: Path | None = None
    """CSV, Parquet or JSON file with a row per trial."""
    mapping: Path | None = None
    """YAML file with the meaning of the columns (`runner.report.foreign_trials.Mapping`)."""
    replace: bool = False
    """True to replace an import of another file that has this name."""

    def run(self, sweep: Sweep) -> int:
        """Import the table and return 0.

        Raises `ConfigError` if a file is absent, a sweep of that name was run here, or the mapping does not fit, and
        `TableError` for rows that cannot be scored.
        """
        from runner.report.foreign_trials import file_digest, import_trials  # noqa: PLC0415 - brings pandas
        from runner.report.projections import write_projections  # noqa: PLC0415

        if not (self.path and self.mapping):
            raise ConfigError(
                "Import what? Add path=FILE mapping=FILE; conf/mapping_example.yaml shows a mapping."
            )
        if not sweep.named:
            raise ConfigError("name: an import has none of its own. Add name=NAME.")
        settings = sweep.settings
        folder, scoring = settings.folder, settings.scoring
        if sweep_file.exists(folder):
            before = sweep_file.read(folder)
            if before.imported is None:
                raise ConfigError(
                    f"name: {settings.name} is a sweep that was run here; choose another name=."
                )
            if before.imported.digest != file_digest(self.path) and not self.replace:
                raise ConfigError(
                    f"name: {settings.name} was imported from {before.imported.file}, with other content; choose "
                    "another name=, or add replace=true."
                )
            scoring = next(iter(sweep.rescorings(before.scoring)), before.scoring)
        _, absent = import_trials(self.path, read_mapping(self.mapping), folder, scoring)
        print(write_projections(folder, settings.outputs))
        if absent:
            print(f"{absent} trials are planned and not in the table: not run (mapping.planned: grid).")
        print(settings.tracker.log(folder))
        return 0


def read_mapping(path: Path) -> Any:
    """Return the mapping in a file. Raises `ConfigError` with each fault, its key and the nearest valid key."""
    from runner.cli.config import build  # noqa: PLC0415 - this module is loaded by it
    from runner.report.foreign_trials import Mapping  # noqa: PLC0415 - as above

    try:
        node = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigError(f"job.mapping: {path} cannot be read ({error.strerror}).") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"job.mapping: {path} is not YAML: {' '.join(str(error).split())}") from error
    for name, words in _nodes(_nodes(node).get("words")).items():
        if odd := [word for word in _nodes(words) if not isinstance(word, str)]:
            raise ConfigError(
                f"mapping.words.{name}: YAML reads {odd[0]!r} where a word of the table is meant; put it in quotes."
            )
    return build(node, "mapping", Mapping)


def _nodes(node: object) -> dict[Any, Any]:
    """Return a mapping, empty in place of anything else, which `build` then refuses."""
    return node if isinstance(node, dict) else {}
