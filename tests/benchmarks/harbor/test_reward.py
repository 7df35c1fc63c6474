"""Read rewards by Harbor's rules, and refuse others with the reason. See also `tests/security/test_reward_files.py`."""

from __future__ import annotations

import pytest

from runner.benchmarks.harbor.reward_files import read_reward
from runner.errors import VerifierError


@pytest.mark.parametrize(
    ("files", "reward"),
    [
        ({"reward.txt": b"1\n"}, 1.0),
        ({"reward.txt": b" 0.25 "}, 0.25),
        ({"reward.json": b'{"reward": 0.5, "speed": 3}'}, 0.5),
        ({"reward.json": b'{"score": 0.75}'}, 0.75),
        ({"reward.json": b'{"reward": true}'}, 1.0),
        ({"reward.json": b'{"reward": 0}', "reward.txt": b"1"}, 0.0),
    ],
)
def test_rewards(files: dict[str, bytes], reward: float) -> None:
    assert read_reward(files)[0] == reward


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "wrote neither"),
        ({"reward.txt": b""}, "not a number"),
        ({"reward.txt": b"1.5"}, "not in"),
        ({"reward.json": b"{}"}, "non-empty"),
        ({"reward.json": b"[1]"}, "flat"),
        ({"reward.json": b'{"reward": 1e400}'}, "finite"),
        ({"reward.json": b'{"a": 1, "b": 0}'}, "reward_key"),
        ({"reward.json": b"broken", "reward.txt": b"1"}, "not JSON"),
    ],
)
def test_what_is_no_reward_is_an_error_and_not_a_zero(files: dict[str, bytes], why: str) -> None:
    with pytest.raises(VerifierError, match=why):
        read_reward(files)
