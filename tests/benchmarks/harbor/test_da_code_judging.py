"""How results of DA-Code tasks are judged: every figure below is computed by hand."""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from runner.benchmarks.harbor.da_code.inside import (
    databases,
    metrics,
    predictions,
    tables,
)
from runner.benchmarks.harbor.da_code.inside.answers import compare_answers
from runner.benchmarks.harbor.da_code.inside.outputs import LEAST_LIMIT, Unusable, read_bytes, read_json
from runner.benchmarks.harbor.da_code.inside.tables import read_table

NAN, INF = float("nan"), float("inf")


def table(text: str, most_rows: int | None = None) -> tables.Table:
    return read_table(text.encode(), "result.csv", most_rows)


# Tables


@pytest.mark.parametrize(
    ("result", "options", "score"),
    [
        ("a,b\n1,x\n2,y\n", {}, 1.0),
        ("other,names\n1,x\n2,y\n", {}, 1.0),  # columns are found by their values
        ("more,b,a\nq,x,1.0\nq,y,2\n", {}, 1.0),
        ("a,b\n1.0009,x\n2,y\n", {}, 1.0),  # within 0.001
        ("a,b\n1.0011,x\n2,y\n", {}, 0.0),
        ("a,b\n2,y\n1,x\n", {}, 0.0),
        ("a,b\n2,y\n1,x\n", {"ignore_order": True}, 1.0),
        ("a,b\n1,x\n3,y\n", {"partly": True}, 0.5),
        ("a,b\n1,x\n3,y\n", {"chosen": [1]}, 1.0),
        ("a,b\n1,x\n3,y\n", {"chosen": [0]}, 0.0),
        ("a,b\n1,x\n", {}, 0.0),
        ("a,b\n1,x\n2,y\n3,z\n", {}, 0.0),
        ("a,b\n1,\n2,y\n", {}, 0.0),
    ],
)
def test_a_table_is_right_if_each_gold_column_is_found(
    result: str, options: dict[str, Any], score: float
) -> None:
    gold = table("a,b\n1,x\n2,y\n")
    assert tables.compare(table(result, gold.rows), gold, **options) == score


def test_a_missing_value_equals_another_whatever_it_is_called() -> None:
    gold = table("a,b\n1,\n,y\n")
    assert tables.compare(table("a,b\n1.0,NaN\nnull,y\n"), gold) == 1
    assert tables.compare(table("a,b\n1.0,NaN\n0,y\n"), gold) == 0


def test_truth_values_are_numbers_only_where_a_whole_column_has_them() -> None:
    assert tables.compare(table("a\n1\n0\n"), table("a\nTrue\nFalse\n")) == 1
    assert table("a\nTrue\nx\n").columns == (("True", "x"),)


@pytest.mark.parametrize(
    "content",
    [b"", b"a,b\n1,2,3\n", b"a\n\xff\xfe\n", ("a," * 10_001).encode(), b'a\n"' + b"x\n" * 9 + b"\0"],
    ids=["empty", "too many fields", "not text", "too many columns", "a quote that never ends"],
)
def test_what_is_no_table_is_unusable_or_another_table(content: bytes) -> None:
    gold = table("a\n1\n")
    with contextlib.suppress(Unusable):
        assert tables.compare(read_table(content, "result.csv", gold.rows), gold) == 0


def test_a_million_rows_are_not_read_for_a_gold_table_of_one() -> None:
    assert table("a\n" + "1\n" * 1_000_000, most_rows=1).rows == 2


def test_numbers_that_are_not_finite_are_no_wildcards() -> None:
    gold = table("a\n1\n2\n")
    for result in ("a\nnan\nnan\n", "a\ninf\ninf\n", "a\n1e999\n2\n"):
        assert tables.compare(table(result), gold) == 0


def test_a_long_text_of_digits_is_read_at_once() -> None:
    started = time.monotonic()
    assert table("a\n" + "9" * 1_000_000 + "x\n").rows == 1
    assert time.monotonic() - started < 5


# Files that agents leave


