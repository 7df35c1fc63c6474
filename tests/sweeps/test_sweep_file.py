"""The one reader and writer of `sweep.json`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runner.errors import ConfigError
from runner.sweeps import sweep_file
from tests.report.plans import sweep_of_four, write_sweep

WRITTEN_IN_2026 = """\
{
 "schema_version": 1,
 "name": "mine",
 "created": "2026-11-22T12:00:00+00:00",
 "planned": [
  {
   "key": "00000000000000000000000000000001",
   "agent": "codex",
   "model": "glm",
   "dataset": "quickstart",
   "budget": "default",
   "task": "sqlite-shop",
   "attempt": 1,
   "tier": "easy",
   "category": "data",
   "language": "python",
   "scripted": false,
   "replayed": false,
   "refused": null
  }
 ],
 "scoring": {
  "name": "mine",
  "alpha": 0.6,
  "tiers": {
   "easy": {
    "budgets": [
     0.1,
     0.5
    ],
    "tau": 0.5,
    "weight": 1.0
   }
  },
  "labels": {},
  "calibrated": "",
  "attempts": "mean",
  "resamples": 2000,
  "confidence": 0.95,
  "seed": 0
 },
 "prices": {
  "glm": {
   "input": 1e-06,
   "output": 2e-06,
   "cache_creation": null,
   "cache_hit": null,
   "tiers": [],
   "source": "s",
   "date": "2026-11-22"
  }
 },
 "not_started": {
  "00000000000000000000000000000001": "3 trial(s) before it were refused."
 },
 "versions": {
  "assay": "0.1.0",
  "python": "3.11.7",
  "litellm": "1.106.2"
 }
}
"""


def test_a_file_of_an_earlier_version_is_read_and_written_with_the_same_content(tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text(WRITTEN_IN_2026)
    plan = sweep_file.read(tmp_path)
    assert plan.cells == {"codex·glm·quickstart·default"}
    assert (plan.prices["glm"].output, plan.scoring.tiers["easy"].tau) == (2e-6, 0.5)
    sweep_file.write(tmp_path, plan)
    before, after = json.loads(WRITTEN_IN_2026), json.loads((tmp_path / "sweep.json").read_text())
    assert after.pop("created") == "2026-11-22T12:00:00Z"
    assert list(after) == [key for key in before if key != "created"]
    assert after == {key: value for key, value in before.items() if key != "created"}


def test_a_sweep_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    write_sweep(tmp_path, *sweep_of_four(), name="mine")
    with pytest.raises(ConfigError, match=r"no sweep named other\. Valid: mine"):
        sweep_file.read(tmp_path / "other")
    with pytest.raises(ConfigError, match=r"no sweep named .*Valid: \(none\)"):
        sweep_file.read(tmp_path / "mine" / "other")


@pytest.mark.parametrize(
    ("content", "where"),
    [('{"schema_version": 3}', "schema_version"), ("{", "the whole: Invalid JSON"), ("", "JSON")],
)
def test_a_plan_of_another_version_or_cut_off_is_refused_by_name(
    tmp_path: Path, content: str, where: str
) -> None:
    (tmp_path / "sweep.json").write_text(content)
    with pytest.raises(ConfigError, match=rf"sweep\.json cannot be read .*{where}"):
        sweep_file.read(tmp_path)


def test_outputs_that_are_a_file_have_no_sweep(tmp_path: Path) -> None:
    """`job=report outputs=FILE` was a trace."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"file has no sweep named mine"):
        sweep_file.read(tmp_path / "file" / "mine")
