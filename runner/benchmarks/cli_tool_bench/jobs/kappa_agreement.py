"""`job=kappa_agreement`: measure how two annotators agree, and how their consensus agrees with the judge (3.2.1)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from metrics.annotation import Agreed, Consensus, agreement, consensus
from runner.benchmarks.cli_tool_bench.annotations import (
    ANNOTATORS,
    CONSENSUS,
    DISAGREEMENTS,
    FOLDER,
    WORDS,
    Key,
    blind,
    read_annotations,
    read_key,
)
from runner.errors import ConfigError, LabelError
from runner.files import write_atomically
from runner.report.csv_cells import to_csv
from runner.sweeps.cells import Job, Sweep

NAME = "kappa_agreement"


class KappaAgreement(Job):
    """Reads both annotators' labels of the sample that `job=kappa_sample` drew."""

    annotations: tuple[Path, ...] = ()
    """CSV files of the two annotators; empty for those of the sample."""
    confidence: float = Field(default=0.95, gt=0, lt=1)
    """Confidence of the intervals."""

    def run(self, sweep: Sweep) -> int:
        """Print both agreements, write the consensus and the disagreements, and return 0.

        Raises `ConfigError` without a sample, and `LabelError` for labels that cannot be used.
        """
        folder = sweep.settings.folder
        key, into = read_key(folder), folder / FOLDER
        known = {one.pair for one in key.pairs}
        first, second = (_annotator(path, known) for path in self._files(into))
        settled = _settled(into, known)
        found = consensus(first, second, settled)
        verdicts = {one.pair: one.equivalent for one in key.pairs}
        people, judge = (
            agreement(first, second, self.confidence),
            agreement(found.labels, verdicts, self.confidence),
        )
        print(self._summary(key, found, people, judge))
        differing = {pair for pair in first.keys() & second.keys() if first[pair] is not second[pair]}
        _write(into, key, found, differing)
        details = _details(found, verdicts, people, judge) | {
            "confidence": self.confidence,
            "sample": len(key.pairs),
        }
        write_atomically(into / f"{NAME}.json", json.dumps(details, indent=1).encode())
        print(f"Consensus, disagreements and details: {into}")
        return 0

    def _files(self, into: Path) -> tuple[Path, ...]:
        """Return the files of the two annotators. Raises `ConfigError` unless they are two."""
        files = self.annotations or tuple(into / name for name in ANNOTATORS)
        if len({path.resolve() for path in files}) != len(ANNOTATORS):
            raise ConfigError("job.annotations: name two files, one of each annotator.")
        return files

    def _summary(self, key: Key, found: Consensus, people: Agreed, judge: Agreed) -> str:
        """Return both agreements in words, and how many pairs they rest on."""
        both = people.kappa.n
        settled = len(found.labels) - people.same
        unlabelled = len(key.pairs) - both
        consensus_size = (
            f"The consensus has the {people.same} pairs on which both agree and {settled} that were settled; "
            f"{len(found.unsettled)} are open and left out."
        )
        lines = [
            f"{both} of {len(key.pairs)} pairs have labels of both annotators"
            + (f"; {unlabelled} count nowhere." if unlabelled else "."),
            f"annotators:          {_words(people, self.confidence)}",
            f"consensus and judge: {_words(judge, self.confidence)}",
            consensus_size,
        ]
        if found.unsettled:
            lines.append(f"To settle them: label them together in {DISAGREEMENTS}, and run this job again.")
        return "\n".join(lines)


def _annotator(path: Path, known: Collection[str]) -> dict[str, bool]:
    """Return an annotator's labels. Raises `LabelError`, also if there is none yet."""
    if labels := read_annotations(path, "job.annotations", known):
        return labels
    raise LabelError(f"{path.name} has no label: write equivalent or different into its column label.")


def _settled(into: Path, known: Collection[str]) -> dict[str, bool]:
    """Return the labels that settle disagreements; none if there was no disagreement before. Raises `LabelError`."""
    path = into / DISAGREEMENTS
    is_filled = path.is_file() and path.read_bytes().count(b"\n") > 1
    return read_annotations(path, DISAGREEMENTS, known) if is_filled else {}


def _words(found: Agreed, confidence: float) -> str:
    """Return an agreement with its intervals, or why there is none."""
    if not found.kappa.n:
        return "there is no pair that both labelled"
    share = f"{found.share:.1%} [{found.low:.1%}, {found.high:.1%}] of {found.kappa.n} alike"
    if isnan(found.kappa.kappa):
        return f"{share}; κ is undefined, as both gave one and the same label throughout"
    low, high = found.kappa.low, found.kappa.high
    return f"{share}, κ = {found.kappa.kappa:.3f} [{low:.3f}, {high:.3f}] ({confidence:.0%})"


def _write(into: Path, key: Key, found: Consensus, differing: Collection[str]) -> None:
    """Write the consensus in the format of `job.labels`, and the pairs that the annotators label unlike, still blind.

    The labels that settle such pairs are written again, so that nothing is lost.
    """
    rows = [
        (one.pair, WORDS[found.labels[one.pair]], one.command_class)
        for one in key.pairs
        if one.pair in found.labels
    ]
    labels = pd.DataFrame(rows, columns=["pair", "label", "class"], dtype=object)
    write_atomically(into / CONSENSUS, to_csv(labels, index=False).encode())
    unlike = [one for one in key.pairs if one.pair in differing]
    write_atomically(into / DISAGREEMENTS, blind(unlike, found.labels).encode())


def _details(found: Consensus, verdicts: Mapping[str, bool], people: Agreed, judge: Agreed) -> dict[str, Any]:
    """Return the content of `kappa_agreement.json`; an undefined figure is null."""
    return {
        "annotators": _figures(people),
        "consensus_and_judge": _figures(judge),
        "unsettled": list(found.unsettled),
        "consensus_unlike_judge": [
            pair for pair, label in found.labels.items() if verdicts[pair] is not label
        ],
    }


def _figures(found: Agreed) -> dict[str, Any]:
    figures = {**found._asdict(), "kappa": None} | {
        "alike": found.same, "n": found.kappa.n, "kappa": found.kappa.kappa,
        "kappa_low": found.kappa.low, "kappa_high": found.kappa.high,
    }  # fmt: skip
    figures.pop("same")
    return {
        name: None if isinstance(value, float) and isnan(value) else value for name, value in figures.items()
    }