def test_links_pipes_and_huge_files_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold" / "result.csv").write_text("secret")
    root = tmp_path / "work"
    root.mkdir()
    (root / "result.csv").symlink_to(tmp_path / "gold" / "result.csv")
    (root / "dabench").symlink_to(tmp_path / "gold")
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()
    with (root / "huge").open("wb") as huge:
        huge.truncate(LEAST_LIMIT + 1)
    for name in ("result.csv", "dabench/result.csv", "pipe", "folder", "huge", "missing", "no\0name"):
        with pytest.raises((Unusable, ValueError)):
            read_bytes(root, name, LEAST_LIMIT)


def test_json_that_nests_for_ever_is_unusable() -> None:
    with pytest.raises(Unusable):
        read_json(b"[" * 1_000_000, "answer.json")
    with pytest.raises(Unusable):
        read_json(b'{"a": ' + b"9" * 10_000 + b"}", "answer.json")


# Answers


@pytest.mark.parametrize(
    ("answer", "options", "score"),
    [
        ({"Top": ["x", "y"], "n": [1.5]}, {}, 1.0),
        ({" top ": [" X", "Y "], "N": 1.509}, {}, 1.0),
        ({"top": ["x", "y"], "n": 1.511}, {}, 0.0),
        ({"top": ["y", "x"], "n": 1.5}, {}, 0.0),
        ({"top": ["y", "x"], "n": 1.5}, {"ignore_order": True}, 1.0),
        ({"top": ["x", "y"], "n": NAN}, {}, 0.0),
        ({"top": ["x", "y"], "n": 10**400}, {}, 0.0),
        ({"top": ["x", "y"], "n": True}, {}, 0.0),
        ({"top": ["x", "y"], "n": "1.5"}, {}, 0.0),
        ({"top": ["x", "y"]}, {"partly": True}, 0.5),
        ({"top": ["x"], "n": 1.5}, {}, 0.0),
        ({}, {}, 0.0),
        (["top"], {}, 0.0),
        (None, {}, 0.0),
    ],
)
def test_an_answer_is_right_if_each_key_is(answer: Any, options: dict[str, Any], score: float) -> None:
    assert compare_answers(answer, [{"top": ["x", "y"], "n": [1.5]}], **options) == score


def test_one_of_several_answers_is_enough_and_whole_numbers_are_exact() -> None:
    golds: list[dict[str, Any]] = [{"answer": ["10k"]}, {"answer": [7]}]
    assert [compare_answers({"answer": value}, golds) for value in ("10K", 7.0, 7.001)] == [1, 1, 0]
    pairs = {"pairs": [["a", 1], ["b", 2]]}
    assert compare_answers({"pairs": [["b", 2], ["a", 1]]}, [pairs], ignore_order=True) == 1


# Databases


def database(file: Path, *statements: str) -> Path:
    with sqlite3.connect(file) as opened:
        for statement in statements:
            opened.execute(statement)
    opened.close()
    return file


GOLD = (
    "CREATE TABLE t (a INTEGER, b TEXT)",
    "INSERT INTO t VALUES (1, 'x'), (2, NULL)",
    "CREATE TABLE u (c)",
)


def test_the_worst_table_counts(tmp_path: Path) -> None:
    gold = database(tmp_path / "gold.db", *GOLD)
    same = database(tmp_path / "same.db", *GOLD)
    other = database(tmp_path / "other.db", *GOLD, "UPDATE t SET a = 3 WHERE a = 2")
    turned = database(tmp_path / "turned.db", GOLD[0], "INSERT INTO t VALUES (2, NULL), (1, 'x')")
    assert databases.compare_databases(same, gold) == 1
    assert databases.compare_databases(other, gold) == 0
    assert databases.compare_databases(other, gold, partly=True) == 0.5
    assert databases.compare_databases(other, gold, ["t"], [[1]]) == 1
    assert databases.compare_databases(turned, gold, ["t"]) == 0
    assert databases.compare_databases(turned, gold, ["t"], (), [True]) == 1
    with pytest.raises(Unusable, match="no such table: u"):
        databases.compare_databases(turned, gold)


