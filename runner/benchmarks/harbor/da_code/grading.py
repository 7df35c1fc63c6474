"""Say how a DA-Code task is judged: which outputs are compared with which gold files, and by what rule.

The judge (`inside.judge`) reads what is written here. A task that cannot be judged is a `TaskError` with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from runner.benchmarks.harbor.da_code.checkout import Evaluation, Expected, Source
from runner.benchmarks.harbor.da_code.inside import figures, metrics, predictions
from runner.benchmarks.harbor.da_code.inside.arrays import read_array
from runner.benchmarks.harbor.da_code.inside.databases import table_names
from runner.benchmarks.harbor.da_code.inside.judge import FIGURE_DATA, FIGURE_SETTINGS, JOINED
from runner.benchmarks.harbor.da_code.inside.outputs import Unusable
from runner.benchmarks.harbor.da_code.inside.tables import read_table
from runner.errors import TaskError

Value = TypeVar("Value")

ANSWER = "answer.json"
"""Output of a task whose result is an answer and not a file."""
IMAGES = (".png", ".jpg", ".jpeg")
PARTLY = ("divide", "devide")
"""Names of the rule by which a part of the columns or keys is worth a part of the score. The other is `all`."""


@dataclass
class Grading:
    """The judge's data on a task, and the outputs that get the full score."""

    join: str
    parts: list[list[dict[str, Any]]] = field(default_factory=list)
    golds: dict[str, bytes | Path] = field(default_factory=dict)
    """Name below the judge's folder of gold files -> content, or the file that has it."""
    solution: dict[str, bytes | Path] = field(default_factory=dict)
    """Name below the agent's folder -> content, or the file that has it."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the files that are judged, each once."""
        named = [part["output"] for alternatives in self.parts for part in alternatives]
        data = [FIGURE_SETTINGS, FIGURE_DATA] if self.is_figure else []
        return tuple(dict.fromkeys([*named, *data]))

    @property
    def is_figure(self) -> bool:
        """Return whether the data of a figure is judged."""
        return any(part["kind"] == "compare_image" for alternatives in self.parts for part in alternatives)

    def add(self, name: str, content: bytes | Path) -> str:
        """Add a gold file, and return the name under which it is kept."""
        kept = f"{len(self.golds)}-{name}"
        self.golds[kept] = content
        return kept


@dataclass(frozen=True)
class Wanted:
    """One result of a task, with its rule."""

    source: Source
    evaluation: Evaluation
    result: Expected
    options: Mapping[str, Any]

    def gold(self, name: str) -> Path:
        """Return the gold file of an output. Raises `TaskError` if the checkout has none."""
        file = self.source.gold / PurePosixPath(name).name
        if file.is_symlink() or not file.is_file():
            raise TaskError(f"The gold result {file.name} is missing.")
        return file

    def option(self, key: str, place: int, default: Any = None) -> Any:
        """Return an option, of one alternative if there are several."""
        value = self.options.get(key, default)
        if self.result.multi and key in self.options and isinstance(value, list):
            if place >= len(value):
                raise TaskError(f"Its option {key} has {len(value)} entries, fewer than there are results.")
            return value[place]
        return value

    def partly(self, place: int) -> bool:
        """Return whether parts of a result are worth something. Raises `TaskError` for an unknown rule."""
        rule = self.option("score_rule", place, "all")
        rule = rule[0] if isinstance(rule, list) and len(rule) == 1 else rule
        if rule not in ("all", *PARTLY):
            raise TaskError(f"Its score_rule {rule!r} is neither all nor divide.")
        return rule in PARTLY


def grading_of(source: Source) -> Grading:
    """Return how a task is judged. Raises `TaskError`."""
    evaluation = source.checked()
    if evaluation.conj not in JOINED:
        raise TaskError(f"Its scores are joined by {evaluation.conj!r}, which is unknown here.")
    made = Grading(evaluation.conj)
    results = list(_single(evaluation.result))
    functions = _stretched("func", list(evaluation.func), len(results))
    options = _stretched("options", [one or {} for one in evaluation.options] or [{}], len(results))
    for result, function, chosen in zip(results, functions, options, strict=True):
        if function not in MAKERS:
            raise TaskError(f"It is judged by {function}, which is unknown here.")
        try:
            made.parts.append(MAKERS[function](made, Wanted(source, evaluation, result, chosen)))
        except Unusable as error:
            raise TaskError(f"Its gold result cannot be used: {error}") from error
    if not made.parts or not all(made.parts):
        raise TaskError("Its evaluation names no result.")
    return made


