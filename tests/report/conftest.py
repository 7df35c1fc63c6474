"""A sweep's report without its records on disk, and a browser to read it in."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome

from runner.records import PlannedRow, Scoring, TrialRecord
from runner.report.findings import Findings, find
from runner.report.page import write_report
from runner.report.projections import what_ran
from runner.report.trials_table import trials_table
from runner.sweeps.sweep_file import SweepFile
from tests.report.plans import SCORING, sweep_of_four
from tests.support.browser import PROGRAMS, browser
from tests.support.records_factory import NOON

Report = Callable[..., Path]
OpenPage = Callable[..., Chrome]
PHONE = 360
"""Width of a phone, in pixels."""


def findings(
    folder: Path, planned: list[PlannedRow], records: dict[str, TrialRecord], scoring: Scoring = SCORING
) -> Findings:
    """Return the findings of these trials."""
    plan = SweepFile(
        schema_version=1,
        name="quickstart",
        created=NOON,
        planned=tuple(planned),
        scoring=scoring,
        versions={"assay": "0.1.0"},
    )
    ran = {"versions": plan.versions, **what_ran(records.values())}
    return find(plan, folder, trials_table(planned, records), ran)


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """Writes the report of planned rows and records; returns the page."""
    return lambda *given: write_report(findings(tmp_path, *given))


@pytest.fixture(scope="session")
def four(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a sweep with one trial of each kind of trouble; for tests that only look."""
    return write_report(findings(tmp_path_factory.mktemp("four"), *sweep_of_four()))


@pytest.fixture(scope="session")
def chrome() -> Iterator[Chrome]:
    if not all(map(shutil.which, PROGRAMS)):
        pytest.fail("no Chromium here: make browser")
    with browser(1200, 900) as started:
        yield started


def console(page: Chrome) -> list[dict[str, Any]]:
    """Return the log since it was last read: errors of scripts, violations of the page's policy."""
    lines: list[dict[str, Any]] = page.get_log("browser")  # type: ignore[no-untyped-call]
    return lines


@pytest.fixture
def open_page(chrome: Chrome) -> Iterator[OpenPage]:
    """Open a page in a window of this width, with a medium and a colour scheme."""

    def show(page: Path, width: int = 1200, media: str = "screen", scheme: str = "light") -> Chrome:
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == PHONE}
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
        chrome.get(page.as_uri())
        return chrome

    yield show
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {})
    console(chrome)  # reading empties it for the next test
