"""The time that a sweep says is left: never known to be wrong, and falling as time passes."""

from __future__ import annotations

import random
from collections.abc import Callable
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.report.time_left import Durations, Left, spelled, time_left

SECONDS = st.floats(min_value=0.0, max_value=1e5)


def states(
    lengths: list[float], at_once: int, looks: list[float]
) -> list[tuple[list[float], list[float], int, float]]:
    """At each of `looks`: durations of trials that ended, and of those that run; how many wait; what is truly left."""
    free, spans = [0.0] * at_once, []
    for length in lengths:
        start = min(free)
        free[free.index(start)] = start + length
        spans.append((start, start + length))
    return [
        (
            [end - start for start, end in spans if end <= now],
            [now - start for start, end in spans if start <= now < end],
            sum(start > now for start, _ in spans),
            max(free) - now,
        )
        for now in looks
    ]


@given(
    st.lists(SECONDS, min_size=4, max_size=40),
    st.lists(SECONDS, max_size=4),
    st.integers(0, 100),
    st.integers(1, 4),
)
def test_an_estimate_is_a_range_of_seconds_and_more_waiting_trials_never_make_it_shorter(
    ended: list[float], running: list[float], waiting: int, at_once: int
) -> None:
    left = time_left(ended, running, waiting, at_once)
    if left is None:
        assert not running
        assert not waiting
        return
    assert left.low >= 0
    if left.high is not None and len(running) + waiting >= at_once:
        assert left.low <= left.high * (1 + 1e-9) + 1e-6
        longer = time_left(ended, running, waiting + at_once, at_once)
        assert longer
        assert longer.high is not None
        assert longer.high >= left.high * (1 - 1e-9)


@given(st.lists(SECONDS, min_size=1, max_size=30), st.lists(SECONDS, min_size=1, max_size=4), SECONDS)
def test_a_trial_that_has_run_for_longer_never_makes_durations_seem_shorter(
    ended: list[float], running: list[float], more: float
) -> None:
    """A slow trial was left out of the mean until it ended, and then the time left jumped up."""

    def average(running: list[float]) -> float:
        found = Durations(ended, running).beyond(-1.0)
        assert found
        return found[0]

    longer = [running[0] + more, *running[1:]]
    assert average(longer) >= average(running) * (1 - 1e-9) - 1e-6
    assert average(running) >= mean(ended) * (1 - 1e-9) - 1 - 1e-6


@given(st.floats(1, 1000), st.integers(1, 4), st.integers(3, 12))
def test_trials_of_one_length_are_foretold_to_the_second(length: float, at_once: int, waves: int) -> None:
    looks = [length * (wave + 0.5) for wave in range(3, waves)]
    for ended, running, waiting, truth in states([length] * at_once * waves, at_once, looks):
        left = time_left(ended, running, waiting, at_once)
        assert left
        assert left.low == pytest.approx(truth, rel=0.2)
        assert left.high == pytest.approx(truth, rel=0.2)


DRAWS: dict[str, Callable[[random.Random], float]] = {
    "even": lambda draw: draw.uniform(10, 30),
    "exponential": lambda draw: draw.expovariate(1 / 60),
    "a few are slow": lambda draw: draw.choice([20.0] * 9 + [300.0]),
}


@pytest.mark.parametrize("draws", DRAWS.values(), ids=DRAWS)
def test_the_time_left_rose_from_three_to_seven_minutes_on_one_slow_task(
    draws: Callable[[random.Random], float],
) -> None:
    """Over many sweeps a range falls by a second each second, and four of five hold the truth; "over" is no lie."""
    draw = random.Random(1)
    steps: list[float] = []
    held: list[bool] = []
    over: list[bool] = []
    for _ in range(150):
        before = None
        lengths = [draws(draw) for _ in range(60)]
        for ended, running, waiting, truth in states(lengths, 4, [60.0 * n for n in range(2, 12)]):
            left = time_left(ended, running, waiting, 4)
            middle = None
            if left and left.high is None:
                over.append(left.low <= truth)
            elif left and left.high is not None and truth > 0:
                held.append(left.low <= truth <= left.high)
                middle = (left.low + left.high) / 2
                steps.extend([] if before is None else [middle - before])
            before = middle
    assert mean(steps) == pytest.approx(-60, abs=15)
    assert mean(held) > 0.75
    assert mean(over or [1]) > 0.99


@pytest.mark.parametrize(
    ("ended", "running", "waiting", "at_once"),
    [([], [5.0], 3, 1), ([1.0, 2.0], [5.0], 3, 1), ([1.0] * 3, [5.0], 3, 4), ([1.0] * 9, [], 0, 2)],
    ids=["nothing ended", "two ended", "fewer than run at once", "all ended"],
)
def test_nothing_is_said_before_enough_has_ended(
    ended: list[float], running: list[float], waiting: int, at_once: int
) -> None:
    assert time_left(ended, running, waiting, at_once) is None


def test_the_last_trial_of_unknown_length_is_given_no_figure() -> None:
    left = time_left([20.0] * 9, [21.0], 0, 1)
    assert left == Left(0.0, None)
    assert not spelled(left)
    left = time_left([20.0] * 9, [200.0], 40, 1)
    assert spelled(left).startswith("over ")


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (None, ""),
        (Left(3, None), ""),
        (Left(200, None), "over 3 min left"),
        (Left(0, 4), "under 10 s left"),
        (Left(21, 58), "20-60 s left"),
        (Left(30, 30), "30 s left"),
        (Left(170, 430), "2-8 min left"),
        (Left(5000, 9000), "1-2.5 h left"),
    ],
)
def test_the_words(left: Left | None, words: str) -> None:
    assert spelled(left) == words