def _single(results: tuple[Expected, ...]) -> Iterator[Expected]:
    """Yield results that are one file, one answer, or files that belong together."""
    for result in results:
        if result.multi or result.number:
            yield result
        else:
            yield from (Expected(file=(name,)) for name in result.file)


def _stretched(what: str, values: list[Value], length: int) -> list[Value]:
    """Return as many values as there are results; a single one counts for all. Raises `TaskError`."""
    if len(values) not in (1, length):
        raise TaskError(f"Its evaluation has {length} results and {len(values)} entries in {what}.")
    return values * length if len(values) == 1 else values


def _csv(made: Grading, wanted: Wanted) -> list[dict[str, Any]]:
    """Return the alternatives of a table. Several names are several right tables, and any may be written."""
    found = []
    for place, name in enumerate(wanted.result.file):
        gold = wanted.gold(name)
        table = read_table(gold.read_bytes(), gold.name)
        columns = _places(wanted.option("condition_cols", place, []), len(table.names))
        kept = made.add(gold.name, gold)
        rule = {
            "columns": columns,
            "ignore_order": _is_unordered(wanted.option("ignore_order", place, default=False)),
        }
        for output in wanted.result.file if wanted.result.multi else (name,):
            part = {"kind": "compare_csv", "output": output, "gold": kept, **rule}
            found.append(part | {"partly": wanted.partly(place)})
        if place == 0:
            made.solution[name] = gold
    return found


def _sqlite(made: Grading, wanted: Wanted) -> list[dict[str, Any]]:
    name = _only(wanted.result)
    gold = wanted.gold(name)
    named = tuple(map(str, wanted.options.get("condition_tabs") or table_names(gold)))
    columns = [_places(one, None) for one in wanted.options.get("condition_cols") or []]
    unordered = wanted.options.get("ignore_order", [])
    orders = [
        _is_unordered(one) for one in (unordered if isinstance(unordered, list) else [unordered] * len(named))
    ]
    for what, entries in (("condition_cols", columns), ("ignore_order", orders)):
        if entries and len(entries) < len(named):
            raise TaskError(f"Its option {what} has {len(entries)} entries for {len(named)} tables.")
    made.solution[name] = gold
    rule = {"tables": list(named), "columns": columns, "ignore_order": orders, "partly": wanted.partly(0)}
    return [{"kind": "compare_sqlite", "output": name, "gold": made.add(gold.name, gold), **rule}]


def _text(made: Grading, wanted: Wanted) -> list[dict[str, Any]]:
    """Return the alternatives of an answer, which are one: the judge reads all right answers from one file."""
    answers: list[Any] = list(wanted.result.number)
    name = ANSWER
    if not answers:
        name = _only(wanted.result)
        found = _read_json(wanted.gold(name))
        answers = found if isinstance(found, list) else [found]
    if not answers or not all(isinstance(answer, dict) and answer for answer in answers):
        raise TaskError("Its right answer is not an object with keys.")
    order = wanted.options.get("ignore_order", False)
    unordered = _is_unordered(order[0] if isinstance(order, list) and order else order)
    made.solution[name] = json.dumps(answers[0]).encode()
    kept = made.add(ANSWER, json.dumps(answers).encode())
    rule = {"ignore_order": unordered, "partly": wanted.partly(0)}
    return [{"kind": "compare_text", "output": name, "gold": kept, **rule}]


