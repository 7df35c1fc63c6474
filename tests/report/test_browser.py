"""The report as a real browser shows it: sorting, a phone's width, paper, the dark, and what attacks come to."""

from __future__ import annotations

import base64
import itertools
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from runner.report.findings import Findings
from runner.report.page import write_report
from tests.report.conftest import PHONE, OpenPage, console, findings
from tests.report.test_page import hostile

pytestmark = pytest.mark.browser

CONTRAST = """
const style = getComputedStyle(document.documentElement);
const light = name => {
  const [r, g, b] = style.getPropertyValue(name).match(/\\w\\w/g).map(x => parseInt(x, 16) / 255)
    .map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
return arguments[0].map(([one, other]) => {
  const [a, b] = [light(one), light(other)].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
});
"""
"""Contrast of pairs of the page's colours, as WCAG 2 defines it."""


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a sweep in which all that others name is an attack."""
    return write_report(findings(tmp_path_factory.mktemp("attacked"), *hostile()))


def leaderboard(page: Chrome) -> WebElement:
    return page.find_element(By.CSS_SELECTOR, "#leaderboard table")


def column(page: Chrome, at: int) -> list[str]:
    """First lines of a column of the leaderboard."""
    cells = leaderboard(page).find_elements(By.CSS_SELECTOR, f"tbody tr > :nth-child({at})")
    return [cell.text.split("\n")[0] for cell in cells]


def test_pressing_a_head_sorts_by_it_and_again_the_other_way(open_page: OpenPage, four: Path) -> None:
    page = open_page(four)
    heads = leaderboard(page).find_elements(By.CSS_SELECTOR, "thead th")
    at = {head.text: n for n, head in enumerate(heads, 1)}

    def press(name: str) -> str | None:
        heads[at[name] - 1].find_element(By.TAG_NAME, "button").click()
        return heads[at[name] - 1].get_attribute("aria-sort")

    assert column(page, at["agent"]) == ["codex", "mini_swe_agent", "oracle (bound)", "nop (bound)"]
    assert press("AMS") == "descending"
    assert column(page, at["AMS"]) == ["0.875", "0.494", "0.400", "0.000"]
    assert press("AMS") == "ascending"
    assert column(page, at["AMS"]) == ["0.000", "0.400", "0.494", "0.875"]
    assert press("agent") == "ascending"
    assert heads[at["AMS"] - 1].get_attribute("aria-sort") is None
    assert column(page, at["agent"]) == ["codex", "mini_swe_agent", "nop (bound)", "oracle (bound)"]
    assert press("tokens/pass") == "descending"
    assert column(page, at["tokens/pass"]) == ["no pass", "7.5k", "5.62k", "0"]
    for _ in range(2):
        press("#")
        assert column(page, at["#"])[2:] == ["-", "-"]  # who has no rank comes last, whichever way


def test_the_keyboard_sorts_too(open_page: OpenPage, four: Path) -> None:
    page = open_page(four)
    button = leaderboard(page).find_element(By.CSS_SELECTOR, "thead th:nth-child(4) button")
    button.send_keys("\ue007")  # Enter
    assert column(page, 4)[0] == "0.875"


def test_no_script_fails_and_nothing_is_asked_of_anybody(open_page: OpenPage, four: Path) -> None:
    page = open_page(four)
    for button in page.find_elements(By.CSS_SELECTOR, "th button"):
        page.execute_script("arguments[0].click()", button)
    assert console(page) == []
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_attacks_come_to_nothing(open_page: OpenPage, attacked: Path) -> None:
    page = open_page(attacked)
    for button in page.find_elements(By.CSS_SELECTOR, "th button"):
        page.execute_script("arguments[0].click()", button)
    assert page.execute_script("return window.hacked") is None
    assert console(page) == []
    refused = page.execute_script(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.hacked = 6'}));"
        "return window.hacked"
    )
    assert refused is None, "the page's policy lets a foreign script run"


def test_on_a_phone_tables_scroll_in_their_boxes_and_the_page_does_not(
    open_page: OpenPage, four: Path, attacked: Path
) -> None:
    for page in (open_page(four, PHONE), open_page(attacked, PHONE)):
        wide = page.execute_script("return document.documentElement.scrollWidth")
        assert wide == PHONE
        boxes: Any = page.execute_script(
            "return [...document.querySelectorAll('.scroll')].map(box => [box.clientWidth, box.scrollWidth])"
        )
        assert max(outer for outer, _ in boxes) < PHONE
        assert any(inner > outer for outer, inner in boxes)


def test_on_paper_everything_is_within_the_page_on_white(open_page: OpenPage, four: Path) -> None:
    page = open_page(four, 1032, "print", "dark")  # A4 across without its margins, at 96 dots an inch
    assert not page.find_element(By.TAG_NAME, "nav").is_displayed()
    ends: Any = page.execute_script(
        "return [...document.querySelectorAll('table, svg, p')].map(x => Math.ceil(x.getBoundingClientRect().right))"
    )
    assert max(ends) <= 1032
    assert (
        page.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    )
    printed = page.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_read_and_pictures_follow_them(open_page: OpenPage, four: Path, scheme: str) -> None:
    page = open_page(four, scheme=scheme)
    pairs = list(itertools.product(["--ink", "--muted", "--accent"], ["--paper", "--soft"]))
    assert min(page.execute_script(CONTRAST, pairs)) >= 4.5
    inks = page.execute_script(
        "return [document.querySelector('#heat-map svg text'), document.body].map(x => getComputedStyle(x))"
        ".map(style => style.fill === 'rgb(0, 0, 0)' ? style.color : style.fill)"
    )
    assert inks[0] == inks[1]


def test_who_cannot_see_it_is_told(open_page: OpenPage, four: Path) -> None:
    page = open_page(four)
    wrong = page.execute_script(
        """return [
          ...[...document.querySelectorAll('table')].filter(table => !table.caption),
          ...document.querySelectorAll('thead th:not([scope=col]), tbody th:not([scope=row])'),
          ...[...document.querySelectorAll('tbody tr')].filter(row => row.cells[0].tagName !== 'TH'),
          ...[...document.querySelectorAll('svg')].filter(x => !x.closest('[role=img][aria-label]')),
          ...[...document.querySelectorAll('section')]
            .filter(x => !document.getElementById(x.getAttribute('aria-labelledby'))),
        ].map(x => x.outerHTML.slice(0, 200))"""
    )
    assert wrong == []
    assert page.execute_script("return document.documentElement.lang") == "en"


@pytest.mark.parametrize(("sweep", "prefix", "count"), [("tools", "tool-", 22), ("projects", "projects", 16)])
def test_sections_of_a_benchmark_are_whole_on_paper_and_a_phone_and_told(
    open_page: OpenPage, request: pytest.FixtureRequest, sweep: str, prefix: str, count: int
) -> None:
    found: Findings = request.getfixturevalue(sweep)
    written = write_report(found)
    page = open_page(written, 1032, "print")
    ends: Any = page.execute_script(
        f"return [...document.querySelectorAll('[id^={prefix}] :is(table, svg)')]"
        ".map(x => Math.ceil(x.getBoundingClientRect().right))"
    )
    assert len(ends) == count
    assert max(ends) <= 1032
    page = open_page(written, PHONE)
    assert page.execute_script("return document.documentElement.scrollWidth") == PHONE
    unlabelled = page.execute_script(
        "return [...document.querySelectorAll('svg')].filter(x => !x.closest('[role=img][aria-label]')).length"
    )
    assert unlabelled == 0
    assert console(page) == []