def test_a_view_that_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "SECONDS", 0.2)
    endless = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) AS a, 1 AS b FROM n"
    )
    hostile = database(tmp_path / "view.db", f"CREATE VIEW t AS {endless}")
    with pytest.raises(Unusable, match="interrupted"):
        databases.read_table(hostile, "t", 2)


@pytest.mark.parametrize("blob", ["zeroblob(4000000)", "zeroblob(900000000)"])
def test_a_small_database_does_not_fill_the_memory(tmp_path: Path, blob: str) -> None:
    """A column that is computed, and that the file does not hold."""
    hostile = database(
        tmp_path / "large.db",
        f"CREATE TABLE t (a, b AS ({blob}))",
        "INSERT INTO t VALUES (1), (2), (3), (4), (5)",
    )
    with pytest.raises(Unusable, match=r"characters|too big"):
        databases.read_table(hostile, "t", 5)


def test_a_file_that_is_no_database_is_unusable(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database, but long enough to look like one" * 100)
    with pytest.raises(Unusable):
        databases.read_table(tmp_path / "text.db", "t")


# Predictions


def test_metrics_of_labels() -> None:
    gold, own = ["a", "a", "a", "b"], ["a", "a", "b", "b"]
    assert metrics.accuracy(gold, own) == 0.75
    # a: precision 1, recall 2/3, F1 4/5.  b: precision 1/2, recall 1, F1 2/3.
    assert metrics.f1(gold, own) == pytest.approx((3 * 4 / 5 + 2 / 3) / 4)
    assert metrics.f1(gold, own, "macro") == pytest.approx((4 / 5 + 2 / 3) / 2)
    assert metrics.f1(gold, own, "micro") == 0.75
    assert metrics.f1([1.0, 1.0, 0.0], [1.0, 0.0, 0.0], "binary") == pytest.approx(2 / 3)
    assert metrics.f1([0.0], [0.0], "binary") == 0


def test_metrics_of_numbers() -> None:
    gold, own = [1.0, 2.0, 3.0, 6.0], [1.0, 2.0, 5.0, 3.0]
    assert metrics.mae(gold, own) == 5 / 4
    assert metrics.mse(gold, own) == 13 / 4
    assert metrics.rmse(gold, own) == pytest.approx(math.sqrt(13) / 2)
    assert metrics.medae(gold, own) == 1.0  # of 0, 0, 2, 3
    assert metrics.r2(gold, own) == pytest.approx(1 - 13 / 14)  # the mean is 3: 4 + 1 + 0 + 9
    assert metrics.smape(gold, own) == pytest.approx(100 * (2 / 4 + 3 / 4.5) / 4)
    assert metrics.smape([0.0], [0.0]) == 0
    assert metrics.rmsle([math.e - 1, 0.0], [0.0, -5.0]) == pytest.approx(math.sqrt(1 / 2))


def test_the_area_under_the_curve_counts_ties_as_halves() -> None:
    # Positives 0.9 and 0.5 against negatives 0.5 and 0.1: three pairs won, one tied.
    assert metrics.roc_auc([1, 1, 0, 0], [0.9, 0.5, 0.5, 0.1]) == 3.5 / 4
    assert metrics.roc_auc([0, 1], [0.9, 0.1]) == 0
    with pytest.raises(ValueError, match="one class"):
        metrics.roc_auc([1, 1], [0.1, 0.2])


def test_kappa_weighs_by_the_square_of_the_distance() -> None:
    # Observed (1 + 1) / 4; expected, of (1, 2, 3, 3) against (2, 2, 3, 2): (3 + 4 + 0 + 1 + 6 + 0) / 16.
    assert metrics.weighted_kappa([1, 2, 3, 3], [2, 2, 3, 2]) == pytest.approx(1 - (2 / 4) / (14 / 16))
    assert metrics.weighted_kappa([1, 2], [1, 2]) == 1
    with pytest.raises(ValueError, match="outside the range"):
        metrics.weighted_kappa([1, 2], [1, 3])


def test_logarithmic_losses_are_halves_to_base_two() -> None:
    gold = [(1.0, 0.0), (1.0, 0.0), (0.0, 1.0)]
    own = [(0.5, 0.5), (0.25, 0.75), (0.0, 4.0)]  # the last row is scaled to 0 and 1
    assert metrics.logloss_total(gold, own) == pytest.approx((1 + 2 + 0) / 3 / 2)
    assert metrics.logloss_class(gold, own) == pytest.approx(((1 + 2) / 2 + 0) / 2)
    with pytest.raises(ValueError, match="distribution"):
        metrics.logloss_total(gold, [(0.0, 0.0), (1.0, 0.0), (1.0, 0.0)])


@pytest.mark.parametrize(
    ("value", "metric", "bounds", "score"),
    [
        (0.7, "f1", (0.6, 0.8), 0.5),
        (0.6, "f1", (0.6, 0.8), 0.0),
        (0.9, "f1", (0.6, 0.8), 1.0),
        (-3.0, "r2", (0.5, 0.9), 0.0),
        (2.5, "mae", (1.0, 3.0), 0.25),
        (2.5, "mae", (3.0, 1.0), 0.25),  # DA-Code names the bounds of an error in either order
        (0.5, "mae", (1.0, 3.0), 1.0),
        (NAN, "f1", (0.6, 0.8), 0.0),
        (INF, "f1", (0.6, 0.8), 0.0),
        (-INF, "mae", (1.0, 3.0), 0.0),
    ],
)
def test_a_metric_is_placed_between_its_bounds(
    value: float, metric: str, bounds: tuple[float, float], score: float
) -> None:
    assert metrics.normalised(value, metric, bounds) == pytest.approx(score)


def test_a_predicted_column_is_matched_by_key_or_by_order() -> None:
    gold = table("id,Target\n1,a\n2,b\n3,b\n4,a\n")
    assert predictions.target_name(gold, None) == "Target"
    for result, score in (
        ("id,target\n4,A\n3,b\n2,b\n1,a\n", 1.0),
        ("prediction\na\nb\nb\nb\n", 0.75),
        ("index,Target\n9,a\n8,b\n7,b\n6,b\n", 0.75),
    ):
        assert predictions.score_column(table(result), gold, "Target", "accuracy") == score
    for result, why in (
        ("Target\na\n", "rows"),
        ("id,Target\n1,a\n2,b\n3,b\n3,a\n", "not those of the truth"),
        ("x,y\na,b\na,b\nb,a\nb,a\n", "no column Target"),
    ):
        with pytest.raises(Unusable, match=why):
            predictions.score_column(table(result), gold, "Target", "accuracy")


def test_a_truth_of_several_columns_needs_a_name() -> None:
    gold = table("size,result,price\n1,2,3\n4,5,6\n")
    assert predictions.target_name(gold, "PRICE") == "price"
    assert predictions.target_name(gold, None) == "result"
    with pytest.raises(predictions.Ambiguous, match="size, price"):
        predictions.target_name(table("size,price\n1,2\n"), None)


def test_a_submission_has_the_rows_and_columns_of_the_truth() -> None:
    gold = table("id,p,q\n1,10,1\n2,20,2\n3,30,3\n")
    assert predictions.score_submission(table("q,id,p\n3,3,30\n1,1,10\n2,2,26\n"), gold, "mae") == 1.0
    for result, why in (
        ("id,p\n1,10\n2,20\n3,30\n", "columns"),
        ("id,p,q\n1,10,1\n2,20,2\n", "rows"),
        ("id,p,q\n1,10,1\n2,20,2\n4,30,3\n", "not those of the truth"),
        ("id,p,q\n1,10,1\n2,nan,2\n3,30,3\n", "not finite"),
        ("id,p,q\n1,10,1\n2,inf,2\n3,30,3\n", "not finite"),
        ("id,p,q\n1,10,1\n2,text,2\n3,30,3\n", "not finite"),
    ):
        with pytest.raises(Unusable, match=why):
            predictions.score_submission(table(result), gold, "mae")


def test_predictions_beyond_all_bounds_are_unusable_and_no_crash() -> None:
    gold = table("id,p\n1,1\n2,2\n3,3\n")
    huge = table("id,p\n1,1e308\n2,-1e308\n3,3\n")
    for metric in ("mse", "rmse", "r2"):
        with pytest.raises(Unusable):
            predictions.score_submission(huge, gold, metric)
