"""Tables and paragraphs at every width: none is wider than the terminal, and no essential column is lost."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from runner.terminal import escaping
from runner.terminal.tables import Column, paragraph, table

WIDTHS = st.sampled_from([40, 60, 80, 100, 120, 200])
NAMES = st.text(max_size=60)
FIGURES = st.floats(allow_nan=False, allow_infinity=False).map("{:.3g}".format)
COLUMNS = (
    Column("#"),
    Column("agent", is_name=True),
    Column("model", is_name=True),
    Column("AMS"),
    Column("tokens\n/pass", leaves=2),
    Column("turns", leaves=1),
)
ROW = st.tuples(FIGURES, NAMES, NAMES, FIGURES, FIGURES, FIGURES)
CELL = ("1", "mini_swe_agent", "claude-sonnet-4-6\n(scripted)", "0.956\n0.87-1.00", "10.3k", "4.6")


def longest(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


@settings(max_examples=150)
@given(width=WIDTHS, rows=st.lists(ROW, min_size=1, max_size=4), title=st.text(max_size=150))
def test_no_table_is_wider_than_the_terminal(width: int, rows: list[tuple[str, ...]], title: str) -> None:
    drawn = table(COLUMNS, rows, width, title)
    assert longest(drawn.text) <= width
    assert drawn.text.replace("\n", "").isprintable()
    for figure in (row[at] for row in rows for at in (0, 3)):
        assert figure in drawn.text, "a column that may not leave"


@settings(max_examples=150)
@given(width=WIDTHS, text=st.text(max_size=300))
def test_no_paragraph_is_wider_than_the_terminal(width: int, text: str) -> None:
    lines = paragraph(text, width)
    assert all(cell_len(line) <= width for line in lines)
    whole = "".join(escaping.one_line(text.lstrip()).split())
    assert "".join("".join(lines).split()) == whole


@pytest.mark.parametrize(
    ("width", "left_out", "lines"),
    [(120, (), 2), (50, (), 3), (49, ("turns",), 3), (43, ("tokens/pass", "turns"), 3)],
)
def test_columns_leave_in_their_order_and_names_wrap_at_their_joints(
    width: int, left_out: tuple[str, ...], lines: int
) -> None:
    drawn = table(COLUMNS, [CELL], width)
    assert drawn.left_out == left_out
    body = drawn.text.split("\n")[drawn.text.count("\n") + 1 - lines :]
    assert body[0].split()[0] == "1"
    assert "0.956" in body[0]
    assert "0.87-1.00" in body[1]


def test_a_row_that_does_not_fit_becomes_a_block_with_every_column() -> None:
    wide = ("1", "an_agent", "a-model\n(scripted)", "0.956\n0.87-1.00", "10.3k" * 6, "4.6")
    assert table((*COLUMNS[:4], Column("tokens\n/pass"), COLUMNS[5]), [wide], 40).text.split("\n") == [
        "1 an_agent · a-model (scripted)",
        "  AMS: 0.956 (0.87-1.00); tokens/pass:",
        "    10.3k10.3k10.3k10.3k10.3k10.3k;",
        "    turns: 4.6",
    ]


def test_the_width_is_that_of_the_terminal_unless_columns_says_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert escaping.width() == escaping.WIDTH, "no terminal here"
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((80, 24)))
    with open(os.devnull, "w") as stream:  # noqa: PTH123 - has a number, as a terminal has
        monkeypatch.setattr(sys, "stdout", stream)
        assert escaping.width() == 80
        for typed, width in (("132", 132), ("7", escaping.NARROWEST), ("0", 80), ("wide", 80)):
            monkeypatch.setenv("COLUMNS", typed)
            assert escaping.width() == width


def test_a_long_sentence_was_broken_in_its_words_by_the_terminal() -> None:
    text = "ConfigError: unknown agent 'codx'. Did you mean 'codex'?\n  Valid: claude_code, codex, oracle"
    assert escaping.wrapped(text, 40).split("\n") == [
        "ConfigError: unknown agent 'codx'. Did",
        "  you mean 'codex'?",
        "  Valid: claude_code, codex, oracle",
    ]
    command = "type python -m runner dataset.root=" + "x" * 40
    assert escaping.wrapped(command, 40).split("\n")[-1].endswith("x" * 40), (
        "a word is not broken: it is copied"
    )
