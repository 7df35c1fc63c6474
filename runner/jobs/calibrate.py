"""`job=calibrate`: make a tiers file for `scoring.tiers=` from finished trials (AgentMeter sections 3.4, 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, field_validator

from runner.errors import ConfigError
from runner.records import TierScoring
from runner.sweeps.cells import Job, Sweep
from runner.sweeps.tiers import TiersFile
from runner.sweeps.yaml_files import write_yaml
from runner.terminal.escaping import width, wrapped

if TYPE_CHECKING:
    import pandas as pd

    from runner.report.trial_sources import Source


class Calibrate(Job):
    """Labels tasks by the effort that they took, and sets each tier's budgets and threshold. Runs nothing."""

    reads_trials: ClassVar[bool] = True
    inputs: tuple[str, ...] = ()
    """Sources of trials of one dataset: sweeps by name, folders of sweeps, or files of trials."""
    path: Path = Path("tiers.yaml")
    """File to write."""
    quantiles: tuple[float, ...] = Field(default=(0.1, 0.3, 0.5, 0.7, 0.9), min_length=1)
    """Quantiles of the cost of a tier's valid trials, which become its budgets."""
    tau_quantile: float = Field(default=0.9, ge=0, le=1)
    """Quantile of the cost of a tier's failed trials, which becomes its tau."""
    measures: tuple[Literal["tokens", "turns", "interactions"], ...] = ("tokens", "turns", "interactions")
    """Measures of effort beside success; the points of those left out go to the others."""

    @field_validator("inputs", mode="before")
    @classmethod
    def _as_sequence(cls, inputs: object) -> object:
        return (inputs,) if isinstance(inputs, str) else inputs

    @field_validator("quantiles")
    @classmethod
    def _rising(cls, quantiles: tuple[float, ...]) -> tuple[float, ...]:
        if list(quantiles) != sorted(quantiles) or not 0 <= quantiles[0] <= quantiles[-1] <= 1:
            raise ValueError("quantiles rise, and lie in [0, 1]")
        return quantiles

    def run(self, sweep: Sweep) -> int:
        """Write the tiers file and return 0.

        Raises `ConfigError` for inputs that do not exist and a file that does, and `TableError` for trials that cannot
        be calibrated on.
        """
        from metrics.calibration import TIERS, calibrate, effort  # noqa: PLC0415 - brings pandas
        from metrics.table import valid  # noqa: PLC0415
        from runner.report.trial_sources import read_source  # noqa: PLC0415

        if not self.inputs:
            raise ConfigError("Which trials? Add inputs=[SWEEP,...]: names, folders, or files of trials.")
        sources = [read_source(word, sweep.settings.outputs) for word in self.inputs]
        trials = _joined(sources)
        efforts = effort(trials, self.measures)
        found = calibrate(trials, self.quantiles, self.tau_quantile, self.measures)
        tiers = TiersFile(
            dataset=str(trials["dataset"].iloc[0]),
            inputs={word: source.digest for word, source in zip(self.inputs, sources, strict=True)},
            cells=trials["cell"].nunique(),
            trials=int(valid(trials).sum()),
            unpriced=found.unpriced,
            quantiles=found.quantiles,
            tau_quantile=found.tau_quantile,
            measures=found.measures,
            tiers={name: TierScoring(budgets=found.budgets[name], tau=found.tau[name]) for name in TIERS},
            labels=dict(found.labels),
            effort={str(task): round(float(value), 3) for task, value in efforts["E"].items()},
        )
        path = self.path.expanduser().absolute()
        write_yaml(
            path, tiers, f"Tiers of {tiers.dataset}. Written by job=calibrate; taken by scoring.tiers=."
        )
        print(wrapped(_summary(tiers, path), width()))
        return 0


def _joined(sources: Sequence[Source]) -> pd.DataFrame:
    """Return the trials of all sources, each once, without bounds. Raises `TableError`."""
    import pandas as pd  # noqa: PLC0415 - as above

    from metrics.checks import check  # noqa: PLC0415
    from runner.report.competition import without_bounds  # noqa: PLC0415

    parts = [without_bounds(source.trials.add_prefix(f"{source.name}:", axis=0)) for source in sources]
    trials = pd.concat(parts)  # errors name a row by its source and its number there
    if "key" in trials:  # two sweeps may share records, or be one import twice
        trials = trials[trials["key"].isna() | ~trials["key"].duplicated()]
    return check(trials, one_dataset=True)


def _summary(tiers: TiersFile, path: Path) -> str:
    """Return the tiers for people."""
    tasks = f"{len(tiers.labels)} tasks of {tiers.dataset}"
    lines = [
        f"{tasks}: {tiers.trials} valid trials of {tiers.cells} cells, {tiers.unpriced} of unknown cost."
    ]
    for name, tier in tiers.tiers.items():
        efforts = [tiers.effort[task] for task, label in tiers.labels.items() if label == name]
        budgets = " ".join(f"{budget:g}" for budget in tier.budgets)
        lines.append(
            f"  {name:<7} {len(efforts):>3} tasks, effort {min(efforts):.1f} to {max(efforts):.1f}; "
            f"budgets {budgets} USD, tau {tier.tau:g} USD"
        )
    return "\n".join([*lines, f"Written to {path}. To score with it: scoring.tiers={path}"])
