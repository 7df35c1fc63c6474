"""Scores of predictions. Each takes two sequences of equal length, first the truth, and at least one value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from statistics import fmean, median

Numbers = Sequence[float]
Labels = Sequence[Hashable]

SMALLEST = 1e-15
"""Probabilities are kept this far from 0 and 1 where their logarithm is taken."""


AVERAGES = ("weighted", "macro", "micro", "binary")
"""Ways to average F1 scores."""


def accuracy(gold: Labels, own: Labels) -> float:
    """Return the share of right labels."""
    return fmean(float(one == other) for one, other in zip(gold, own))  # noqa: B905 - of equal length, as everywhere


def f1(gold: Labels, own: Labels, average: str = "weighted") -> float:
    """Return the F1 score. `average`: `weighted` by the truth's counts, `macro`, `micro`, or `binary` for label 1."""
    if average == "micro":
        return accuracy(gold, own)
    counts, given = Counter(gold), Counter(own)
    right = Counter(one for one, other in zip(gold, own) if one == other)  # noqa: B905
    scores = {label: 2 * right[label] / (counts[label] + given[label]) for label in {*counts, *given}}
    if average == "binary":
        return scores.get(1.0, 0.0)
    if average == "macro":
        return fmean(scores.values())
    return sum(scores[label] * count for label, count in counts.items()) / len(gold)


def roc_auc(gold: Numbers, own: Numbers) -> float:
    """Return the probability that a random positive (1) gets a higher score than a random negative; ties are halves.

    Raises `ValueError` if the truth lacks one of the two.
    """
    positives = sum(1 for value in gold if value == 1)
    negatives = len(gold) - positives
    if not positives or not negatives:
        raise ValueError("The truth has one class only.")
    ranks = _ranks(own)
    total = sum(rank for rank, value in zip(ranks, gold) if value == 1)  # noqa: B905
    return (total - positives * (positives + 1) / 2) / (positives * negatives)


def r2(gold: Numbers, own: Numbers) -> float:
    """Return the coefficient of determination: 0 for predicting the mean, and below for worse."""
    mean = fmean(gold)
    spread = sum((value - mean) ** 2 for value in gold)
    missed = sum((one - other) ** 2 for one, other in zip(gold, own))  # noqa: B905
    return 1 - missed / spread if spread else float(not missed)


def mae(gold: Numbers, own: Numbers) -> float:
    """Return the mean absolute error."""
    return fmean(abs(one - other) for one, other in zip(gold, own))  # noqa: B905


def mse(gold: Numbers, own: Numbers) -> float:
    """Return the mean squared error."""
    return fmean((one - other) ** 2 for one, other in zip(gold, own))  # noqa: B905


def rmse(gold: Numbers, own: Numbers) -> float:
    """Return the root of the mean squared error."""
    return math.sqrt(mse(gold, own))


def rmsle(gold: Numbers, own: Numbers) -> float:
    """Return the root of the mean squared error of the logarithms of 1 + value. Negative predictions count as 0.

    DA-Code's own function leaves the root out, but the bounds in its tasks are bounds of the root.
    """
    return rmse([math.log1p(value) for value in gold], [math.log1p(max(value, 0.0)) for value in own])


def medae(gold: Numbers, own: Numbers) -> float:
    """Return the median absolute error."""
    return float(median(abs(one - other) for one, other in zip(gold, own)))  # noqa: B905


def smape(gold: Numbers, own: Numbers) -> float:
    """Return the mean of the error by the mean of both absolute values, in percent. Two zeros have no error."""
    return 100 * fmean(
        2 * abs(one - other) / (abs(one) + abs(other)) if one or other else 0.0
        for one, other in zip(gold, own)  # noqa: B905
    )


def weighted_kappa(gold: Numbers, own: Numbers) -> float:
    """Return Cohen's kappa with quadratic weights of whole numbers.

    Raises `ValueError` for a prediction outside the range of the truth.
    """
    low, high = min(gold), max(gold)
    if not all(low <= value <= high for value in own):
        raise ValueError("A prediction lies outside the range of the truth.")
    observed = sum((one - other) ** 2 for one, other in zip(gold, own)) / len(gold)  # noqa: B905
    counts, given = Counter(gold), Counter(own)
    expected = (
        sum(
            (one - other) ** 2 * count * times
            for one, count in counts.items()
            for other, times in given.items()
        )
        / len(gold) ** 2
    )
    return 1 - observed / expected if expected else float(not observed)


def logloss_total(gold: Sequence[Numbers], own: Sequence[Numbers]) -> float:
    """Return half the mean of -log2 of the probability that each row gives to its class. Both are rows by class."""
    return -fmean(math.log2(row[place]) for row, place in _given_to_class(gold, own)) / 2


def logloss_class(gold: Sequence[Numbers], own: Sequence[Numbers]) -> float:
    """Return half the sum over the classes of the mean of -log2 of the probability given to rows of the class.

    Raises `ValueError` if a class has no row.
    """
    losses: dict[int, list[float]] = {place: [] for place in range(len(gold[0]))}
    for row, place in _given_to_class(gold, own):
        losses[place].append(math.log2(row[place]))
    if not all(losses.values()):
        raise ValueError("A class has no row.")
    return -sum(map(fmean, losses.values())) / 2


def _given_to_class(gold: Sequence[Numbers], own: Sequence[Numbers]) -> list[tuple[list[float], int]]:
    """Return each row's probabilities, which add up to 1, and the place of its class.

    Raises `ValueError` unless each row of the truth has one class, and each row some positive probability.
    """
    pairs = []
    for row, given in zip(gold, own):  # noqa: B905
        total = sum(given)
        if sorted(row) != [0.0] * (len(row) - 1) + [1.0] or min(given) < 0 or not total > 0:
            raise ValueError("A row is not a distribution over classes.")
        pairs.append(
            ([min(max(value / total, SMALLEST), 1 - SMALLEST) for value in given], list(row).index(1.0))
        )
    return pairs


def _ranks(values: Numbers) -> list[float]:
    """Return the rank of each value from 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for place in order[start : end + 1]:
            ranks[place] = (start + end) / 2 + 1
        start = end + 1
    return ranks


OF_LABELS: Mapping[str, Callable[..., float]] = {"accuracy": accuracy, "f1": f1}
"""Metrics of labels, which may be texts."""
OF_NUMBERS: Mapping[str, Callable[[Numbers, Numbers], float]] = {
    "roc_auc_score": roc_auc,
    "quadratic_weighted_kappa": weighted_kappa,
    "r2": r2,
    "mae": mae,
    "mse": mse,
    "rmse": rmse,
    "rmsle": rmsle,
    "medae": medae,
    "smape": smape,
}
"""Metrics of one column of numbers; of several columns, the mean over columns."""
OF_ROWS: Mapping[str, Callable[[Sequence[Numbers], Sequence[Numbers]], float]] = {
    "logloss_total": logloss_total,
    "logloss_class": logloss_class,
}
"""Metrics of rows of probabilities."""
METRICS = (*OF_LABELS, *OF_NUMBERS, *OF_ROWS)
LOWER_IS_BETTER = ("mae", "mse", "rmse", "rmsle", "medae", "smape", "logloss_total", "logloss_class")


def normalised(value: float, metric: str, bounds: tuple[float, float]) -> float:
    """Return where a value lies between the worst (0) and the best (1) of two bounds, which may come in any order.

    A value that is not a finite number gives 0.
    """
    worst, best = sorted(bounds, reverse=metric in LOWER_IS_BETTER)
    return min(max((value - worst) / (best - worst), 0.0), 1.0) if math.isfinite(value) else 0.0
