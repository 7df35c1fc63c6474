"""An answer of the judge model that broke off may have been charged; its trial records that."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.gateway import Gateway, provider
from runner.gateway.fake_upstream import FakeUpstream
from runner.gateway.judge_calls import Asking
from tests.benchmarks.cli_tool_bench.test_semantic import YES, a_judge


def test_an_answer_of_the_judges_that_broke_off_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record did not say that more than `judge_usd` may have been spent."""
    monkeypatch.setattr(provider, "BACK_OFF_SECONDS", 0.01)
    with (
        FakeUpstream(YES, YES.model_copy(update={"cut": True}), YES) as fake,
        Gateway(tmp_path / "g") as gateway,
        Asking(gateway, a_judge(fake), "trial", tmp_path / "judge.jsonl") as asking,
    ):
        found = [(asking.ask("Judge.", "Alike?"), asking.is_cut) for _ in range(2)]
    assert found == [(YES.text, False), (YES.text, True)]