def _image(made: Grading, wanted: Wanted) -> list[dict[str, Any]]:
    images = [name for name in wanted.result.file if name.lower().endswith(IMAGES)]
    if len(images) != 1:
        raise TaskError(f"It has {len(images)} images, and one figure is judged at a time.")
    keys = wanted.options.get("keys") or []
    if unknown := sorted({*keys} - {*figures.KEYS}):
        raise TaskError(f"Its figure is compared by {unknown[0]!r}, which is unknown here.")
    data, kept = wanted.gold(FIGURE_DATA), f"{len(made.golds)}-figure"
    read_array(data.read_bytes(), data.name)
    made.golds[f"{kept}/{data.name}"] = made.solution[FIGURE_DATA] = data
    if keys or (wanted.source.gold / PurePosixPath(FIGURE_SETTINGS).name).is_file():
        settings = wanted.gold(FIGURE_SETTINGS)
        if not isinstance(_read_json(settings), dict):
            raise TaskError(f"The gold result {settings.name} is not an object with keys.")
        made.golds[f"{kept}/{settings.name}"] = made.solution[FIGURE_SETTINGS] = settings
    drawn = wanted.source.gold / PurePosixPath(images[0]).name
    made.solution[images[0]] = (
        drawn if drawn.is_file() and not drawn.is_symlink() else b"The figure's data counts."
    )
    return [{"kind": "compare_image", "output": images[0], "gold": kept, "keys": list(keys)}]


def _ml(made: Grading, wanted: Wanted) -> list[dict[str, Any]]:
    """Return the rule for one predicted column."""
    config = wanted.evaluation.config
    if config.type.startswith("cluster") or config.metric == "silhouette":
        raise TaskError(
            "It is scored by the silhouette of features that the agent itself writes, which any agent can make perfect."
        )
    name = _only(wanted.result)
    gold = wanted.gold(name)
    try:
        target = predictions.target_name(
            read_table(gold.read_bytes(), gold.name), wanted.options.get("target_column")
        )
    except predictions.Ambiguous as error:
        raise TaskError(str(error)) from error
    return [_predicted(made, wanted, "compare_ml", gold) | {"target": target}]


def _competition(made: Grading, wanted: Wanted) -> list[dict[str, Any]]:
    return [_predicted(made, wanted, "compare_competition_ml", wanted.gold(_only(wanted.result)))]


def _predicted(made: Grading, wanted: Wanted, kind: str, gold: Path) -> dict[str, Any]:
    """Return the rule for predictions: the metric, and the values that are worth 0 and 1."""
    config, name = wanted.evaluation.config, _only(wanted.result)
    metric = config.metric.strip().lower().replace(" ", "_")
    if metric not in metrics.METRICS:
        raise TaskError(f"Its metric {config.metric!r} is unknown here.")
    if metric == "roc_auc_score" and config.type.startswith("multi"):
        raise TaskError("The area under the curve is computed for two classes only.")
    if metric in metrics.LOWER_IS_BETTER and None in (config.lower_bound, config.upper_bound):
        raise TaskError(f"Its metric {metric} has no two bounds.")
    lower = 0.0 if config.lower_bound is None else config.lower_bound
    upper = 0.9 if config.upper_bound is None else config.upper_bound
    if lower == upper:
        raise TaskError(f"Both bounds of its metric are {lower}.")
    average = str(wanted.options.get("average") or "")
    if average not in ("", *metrics.AVERAGES):
        raise TaskError(f"Its F1 score is averaged by {average!r}, which is unknown here.")
    made.solution[name] = gold
    rule = {"metric": metric, "average": average, "bounds": [lower, upper]}
    return {"kind": kind, "output": name, "gold": made.add(gold.name, gold), **rule}


MAKERS: Mapping[str, Callable[[Grading, Wanted], list[dict[str, Any]]]] = {
    "compare_csv": _csv,
    "compare_sqlite": _sqlite,
    "compare_text": _text,
    "compare_image": _image,
    "compare_ml": _ml,
    "compare_competition_ml": _competition,
}
"""Name of DA-Code's evaluator -> the function that says how ours compares."""


def _only(result: Expected) -> str:
    if len(result.file) != 1:
        raise TaskError(f"Its evaluation names {len(result.file)} files where one is compared.")
    return result.file[0]


def _places(value: Any, width: int | None) -> list[int]:
    """Return the indices of the columns that count. Raises `TaskError` for one that the gold table has not."""
    places = value if isinstance(value, list) else [value]
    if not all(type(place) is int and 0 <= place < (width or place + 1) for place in places):
        raise TaskError(f"It compares the columns {places}, which are not all in the gold table.")
    return places


def _is_unordered(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TaskError(f"Its option ignore_order is {value!r} and neither true nor false.")
    return value


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise TaskError(f"The gold result {file.name} is not JSON: {error}.") from error
