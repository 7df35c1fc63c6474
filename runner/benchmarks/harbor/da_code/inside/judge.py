"""Judge what lies in a folder by `grading.json`, and write the reward.

The file is written by the importer, so it is trusted; the folder is the agent's.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.benchmarks.harbor.da_code.inside import metrics, predictions
from runner.benchmarks.harbor.da_code.inside.answers import compare_answers
from runner.benchmarks.harbor.da_code.inside.arrays import read_array
from runner.benchmarks.harbor.da_code.inside.databases import compare_databases
from runner.benchmarks.harbor.da_code.inside.figures import compare_data, compare_settings
from runner.benchmarks.harbor.da_code.inside.outputs import (
    LEAST_LIMIT,
    Unusable,
    checked,
    limit_for,
    read_bytes,
    read_json,
)
from runner.benchmarks.harbor.da_code.inside.tables import Table, compare, read_table

GRADING, GOLD = "grading.json", "gold"
FIGURE_SETTINGS, FIGURE_DATA = "dabench/plot.json", "dabench/result.npy"
Part = Mapping[str, Any]


def _csv(part: Part, output: str, gold: Path, root: Path) -> float:
    wanted = read_table(gold.read_bytes(), gold.name)
    own = _table(root, output, gold, wanted.rows)
    chosen, unordered = part["columns"], part["ignore_order"]
    return compare(own, wanted, chosen, ignore_order=unordered, partly=part["partly"])


def _sqlite(part: Part, output: str, gold: Path, root: Path) -> float:
    result = checked(root, output, limit_for(gold))
    tables, columns, unordered = part["tables"], part["columns"], part["ignore_order"]
    return compare_databases(result, gold, tables, columns, unordered, partly=part["partly"])


def _text(part: Part, output: str, gold: Path, root: Path) -> float:
    wanted = read_json(gold.read_bytes(), gold.name)
    answer = read_json(read_bytes(root, output, LEAST_LIMIT), output)
    try:
        return compare_answers(answer, wanted, ignore_order=part["ignore_order"], partly=part["partly"])
    except RecursionError:
        raise Unusable(f"{output} is nested too deeply.") from None


def _image(part: Part, output: str, gold: Path, root: Path) -> float:
    """Return 1.0 if the figure shows the data in the folder `gold`, else 0.0. Its pixels are not looked at.

    Raises `Unusable` if the image is missing or empty, or if the recorded data cannot be read.
    """
    if not read_bytes(root, output, 4 * LEAST_LIMIT):
        raise Unusable(f"{output} is empty.")
    data, settings = gold / Path(FIGURE_DATA).name, gold / Path(FIGURE_SETTINGS).name
    own = read_array(read_bytes(root, FIGURE_DATA, limit_for(data)), FIGURE_DATA)
    if not compare_data(own, read_array(data.read_bytes(), data.name)):
        return 0.0
    if not settings.exists():
        return 1.0
    shown = read_json(read_bytes(root, FIGURE_SETTINGS, LEAST_LIMIT), FIGURE_SETTINGS)
    return float(compare_settings(shown, read_json(settings.read_bytes(), settings.name), part["keys"]))


def _ml(part: Part, output: str, gold: Path, root: Path) -> float:
    wanted = read_table(gold.read_bytes(), gold.name)
    own = _table(root, output, gold, wanted.rows)
    value = predictions.score_column(own, wanted, part["target"], part["metric"], part["average"])
    return metrics.normalised(value, part["metric"], (part["bounds"][0], part["bounds"][1]))


def _competition(part: Part, output: str, gold: Path, root: Path) -> float:
    wanted = read_table(gold.read_bytes(), gold.name)
    own = _table(root, output, gold, wanted.rows)
    value = predictions.score_submission(own, wanted, part["metric"], part["average"])
    return metrics.normalised(value, part["metric"], (part["bounds"][0], part["bounds"][1]))


KINDS: Mapping[str, Callable[[Part, str, Path, Path], float]] = {
    "compare_csv": _csv,
    "compare_sqlite": _sqlite,
    "compare_text": _text,
    "compare_image": _image,
    "compare_ml": _ml,
    "compare_competition_ml": _competition,
}
"""Name of DA-Code's evaluator -> ours. Raises `Unusable` for what cannot be compared."""
JOINED: Mapping[str, Callable[[Sequence[float]], float]] = {
    "avg": lambda scores: math.fsum(scores) / len(scores),
    "max": max,
    "min": min,
    "and": lambda scores: float(all(scores)),
    "or": lambda scores: float(any(scores)),
}
"""Name of a rule -> function that makes one score of the scores of several results, all in [0, 1]."""


def judge(grading: Mapping[str, Any], golds: Path, root: Path) -> tuple[float, list[str]]:
    """Return the reward, and what was wrong with the results.

    Each part lists alternatives, which are pairs of an output and a gold file; the best of them counts.
    """
    scores, complaints = [], []
    for alternatives in grading["parts"]:
        best = 0.0
        for part in alternatives:
            try:
                best = max(best, KINDS[part["kind"]](part, part["output"], golds / part["gold"], root))
            except Unusable as error:
                complaints.append(str(error))
        scores.append(best)
    return JOINED[grading["join"]](scores), complaints


def main(tests: str, root: str, logs: str) -> None:
    """Judge `root` by the files in `tests`, and write the reward into `logs`."""
    grading = json.loads(Path(tests, GRADING).read_text("utf-8"))
    reward, complaints = judge(grading, Path(tests, GOLD), Path(root))
    for complaint in complaints:
        print(complaint.encode("ascii", "backslashreplace").decode()[:500])
    Path(logs, "reward.txt").write_text(f"{reward:.9f}\n")


def _table(root: Path, output: str, gold: Path, most_rows: int) -> Table:
    return read_table(read_bytes(root, output, limit_for(gold)), output, most_rows)


if __name__ == "__main__":
    main(*sys.argv[1:4])
