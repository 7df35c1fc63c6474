"""De-identification of prompts."""

from __future__ import annotations

import pytest

from runner.benchmarks.cli_tool_bench.construction.scrubbing import REMOVED, Brand, changes

BRAND = Brand.of(
    "rowline",
    ["@acme/csv-parser", "Ada Example"],
    ["ada@acme.dev"],
    ["https://code.acme.dev/acme/csv-parser"],
)


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("csv-parser reads", "rowline reads"),
        ("CSV_Parser and csvparser", "rowline and rowline"),
        ("by Ada Example <ada@acme.dev>", f"by rowline <{REMOVED}>"),
        ("see https://code.acme.dev/acme/csv-parser#x for more", f"see {REMOVED} for more"),
        ("www.acme.dev/x", REMOVED),
        ("mail to someone@else.org", f"mail to {REMOVED}"),
        ("@acme/csv-parser", "@rowline/rowline"),
        ("a csv parser", "a rowline"),
    ],
)
def test_what_identifies_a_tool_is_scrubbed(text: str, scrubbed: str) -> None:
    found = BRAND.scrub(text)
    assert BRAND.find(found) == []
    if "@acme/" not in text:
        assert found == scrubbed


@pytest.mark.parametrize(
    "text",
    [
        "mycsv-parsers",
        "csv files and a parser",
        "https://site.example/a?b=1",
        "me@mail.example",
        "http://localhost:8080/x",
        "e-mail @home",
        "acmecorp",
    ],
)
def test_ordinary_text_and_reserved_names_stay(text: str) -> None:
    assert BRAND.scrub(text) == text
    assert BRAND.find(text) == []


def test_find_names_every_place_whatever_its_case() -> None:
    assert BRAND.find("CSV-Parser, then ADA EXAMPLE") == ["CSV-Parser", "ADA EXAMPLE"]


def test_short_words_and_the_new_name_are_no_brand() -> None:
    brand = Brand.of("rowline", ["Li", "rowline", ""], [""], [""])
    assert brand.words == ()
    assert brand.find("Li wrote rowline") == []
    assert brand.scrub("Li wrote rowline") == "Li wrote rowline"


def test_scrubbing_twice_changes_nothing_more() -> None:
    once = BRAND.scrub("csv-parser by Ada Example, https://code.acme.dev/acme/csv-parser")
    assert BRAND.scrub(once) == once


def test_people_see_what_was_changed() -> None:
    diff = changes("help", "usage: csv-parser\nplain", "usage: rowline\nplain")
    assert "-usage: csv-parser" in diff
    assert "+usage: rowline" in diff
    assert changes("help", "same", "same") == ""
