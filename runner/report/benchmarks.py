"""Sections that the benchmarks of a sweep add to its report.

A benchmark is known by the class of its dataset, which `config.yaml` in the sweep's folder names. A class with a method
`report_sections` adds the sections that this returns. Nothing else in this package knows of benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from runner.cli.arguments import config_folders, lineage, options, target
from runner.errors import ConfigError
from runner.report.blocks import HasSections, Section, SectionMaker, Sections, Text
from runner.report.composed_cells import composed_cells


def added_sections(sweep: Path) -> Sections:
    """Return the sections that the benchmarks of the sweep in this folder add, each once.

    A sweep that does not say its datasets, as an import, is offered those of every dataset in `conf/`. Where a class
    cannot be imported the report goes without its sections and says so.
    """
    added, complaints = [], []
    for name in dict.fromkeys(_classes_of_sweep(sweep)) or dict.fromkeys(_classes_in_conf()):
        try:
            dataset: Any = target(name, "dataset")
        except ConfigError as error:
            complaints.append(f"{error}. The sections that this dataset adds to the report are missing.")
            continue
        if isinstance(dataset, HasSections):
            added.append(dataset.report_sections())
    return Sections(
        dataset=tuple(dict.fromkeys(make for each in added for make in each.dataset)),
        sweep=(
            *dict.fromkeys(make for each in added for make in each.sweep),
            *([_missing(complaints)] if complaints else []),
        ),
        trial=tuple(dict.fromkeys(make for each in added for make in each.trial)),
    )


def _classes_of_sweep(sweep: Path) -> Iterator[str]:
    """Yield `_target_` of the dataset of each cell, as far as `config.yaml` names one."""
    for cell in composed_cells(sweep):
        match cell:
            case {"dataset": {"_target_": str(name)}}:
                yield name


def _classes_in_conf() -> Iterator[str]:
    """Yield `_target_` of each option of `dataset`."""
    folders = config_folders()
    for file in options("dataset", folders).values():
        yield from [node["_target_"] for node in lineage(file, folders) if "_target_" in node][:1]


def _missing(complaints: Sequence[str]) -> SectionMaker:
    section = Section("missing", "Missing sections", [Text(complaint) for complaint in complaints])
    return lambda _: section
