"""Cleaning of a program's output, as a terminal would show it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runner.benchmarks.project_setup.agent.terminal_output import WIDTH, clean

ESCAPES = (
    *(
        b"\x1b[",
        b"\x1b]",
        b"\x1b",
        b"\x9b",
        b"\xc2\x9b",
        b"\x1b\\",
        b"\x07",
        b"\xff",
        b"\xe2\x80",
        b"9999",
        b";",
    ),
    *(
        b"A",
        b"B",
        b"C",
        b"D",
        b"E",
        b"F",
        b"G",
        b"H",
        b"J",
        b"K",
        b"m",
        b"s",
        b"u",
        b"1",
        b"2",
        b"word ",
        b"\t",
        b"\0",
    ),
    *(b"\r", b"\b", b"\n", b"\v"),
)
hostile = st.lists(st.sampled_from(ESCAPES) | st.binary(max_size=4), max_size=60).map(b"".join)


@given(hostile)
@example(b"\x1b[" + b"9" * 5000 + b"C!")
@example(b"\x1b[9999C" * 1000 + b"!")
def test_whatever_is_printed_plain_lines_are_left(raw: bytes) -> None:
    text = clean(raw)
    assert all(unicodedata.category(character) != "Cc" for character in text if character not in "\n\t")
    assert len(text) <= (len(raw) + WIDTH) * (text.count("\n") + 1)


@given(hostile)
def test_what_is_clean_stays_as_it_is(raw: bytes) -> None:
    text = clean(raw)
    assert clean(text.encode()) == text


@given(st.text(st.characters(exclude_categories=("Cc", "Cs", "Z")), max_size=50))
def test_plain_text_is_not_touched(text: str) -> None:
    assert clean(text.encode()) == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x1b[1;31mError\x1b[0m: no", "Error: no"),
        (b"one\r\ntwo\n\n\nfive\n", "one\ntwo\n\n\nfive"),
        (b" 10%\r 50%\r100%\ndone", "100%\ndone"),
        (b"Reading... 5%\rReading... Done\x1b[K\n", "Reading... Done"),
        (b"long line\rshort\x1b[K", "short"),
        (b"long line\r\x1b[2Kshort", "short"),
        (b"a\x1b[2Cb\x1b[3Gc", "a cb"),
        (b"\x1b]0;title\x07text \x1b]8;;http://docs.example\x1b\\link\x1b]8;;\x1b\\", "text link"),
        (
            b"layer 1: 10%\nlayer 2: 10%\n\x1b[2A\x1b[Klayer 1: done\n\x1b[Klayer 2: done\n",
            "layer 1: done\nlayer 2: done",
        ),
        (b"\x1b[?25l|\b/\b-\b\\\bok\x1b[?25h", "ok"),
        (
            b"a\n\x1b7\x1b[50;0f\x1b[42mProgress: [ 20%]\x1b[49m\x1b8b\nc\n\x1b7\x1b[50;0f 40%\x1b8d",
            "a\nb\nc\nd",
        ),
        (b"kept \x1b[s\x1b[9;9Hlost\nnot lost", "kept\nnot lost"),
        (b"first\x1b[2J\x1b[Hsecond", "first\nsecond"),
        (b"above\nbelow\x1b[A\x1b[J", "above"),
        (b"\x1b(Bplain\x1b=\x1b>", "plain"),
        (b"gr\xc3\xbc\xc3\x9fe \xff \xe2\x82", "grüße � �"),
        (b"nul\0 bell\x07 del\x7f", "nul bell del"),
        (b"cut off\x1b[31", "cut off"),
        (b"cut off\x1b]0;ti", "cut off"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)
def test_colours_bars_and_titles_are_cleaned_away(raw: bytes, text: str) -> None:
    assert clean(raw) == text
