"""Estimate of the time that a sweep still takes, from trials that ended and from those that still run.

A running trial is an observation too: it takes at least as long as it has run. Without it the trials that end first,
which are the short ones, would stand for all. So durations are estimated like survival times, with the estimator of
Kaplan and Meier: running trials are censored observations.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

FEWEST = 3
"""Least number of ended trials before there is an estimate. As many must have ended as run at once, too."""
SPREAD = 1.645
"""Standard deviations on either side of the estimate. Nine of ten normal values lie within; durations are skewed, and
about four of five ranges hold the truth."""
_SECOND, _MINUTE, _HOUR = 1, 60, 3600
_STEPS = {"s": 10, "min": _MINUTE, "h": _HOUR / 2}
"""Unit of a range -> seconds to which its ends are rounded."""


class Left(NamedTuple):
    """Range of the time left, in seconds."""

    low: float
    high: float | None
    """Upper end; None if a trial has run for longer than all that ended, because it may then take any time."""


class Durations:
    """Estimated distribution of a trial's duration."""

    def __init__(self, ended: Sequence[float], running: Sequence[float]) -> None:
        """`ended` holds at least one duration, `running` the durations so far of trials that run."""
        observed = sorted([(seconds, 0) for seconds in ended] + [(seconds, 1) for seconds in running])
        self._times, self._weights = [], []
        alive = 1.0
        for number, (seconds, is_running) in enumerate(observed):
            if not is_running:
                dying = alive / (len(observed) - number)
                self._times.append(seconds)
                self._weights.append(dying)
                alive -= dying
        # A trial that outlived all others took at least as long as the longest of them.
        self._weights[-1] += alive
        self._sums = [self._tails(power) for power in range(3)]

    def _tails(self, power: int) -> list[float]:
        """Return, for each time, the weighted sums of the powers of all times from there on."""
        terms = [w * t**power for t, w in zip(self._times, self._weights, strict=True)]
        return [*accumulate(reversed(terms))][::-1]

    def beyond(self, seconds: float) -> tuple[float, float] | None:
        """Return mean and variance of the time left to a trial after so many seconds; None if none ran for longer."""
        first = bisect_right(self._times, seconds)
        if first == len(self._times):
            return None
        weight, total, squares = (tails[first] for tails in self._sums)
        mean = total / weight
        return mean - seconds, max(squares / weight - mean**2, 0.0)


def time_left(ended: Sequence[float], running: Sequence[float], waiting: int, at_once: int) -> Left | None:
    """Estimate the time left from durations in seconds; return None while too little is known.

    `ended` holds durations, `running` durations so far, `waiting` the number of trials that have not begun; `at_once`
    run at a time.
    """
    if len(ended) < max(FEWEST, at_once) or not (running or waiting):
        return None
    durations = Durations(ended, running)
    known = [found for seconds in running if (found := durations.beyond(seconds))]
    mean, variance = durations.beyond(-1.0) or (0.0, 0.0)
    mean -= 1.0  # counted from -1, so that durations of 0 count as well
    side_by_side = max(1, min(at_once, len(running) + waiting))
    work = waiting * mean + sum(rest for rest, _ in known)
    deviation = math.sqrt(waiting * variance + sum(squares for _, squares in known))
    deviation += waiting * math.sqrt(variance / len(ended))  # the mean itself is not known any better
    expected = max([work / side_by_side, *(rest for rest, _ in known)])
    low = max(0.0, expected - SPREAD * deviation / side_by_side)
    if len(known) < len(running):
        return Left(low, None)
    longest = max((rest + SPREAD * math.sqrt(squares) for rest, squares in known), default=0.0)
    if waiting:  # the last one may be long
        longest = max(longest, mean + SPREAD * math.sqrt(variance))
    return Left(low, max(expected + SPREAD * deviation / side_by_side, longest))


def spelled(left: Left | None) -> str:
    """Return the estimate in words, rounded to its precision; empty if there is none."""
    if left is None or (left.high is None and left.low < _STEPS["s"]):
        return ""
    end = left.low if left.high is None else left.high
    unit = "s" if end < 1.5 * _MINUTE else "min" if end < 1.5 * _HOUR else "h"
    step, size = _STEPS[unit], {"s": _SECOND, "min": _MINUTE, "h": _HOUR}[unit]
    low = math.floor(left.low / step) * step / size
    if left.high is None:
        return f"over {low:g} {unit} left"
    high = max(math.ceil(left.high / step), 1) * step / size
    if low >= high:
        return f"{high:g} {unit} left"
    return f"{low:g}-{high:g} {unit} left" if low else f"under {high:g} {unit} left"
