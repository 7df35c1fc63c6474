"""ExecutionAgent: bugs that a review found, each by its name."""

from __future__ import annotations

import pytest

from runner.config import build
from runner.errors import ConfigError

AGENT = {
    "_target_": "runner.agents.execution.agent.ExecutionAgent",
    "name": "execution_agent",
    "version": "1",
}


@pytest.mark.parametrize("search", ["none", "brave", {"url": "https://engine.example/?q={query}"}, []])
def test_a_search_that_is_no_engine_is_refused_at_the_door_and_not_in_every_trial(search: object) -> None:
    with pytest.raises(ConfigError, match=r"agent\.search.* null asks none"):
        build(AGENT | {"search": search}, "agent")
    assert build(AGENT | {"search": None}, "agent").search is None
