"""`job=kappa_sample`: draw pairs of outputs that two people label without seeing the judge's verdicts (3.2.1)."""

from __future__ import annotations

from pydantic import NonNegativeInt, PositiveInt

from metrics.annotation import draw
from runner.benchmarks.cli_tool_bench.annotations import (
    ANNOTATORS,
    FOLDER,
    KEY,
    Key,
    blind,
    find_pairs,
    strata,
)
from runner.errors import ConfigError
from runner.files import write_atomically
from runner.sweeps.cells import Job, Sweep


class KappaSample(Job):
    """Writes a file for each of two annotators, and the key apart from them."""

    pairs: PositiveInt = 1000
    """Pairs to draw, as many as the paper's; all, if there are fewer."""
    seed: NonNegativeInt = 0
    """Seed of the random numbers."""

    def run(self, sweep: Sweep) -> int:
        """Draw the sample and return 0.

        Raises `ConfigError` if there is no such sweep, no judged pair in it, or already a sample, which would be lost
        with the annotators' labels in it.
        """
        settings = sweep.settings
        into = settings.folder / FOLDER
        found = find_pairs(settings.folder, settings.outputs)
        if there := [name for name in (*ANNOTATORS, KEY) if (into / name).exists()]:
            raise ConfigError(f"{into} has {', '.join(there)} already. Move the folder away to draw anew.")
        groups = strata(found.pairs)
        drawn = tuple(found.pairs[digest] for digest in draw(groups, self.pairs, self.seed))
        key = Key(
            seed=self.seed,
            population=len(found.pairs),
            strata={name: len(digests) for name, digests in sorted(groups.items())},
            pairs=drawn,
        )
        text = blind(drawn).encode()
        for name, content in {
            KEY: key.model_dump_json(indent=1).encode(),
            **dict.fromkeys(ANNOTATORS, text),
        }.items():
            write_atomically(into / name, content)
        if found.torn:
            print(f"Pairs left out, as judges of this sweep gave unlike verdicts on them: {found.torn}.")
        print(
            f"{len(drawn)} of {len(found.pairs)} pairs, in proportion from {len(groups)} strata (tier, language, "
            f"verdict), seed {self.seed}.\n"
            f"For the annotators, who write equivalent or different into the column label: "
            f"{', '.join(str(into / name) for name in ANNOTATORS)}\n"
            f"Not for them: {into / KEY}\n"
            f"Then: job=kappa_agreement name={settings.name}"
        )
        return 0
