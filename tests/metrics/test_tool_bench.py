"""Analyses of CLI-Tool-Bench, on tables made by hand and on the paper's published figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics import tool_bench
from metrics.differential import Phase
from metrics.uncertainty import pairwise
from tests.metrics.tables import SCORING, line, table, trial
from tests.metrics.test_published import published

SCORES = ("exec", "state", "exact_match", "fuzzy_match")
AGENTS = ("OpenHands", "Mini-SWE-Agent")
LAW = settings(max_examples=50)


def tool(task: str, score: float = 1.0, **other: Any) -> dict[str, Any]:
    """Return a trial whose tool was installed and has the same score by every metric."""
    return trial(task, score, language="python", build=1.0, **dict.fromkeys(SCORES, score), **other)


def test_a_table_of_another_benchmark_has_no_such_scores() -> None:
    assert tool_bench.scored(table(trial("easy-1"))) == ()
    assert tool_bench.scored(table(trial("easy-1", build=1.0))) == ()
    assert tool_bench.scored(table(tool("easy-1", semantic_match=None))) == ("build", *SCORES)


def test_what_could_not_be_installed_is_worth_nothing_whatever_else_is_said() -> None:
    """Such a trial scores 0 (eq. 4). A workspace that was too large to take out has no score at all."""
    rows = table(tool("easy-1"), tool("easy-2") | {"build": 0.0}, trial("hard-1", 0.0, language="python"))
    found = tool_bench.overall(rows, SCORING)
    assert line(found, "a")[["build", "exec", "fuzzy_match"]].tolist() == pytest.approx([1 / 3] * 3)


def test_a_planned_task_without_a_valid_trial_counts_nothing_in_every_score() -> None:
    rows = table(tool("easy-1"), trial("easy-2", None, language="python"))
    assert line(tool_bench.overall(rows, SCORING), "a")["build"] == 0.5


def test_a_score_that_nobody_gave_is_missing_and_not_nothing() -> None:
    rows = table(tool("easy-1", semantic_match=1.0), tool("easy-2", semantic_match=None))
    found = line(tool_bench.overall(rows, SCORING), "a")
    assert np.isnan(
        found[["semantic_match", "semantic_match_low", "semantic_match_1645"]].astype(float)
    ).all()
    assert found["exact_match"] == 1.0
    assert tool_bench.main_score(rows) == "exact_match"
    assert tool_bench.main_score(rows.iloc[:1]) == "semantic_match"


def test_of_several_attempts_the_latest_or_their_mean() -> None:
    rows = table(tool("easy-1", 0.0), tool("easy-1", 1.0, attempt=2))
    means = {
        how: line(tool_bench.overall(rows, SCORING.model_copy(update={"attempts": how})), "a")["exec"]
        for how in ("latest_completed", "mean", "pass@2")
    }
    assert means == {"latest_completed": 1.0, "mean": 0.5, "pass@2": 0.5}


def test_both_intervals_hold_the_mean_and_the_papers_is_as_it_says() -> None:
    scores = [0.0, 0.5, 1.0, 1.0]
    found = line(
        tool_bench.overall(table(*(tool(f"easy-{n}", s) for n, s in enumerate(scores))), SCORING), "a"
    )
    assert found["exec_low"] < found["exec"] < found["exec_high"]
    assert found["exec_1645"] == pytest.approx(1.645 * np.std(scores, ddof=1) / 2)
    assert found[["build_low", "build_high", "build_1645"]].tolist() == [1.0, 1.0, 0.0]


def test_the_published_averages_of_both_frameworks_and_the_bottom_row() -> None:
    """The averages of Table 2 follow from its scores per framework."""
    printed = published("cli_tool_bench_overall")
    names = [str(name) for name in printed if name not in ("model", "agent")]
    found = tool_bench.averages(printed[printed["agent"] != "average"], names)
    expected = printed[printed["agent"] == "average"].set_index("model")[names]
    ours = found.xs(tool_bench.AVERAGE, level="agent").reindex(expected.index)
    np.testing.assert_allclose(ours, expected, atol=0.01)
    bottom = [
        [73.71, 54.46, 20.34, 34.27, 25.75],
        [80.14, 61.34, 25.79, 41.11, 31.94],
        [76.93, 57.90, 23.07, 37.69, 28.85],
    ]
    np.testing.assert_allclose(
        found.xs(tool_bench.AVERAGE).loc[[*AGENTS, tool_bench.AVERAGE]], bottom, atol=0.01
    )


def test_averages_over_different_pairs_are_not_compared() -> None:
    cells = pd.DataFrame({"model": ["m", "m", "n"], "agent": ["a", "b", "a"], "exec": [0.2, 0.4, 1.0]})
    found = tool_bench.averages(cells, ["exec"])["exec"]
    assert found["m", tool_bench.AVERAGE] == pytest.approx(0.3)
    assert found[tool_bench.AVERAGE, "a"] == 0.6
    assert found[[("n", ""), ("", "b"), ("", "")]].isna().all()


def test_overhead_is_over_valid_trials_and_says_what_has_no_price() -> None:
    rows = table(
        tool("easy-1", cost=0.2, turns=2, input_tokens=10, output_tokens=1),
        tool("easy-2", cost=None, turns=6, input_tokens=30, output_tokens=2),
        trial("easy-3", None, cost=9.0, turns=99),
    )
    found = line(tool_bench.overhead(rows), "a")
    assert found[["trials", "unpriced"]].tolist() == [2, 1]
    assert found[["steps_mean", "steps_min", "steps_max"]].tolist() == [4, 2, 6]
    assert found[["prompt_mean", "completion_max", "usd_mean"]].tolist() == [20, 2, 0.2]


def test_overhead_of_built_tools_leaves_the_others_out() -> None:
    rows = table(
        tool("easy-1", turns=2),
        tool("easy-2", turns=6) | {"build": 0.0},
        tool("easy-1", cell="b", turns=9) | {"build": 0.0},
    )
    found = tool_bench.overhead(rows, built=True)
    assert line(found, "a")[["trials", "steps_mean", "steps_max"]].tolist() == [1, 2, 2]
    assert found.index.tolist() == ["a"]


def test_the_published_runtimes_relative_to_the_reference() -> None:
    """Table 4 has seven models on common repositories, in milliseconds."""
    printed = published("cli_tool_bench_runtime")
    models = printed.iloc[1:]
    sides: list[dict[str, Any]] = [
        {
            "cell": row["source"],
            "runtime_candidate": row["tool_runtime_ms"] / 1000,
            "runtime_reference": 0.27037,
        }
        for row in models.to_dict("records")
    ]
    found = tool_bench.runtimes(table(*(tool("easy-1", **side) for side in sides)))
    np.testing.assert_allclose(
        found["relative"].loc[models["source"]], models["relative_runtime"], atol=0.005
    )


def test_runtimes_are_compared_on_tasks_that_every_cell_finished() -> None:
    def took(cell: str, task: str, seconds: float) -> dict[str, Any]:
        return tool(task, cell=cell, runtime_reference=1.0, runtime_candidate=seconds)

    common = (took("a", "easy-1", 0.5), took("b", "easy-1", 2.0))
    apart = (took("a", "easy-2", 9.0), took("b", "easy-3", 1.0))
    found = tool_bench.runtimes(table(*common, *apart, tool("easy-1", cell="c")))
    assert found["relative"].to_dict() == {"a": 0.5, "b": 2.0}
    assert found["tasks"].tolist() == [1, 1]
    nothing = tool_bench.runtimes(table(*apart))
    assert nothing["tasks"].tolist() == [0, 0]
    assert nothing["relative"].isna().all()


def test_a_score_by_language_is_over_planned_tasks() -> None:
    rows = table(tool("easy-1"), tool("easy-2", 0.0), tool("easy-3") | {"language": "go"})
    found = tool_bench.by(rows, "mean", "language", "exec")
    assert line(found, "a").to_dict() == {"go": 1.0, "python": 0.5}


def test_composition_by_hand() -> None:
    """Cells share a task; a reference that no trial has seen is counted and has no lines."""
    rows = table(
        tool("easy-1", category="web", reference_lines=100.0),
        tool("easy-1", category="web", reference_lines=100.0, cell="b"),
        tool("hard-1", category="web", reference_lines=5000.0) | {"language": "go"},
        trial("hard-2", None, category="text", language="go"),
    )
    found = tool_bench.composition(rows)
    assert found["tasks"].to_dict() == {
        ("tier", "easy"): 1, ("tier", "hard"): 2, ("language", "go"): 2, ("language", "python"): 1,
        ("category", "text"): 1, ("category", "web"): 2,
    }  # fmt: skip
    assert line(found, ("category", "web")).tolist() == [2, 2, 2550.0]
    assert line(found, ("tier", "hard"))[["references", "lines"]].tolist() == [1, 5000.0]
    assert np.isnan(found["lines"]["category", "text"])
    assert line(tool_bench.by(rows, "mean", "category", "exec"), "a").tolist() == [0.0, 1.0]


def test_a_table_without_categories_has_none_in_its_composition() -> None:
    assert set(tool_bench.composition(table(tool("easy-1"))).index) == {
        ("tier", "easy"),
        ("language", "python"),
    }


@LAW
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(("easy", "hard"))), min_size=1, max_size=9))
def test_each_dimension_has_every_task_once(tasks: list[tuple[str, str]]) -> None:
    rows = table(*(tool(f"{tier}-{n}", category=domain) for n, (domain, tier) in enumerate(tasks)))
    assert set(tool_bench.composition(rows)["tasks"].groupby("dimension").sum()) == {len(tasks)}


def test_draws_observe_the_scores_of_the_cells() -> None:
    rows = table(
        tool("easy-1"), tool("easy-2", 0.0), tool("easy-1", 0.0, cell="b"), tool("easy-2", 0.0, cell="b")
    )
    drawn = tool_bench.draws(rows, SCORING)
    assert (drawn.cells, drawn.datasets) == (("a", "b"), ("d", "d"))
    assert drawn.observed["exec"].tolist() == [0.5, 0.0]
    assert drawn.drawn["exec"].shape == (SCORING.resamples, 2)
    (pair,) = pairwise(drawn, "exec").to_dict("records")
    assert (pair["left"], pair["lead"]) == ("a", 0.5)


def test_the_lines_of_a_reference_are_known_to_cells_that_never_ran_its_task() -> None:
    rows = table(tool("easy-1", reference_lines=700.0), trial("easy-1", None, cell="b", language="python"))
    assert tool_bench.task_scores(rows, "mean")["reference_lines"].tolist() == [700.0, 700.0]


def test_loess_keeps_a_line_as_it_is() -> None:
    x = np.array([1.0, 2, 4, 8, 16, 32])
    np.testing.assert_allclose(tool_bench.loess(x, 3 - 2 * x, [1.5, 20, 32]), [0, -37, -61], atol=1e-12)


def test_loess_is_a_weighted_line_at_each_place() -> None:
    rng = np.random.default_rng(7)
    x, y = np.sort(rng.uniform(0, 10, 30)), rng.normal(size=30)
    for at in (0.0, 3.3, 9.9):
        distance = np.abs(x - at)
        weights = (1 - np.minimum(distance / np.sort(distance)[19], 1) ** 3) ** 3  # 20 of 30 points
        expected = np.polyval(np.polyfit(x, y, 1, w=np.sqrt(weights)), at)
        assert tool_bench.loess(x, y, [at])[0] == pytest.approx(expected)


def test_loess_of_points_above_each_other_is_their_mean() -> None:
    """Every cell has a point for each task, so many points share an x, and there may be few tasks."""
    assert tool_bench.loess([5, 5, 5], [0, 0.5, 1], [5, 6]).tolist() == [0.5, 0.5]
    assert tool_bench.loess([1, 1, 2, 2], [0, 1, 1, 1], [1, 1.5, 2]) == pytest.approx([0.5, 0.75, 1.0])
    with pytest.raises(ValueError, match="1 points do not make a curve"):
        tool_bench.loess([1], [1], [1])


def test_quadrants_are_divided_by_the_means_of_all_trials() -> None:
    rows = table(
        tool("easy-1", 1.0, tokens=100),
        tool("easy-2", 0.8, tokens=100),
        tool("easy-1", 0.0, tokens=1000, cell="b"),
        tool("easy-2", 1.0, tokens=800, cell="b"),
        trial("easy-3", None, tokens=10**9, cell="b"),
    )
    found = tool_bench.quadrants(tool_bench.tokens_and_score(rows, "exact_match"))
    assert found["quadrant"].to_dict() == {"a": "cheap and good", "b": "dear and poor"}
    assert line(found, "a")[["trials", "cheap and good"]].tolist() == [2, 1.0]
    assert line(found, "b")[["trials", "tokens", "dear and good", "dear and poor"]].tolist() == [
        2,
        900,
        0.5,
        0.5,
    ]


def test_who_is_as_dear_and_as_good_as_the_mean_is_cheap_and_good() -> None:
    found = tool_bench.quadrants(tool_bench.tokens_and_score(table(tool("easy-1"), tool("easy-2")), "exec"))
    assert line(found, "a")[["quadrant", "cheap and good", "dear and poor"]].tolist() == [
        "cheap and good",
        1.0,
        0.0,
    ]


def test_a_reference_is_counted_once_however_many_trials_its_task_has() -> None:
    rows = table(
        tool("easy-1", workspace_files=3, reference_files=20.0),
        tool("easy-2", workspace_files=1, reference_files=2.0),
        tool("easy-1", workspace_files=None, reference_files=20.0, cell="b"),
        trial("easy-2", None, workspace_files=77, cell="b"),
    )
    found = {name: files.tolist() for name, files in tool_bench.sizes(rows, "files").items()}
    assert found == {None: [2.0, 20.0], "a": [1.0, 3.0], "b": []}
    assert not sum(len(depths) for depths in tool_bench.sizes(rows, "depth").values()), "nobody measured them"


def test_agreement_is_over_trials_that_have_such_cases() -> None:
    rows = table(
        tool("easy-1", positive_agreement=1.0, negative_agreement=0.5), tool("easy-2", positive_agreement=0.5)
    )
    found = line(tool_bench.robustness(rows), "a")
    assert found.to_dict() == {"positive": 0.75, "negative": 0.5, "positive_trials": 2, "negative_trials": 1}


def test_the_funnel_counts_cases_of_valid_trials() -> None:
    ended = {f"ended_{phase}": float(at) for at, phase in enumerate(Phase)}
    rows = table(tool("easy-1", **ended), tool("easy-2", **ended), trial("easy-3", None, **ended))
    assert line(tool_bench.funnel(rows), "a").to_dict() == {phase: 2.0 * at for at, phase in enumerate(Phase)}


def test_quarantined_cases_are_those_of_the_task_whoever_tried_it() -> None:
    rows = table(
        tool("easy-1", unstable_cases=2.0), tool("easy-1", cell="b", unstable_cases=None),
        tool("easy-2", unstable_cases=0.0),
    )  # fmt: skip
    assert tool_bench.unstable(rows) == {"easy-1": 2}
    assert tool_bench.unstable(table(tool("easy-1"))) == {}
