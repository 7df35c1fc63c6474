"""How figures of DA-Code tasks are judged: from the arrays that they show, and from their settings."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from runner.benchmarks.harbor.da_code.inside import figures, record_figure
from runner.benchmarks.harbor.da_code.inside.arrays import Array, read_array
from runner.benchmarks.harbor.da_code.inside.outputs import Unusable

NAN, INF = float("nan"), float("inf")


def npy(
    values: list[float], shape: tuple[int, ...], descr: str = "<f8", *, by_columns: bool = False
) -> bytes:
    """Return the bytes of a file that numpy would save."""
    header = f"{{'descr': '{descr}', 'fortran_order': {by_columns}, 'shape': {shape}, }}".encode()
    header += b" " * (117 - len(header)) + b"\n"
    return (
        b"\x93NUMPY\x01\x00"
        + struct.pack("<H", len(header))
        + header
        + struct.pack(f"<{len(values)}d", *values)
    )


def test_arrays_are_read_as_numpy_saves_them() -> None:
    rows = ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))
    assert read_array(npy([1, 2, 3, 4, 5, 6], (2, 3)), "a").rows == rows
    assert read_array(npy([1, 4, 2, 5, 3, 6], (2, 3), by_columns=True), "a").rows == rows
    assert read_array(npy([1, 2], (2,)), "a").rows == ((1.0,), (2.0,))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        npy([1], (1,), "|O"),
        npy([1], (1,), "<U2"),
        npy([1], (2,)),
        npy([1], (1, 1, 1)),
        npy([], (10**9, 0)),
        npy([1], (-1,)),
        npy([1], ("1",)),  # type: ignore[arg-type]
        b"\x93NUMPY\x01\x00\x10\x00__import__('os')",
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b"(" * 100,
    ],
)
def test_arrays_of_anything_but_plain_numbers_are_unusable(content: bytes) -> None:
    with pytest.raises(Unusable):
        read_array(content, "result.npy")


@pytest.mark.parametrize(
    ("rows", "is_same"),
    [
        (((1.0, 2.0), (3.0, 4.0)), True),
        (((4.0, 3.0), (2.0, 1.0)), True),  # the order of lines, and of points on them, does not count
        (((1.00001, 2.0), (3.0, 4.0)), True),
        (((1.0001, 2.0), (3.0, 4.0)), False),
        (((1.0, 2.0), (1.0, 2.0)), False),  # the same line twice
        (((1.0, 2.0),), False),
        (((NAN, 2.0), (3.0, 4.0)), False),
        (((INF, INF), (INF, INF)), False),
    ],
)
def test_figures_show_the_same_numbers(rows: tuple[tuple[float, ...], ...], *, is_same: bool) -> None:
    assert figures.compare_data(Array(rows), Array(((1.0, 2.0), (3.0, 4.0)))) is is_same


def test_gaps_in_a_line_are_the_same_gaps() -> None:
    assert figures.compare_data(Array(((NAN, 1.0),)), Array(((1.0, NAN),)))


@pytest.mark.parametrize(
    ("key", "own", "gold", "agrees"),
    [
        ("figsize", [8, 6.0], [8.0, 6], True),
        ("figsize", [6, 8], [8, 6], False),
        ("type", "BAR", "bar", True),
        ("type", 3, "bar", False),
        ("graph_title", "Sales by Yeat", "Sales by Year", True),  # 2 × 12 of 26 characters: 92 percent
        ("graph_title", "Sales by year?!", "Sales by", False),  # 2 × 8 of 23: 70 percent
        ("graph_title", "", "Sales", False),
        ("graph_title", None, "", True),
        ("x_label", "x" * 100_000, "x", False),
        ("color", ["#ff0000"], ["#f50a00", "#00ff00"], True),  # distance of (10, 10, 0): 14.1
        ("color", ["#ff0000"], ["#f40b00"], False),  # 15.6
        ("color", [], ["#ff0000"], False),
        ("color", ["red"], ["#ff0000"], False),
        ("labels", ["B", "a"], ["a", "b"], True),
        ("labels", ["a"], ["a", "b"], False),
        ("labels", ["a", None], ["a", "b"], False),
        ("labels", "ab", ["a", "b"], False),
        ("unknown", "a", "a", False),
    ],
)
def test_a_setting_of_a_figure_agrees(key: str, own: Any, gold: Any, *, agrees: bool) -> None:
    assert figures.compare_setting(key, own, gold) is agrees


def test_only_the_asked_settings_of_a_figure_count() -> None:
    gold = {"type": "bar", "x_label": "Year"}
    assert figures.compare_settings({"type": "line", "x_label": "year"}, gold, ["x_label"])
    assert not figures.compare_settings({"type": "line", "x_label": "year"}, gold)
    assert not figures.compare_settings(["x_label"], gold, ["x_label"])


def test_a_recorded_figure_shows_its_bars_lines_points_and_shares() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    drawn = {}
    plots: dict[str, Callable[[Any], Any]] = {
        "bar": lambda axes: (axes.bar([0, 1], [3, 4], color="#ff0000"), axes.bar([0, 1], [5, 6])),
        "line": lambda axes: axes.plot([1, 2, 3], [7, 8, 9]),
        "scatter": lambda axes: axes.scatter([1, 2], [3, 4]),
        "pie": lambda axes: axes.pie([1, 3]),
    }
    for kind, draw in plots.items():
        figure, axes = pyplot.subplots()
        draw(axes)
        drawn[kind] = record_figure.figure_data(axes)
        pyplot.close(figure)
    assert all(found and found[0] == kind for kind, found in drawn.items())
    rows = {kind: found[1] for kind, found in drawn.items() if found}
    assert rows["bar"] == [[3, 4], [5, 6]]
    assert rows["line"] == [[7, 8, 9]]
    assert rows["scatter"] == [[1, 3], [2, 4]]
    assert rows["pie"] == [pytest.approx([0.25, 0.75])]
    assert drawn["bar"]
    assert "#ff0000" in drawn["bar"][2]
