"""`job=core_set`: choose few tasks that rank cells as all tasks do, for a fraction of the cost. Runs nothing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from runner.errors import ConfigError
from runner.sweeps.cells import Job, Sweep
from runner.sweeps.core_sets import AgreementFigures, CoreSetFile
from runner.sweeps.yaml_files import write_yaml
from runner.terminal.escaping import width, wrapped

if TYPE_CHECKING:
    from metrics.core_set import CoreSet as Chosen
    from runner.report.trial_sources import Source


class CoreSet(Job):
    """Chooses `k` tasks per tier with some of the cells, and measures how well they rank the others."""

    reads_trials: ClassVar[bool] = True
    input: str | None = None
    """Source of trials, every cell on all tasks: sweep by name, folder of a sweep, or file of trials."""
    k: int = Field(default=10, ge=1)
    """Number of tasks to choose of each tier with weight."""
    held_out: float = Field(default=1 / 3, gt=0, lt=1)
    """Share of the cells that is not used for the choice."""
    seed: int = Field(default=0, ge=0)
    """Seed that decides which cells are held out."""
    path: Path = Path("core_set.yaml")
    """File to write."""

    def run(self, sweep: Sweep) -> int:
        """Write the core set and return 0.

        Raises `ConfigError` if the input does not exist or the file does, and `TableError` if there are too few cells
        or tasks, or cells differ in their tasks.
        """
        from metrics.core_set import choose  # noqa: PLC0415 - brings pandas
        from runner.report.competition import contenders, left_out  # noqa: PLC0415
        from runner.report.trial_sources import labelled, read_source  # noqa: PLC0415

        if not self.input:
            raise ConfigError("Chosen from what? Add input=SWEEP: a name, a folder, or a file of trials.")
        source = read_source(self.input, sweep.settings.outputs)
        own = source.scoring or sweep.settings.scoring
        scoring = sweep.rescorings(own)[0] if sweep.scorings else own
        trials = labelled(contenders(source.trials), scoring)
        chosen = choose(trials, scoring, self.k, self.held_out, self.seed)
        core = _file(chosen, source, str(trials["dataset"].iloc[0]), scoring.name, self.seed)
        path = self.path.expanduser().absolute()
        write_yaml(
            path, core, f"Core set of {core.dataset}. Written by job=core_set; taken by dataset.core_set=."
        )
        for text in (_summary(core, chosen, trials["task"].nunique(), path), *left_out(source.trials)):
            print(wrapped(text, width()))
        return 0


def _file(chosen: Chosen, source: Source, dataset: str, scoring: str, seed: int) -> CoreSetFile:
    """Return the content of the file: the choice, and what it was made from."""
    from runner.report.rescoring import figures  # noqa: PLC0415 - brings pandas

    return CoreSetFile(
        dataset=dataset,
        source=source.name,
        digest=source.digest,
        scoring=scoring,
        seed=seed,
        tasks=dict(chosen.tasks),
        chosen_with=chosen.chosen_with,
        held_out=chosen.held_out,
        fitted=AgreementFigures(**figures(chosen.fitted)),
        agreement=AgreementFigures(**figures(chosen.agreement)),
        random_spearman=None if math.isnan(chosen.random_spearman) else chosen.random_spearman,
        cost_usd=round(chosen.cost_usd, 6),
        full_cost_usd=round(chosen.full_cost_usd, 6),
        unpriced=chosen.unpriced,
    )


def _summary(core: CoreSetFile, chosen: Chosen, tasks: int, path: Path) -> str:
    """Return the choice for people: its tasks, how well they rank, and what they save."""
    saved = "an unknown share" if math.isnan(chosen.saving) else f"{chosen.saving:.0%}"
    shortfall = chosen.greedy_shortfall
    search = "greedy" if shortfall is None else f"every set was tried; greedy alone: {shortfall:.3f} less"
    random = "-" if core.random_spearman is None else f"{core.random_spearman:.3f}"
    share = f"{len(core.names)} of {tasks} tasks of {core.dataset}"
    return "\n".join(
        [
            f"{share}, chosen with {len(core.chosen_with)} cells ({search}):",
            *(f"  {tier:<7} {', '.join(names)}" for tier, names in core.tasks.items()),
            f"On {len(core.held_out)} held-out cells: {_words(core.agreement)}",
            f"Random sets of the same size, on the same held-out cells: Spearman {random}",
            f"On the cells it was chosen with, which flatters it: {_words(core.fitted)}",
            f"Cost {core.cost_usd:.2f} USD of {core.full_cost_usd:.2f}: {saved} saved; {core.unpriced} unpriced.",
            f"Written to {path}. To run it: dataset.core_set={path}",
        ]
    )


def _words(found: AgreementFigures) -> str:
    figures = {"Spearman": found.spearman, "Kendall": found.kendall, "MAE": found.mae}
    words = [f"{name} {'-' if value is None else f'{value:.3f}'}" for name, value in figures.items()]
    tops = {"top 1": found.top1, "top 3": found.topk}
    words += [
        f"{name} {'-' if same is None else 'same' if same else 'differs'}" for name, same in tops.items()
    ]
    return ", ".join(words) + (f" ({found.why})" if found.why else "")
