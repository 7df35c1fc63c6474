"""`job=import`: trials that somebody else ran become a sweep that is scored, compared, tracked and shown like ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from runner.errors import ConfigError
from runner.job import Job

if TYPE_CHECKING:
    from runner.cells import Sweep


class Import(Job):
    """Reads a table by a mapping. Runs nothing, and invents nothing: what the table does not say stays missing."""

    path: Path | None = None
    """CSV, Parquet or JSON file, a row a trial."""
    mapping: Path | None = None
    """YAML file that says what its columns mean: `runner.report.imports.Mapping`."""

    def run(self, sweep: Sweep) -> int:
        """Exit code 0. Raises `ConfigError` when a file is absent, a sweep of that name was run here, or the mapping
        does not fit, and `TableError` for rows that cannot be scored.
        """
        from runner.report.imports import import_trials  # noqa: PLC0415 - brings pandas
        from runner.report.projections import write_projections  # noqa: PLC0415
        from runner.report.table import read_sweep  # noqa: PLC0415

        if not (self.path and self.mapping):
            raise ConfigError(
                "Import what? Add path=FILE mapping=FILE; conf/mapping_example.yaml shows a mapping."
            )
        settings = sweep.settings
        folder = settings.outputs / settings.name
        if (folder / "sweep.json").exists() and read_sweep(folder).imported is None:
            raise ConfigError(f"name: {settings.name} is a sweep that was run here; choose another name=.")
        plan = import_trials(self.path, read_mapping(self.mapping), folder, settings.scoring)
        print(write_projections(folder, settings.outputs))
        if absent := len(plan.planned) - (plan.imported.rows if plan.imported else 0):
            print(f"{absent} trials are planned and not in the table: not run (mapping.planned: grid).")
        print(settings.tracker.log(folder))
        return 0


def read_mapping(path: Path) -> Any:
    """The mapping in a file, every fault of it with its key and the nearest valid one. Raises `ConfigError`."""
    from runner.config import build  # noqa: PLC0415 - this module is loaded by it
    from runner.report.imports import Mapping  # noqa: PLC0415 - as above

    try:
        node = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigError(f"job.mapping: {path} cannot be read ({error.strerror}).") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"job.mapping: {path} is no YAML: {' '.join(str(error).split())}") from error
    return build(node, "mapping", Mapping)
