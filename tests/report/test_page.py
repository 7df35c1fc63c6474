"""The report as a file: what is in it, what must never be, and that it is the same again."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

from runner.errors import ConfigError
from runner.jobs.report import Report as ReportJob
from runner.records import ErrorInfo, PlannedRow, Prices, PriceTier, Status, TrialRecord, Usage
from runner.report import figures
from runner.report.blocks import Picture, Table, Text
from runner.report.comparison import Side, compare, write_comparison
from runner.report.findings import Findings
from runner.report.page import chapters_of
from runner.report.projections import write_projections
from runner.report.rescoring import compare_scorings
from runner.report.sections_pairs import pairs
from runner.report.sections_sweep import what_ran
from runner.report.sections_trials import attempts, caches, sources, tokens_by_agent
from runner.report.tracked_runs import tracked_runs
from runner.report.trial_sources import read_source
from tests.report.conftest import Report, findings
from tests.report.plans import SCORING, TASKS, record, row, sweep_of_four, write_sweep

Trials = tuple[list[PlannedRow], dict[str, TrialRecord]]
HOSTILE = (
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 2">',
    "</td></table></style></title><svg onload='window.hacked = 3'>",
    "{{ 7 * 7 }}{% raw %}",
    "$\\frac{\\notmath$ 任务 \u202eevil\x1b[2J",
    "javascript:window.hacked=4",
)


class Elements(HTMLParser):
    """Every start tag of a page with its attributes, and all of its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._texts: list[str] = []
        self.feed(page)
        self.text = "".join(f"{text} " for text in self._texts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self._texts.append(data)

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


def hostile() -> Trials:
    """A sweep in which everything that others name is an attack."""
    agents = (HOSTILE[0], f"a · {HOSTILE[1]}", f"b · {HOSTILE[1]}")
    planned = [
        row(agent, f"easy-{task}", model=model, dataset=HOSTILE[2], budget=HOSTILE[0], attempt=1)
        for agent in agents
        for model in HOSTILE[3:5]
        for task in HOSTILE
    ]
    planned = [p.model_copy(update={"key": f"{n:032x}"}) for n, p in enumerate(planned)]
    records = {p.key: record(p, passed=n % 3 == 0) for n, p in enumerate(planned)}
    spoiled = planned[4]
    error = ErrorInfo(type="EngineError", message="</script><script>window.hacked = 5</script>")
    digests = {"agent": HOSTILE[0], HOSTILE[1]: HOSTILE[2]}
    records[spoiled.key] = record(
        spoiled, passed=None, status=Status.INFRA_INVALID, error=error, digests=digests
    )
    refused = row(agents[0], HOSTILE[0], refused=HOSTILE[1], model=HOSTILE[3], dataset=HOSTILE[2])
    return [*planned, refused], records


def test_names_and_errors_of_others_stay_text(report: Report) -> None:
    page = report(*hostile())
    html = page.read_text()
    elements = Elements(html)
    counts = Counter(tag for tag, _ in elements.tags)
    assert (counts["script"], counts["img"], counts["style"], counts["title"]) == (1, 0, 1, 1)
    assert not [name for _, attributes in elements.tags for name in attributes if name.startswith("on")]
    for text in HOSTILE[:4]:
        assert text in elements.text
    assert "</script><script>window.hacked = 5" in elements.text
    for picture in page.parent.glob("*.svg"):
        ET.parse(picture)
        assert not re.search("<(script|img|foreignObject)", picture.read_text())


def test_the_page_needs_nothing_but_itself_and_its_pictures(four: Path) -> None:
    elements = Elements(four.read_text())
    assert not [tag for tag, attributes in elements.tags if "src" in attributes or tag in ("link", "iframe")]
    anchors = {attributes.get("id") for _, attributes in elements.tags}
    for link in elements.all("a"):
        target = link["href"] or ""
        assert target[1:] in anchors if target.startswith("#") else (four.parent / target).is_file(), target
    policy = next(meta["content"] for meta in elements.all("meta") if "http-equiv" in meta)
    assert policy
    assert policy.startswith("default-src 'none'")
    ids = [attributes["id"] for _, attributes in elements.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_same_records_give_the_same_bytes(report: Report, four: Path) -> None:
    planned, records = sweep_of_four()
    random.Random(0).shuffle(keys := list(records))
    again = report(planned, {key: records[key] for key in keys})
    written = [
        {
            str(file.relative_to(page.parent)): file.read_bytes()
            for file in page.parent.rglob("*")
            if file.is_file()
        }
        for page in (four, again)
    ]
    assert written[0] == written[1]
    assert {"index.html", "heat_map.svg", "heat_map.png", "tables/leaderboard.tex"} <= set(written[0])


def test_pictures_and_tables_that_are_no_longer_made_go(report: Report, tmp_path: Path) -> None:
    tables = tmp_path / "report" / "tables"
    tables.mkdir(parents=True)
    for earlier in (tables.with_name("heat_map.png"), tables / "heat-map.csv", tables / "heat-map.tex"):
        earlier.touch()
    page = report([row("oracle", task) for task in TASKS], {})
    assert {file.name for file in page.parent.iterdir()} == {"index.html", "tables", "trials"}
    assert not list(tables.glob("heat-map*"))


def test_pixels_follow_their_lines(report: Report) -> None:
    """They are drawn again only where the lines are others: the last report may be of other trials, or cut off."""
    planned, records = two()

    def heat_map() -> tuple[bytes, bytes]:
        page = report(planned, records)
        lines, pixels = (page.with_name(f"heat_map.{ending}").read_bytes() for ending in ("svg", "png"))
        return lines, pixels

    first = heat_map()
    assert heat_map() == first
    records[planned[0].key] = record(planned[0], passed=False)
    other = heat_map()
    assert other[0] != first[0]
    assert other[1] != first[1]


def test_scripts_are_called_so_wherever_they_are_named(four: Path) -> None:
    texts = [file.read_text() for file in (four, *four.parent.glob("*.svg"))]
    assert sum(text.count("scripted_careful (scripted)") for text in texts) > 20
    assert not [text for text in texts if re.search(r"scripted_careful(?! \(scripted\))", text)]


def test_what_is_said_at_the_top_is_the_plan_and_the_spend(four: Path) -> None:
    text = " ".join(Elements(four.read_text()).text.split())
    assert "cells 2 + 2 bounds tasks 7 trials judged 22 of 28 invalid 6 of 28 USD spent 1.08" in text
    assert "1 of 28 trials; they spent 0.50 USD" in text
    assert "4 trials refused, of 1 task: hard-4: It needs a GPU." in text
    assert "1 trial not run, of 1 task: hard-3." in text


def test_what_has_nothing_to_show_is_no_empty_picture_or_table(tmp_path: Path) -> None:
    """Nobody passed, and made-up trials name no digests."""
    planned = [row("codex", task) for task in TASKS]
    found = findings(tmp_path, planned, {p.key: record(p, passed=False) for p in planned})
    sections = {section.name: section for chapter in chapters_of(found) for section in chapter.sections}
    (said,) = sections["profile"].blocks
    assert isinstance(said, Text)
    assert said.text == "No cell passed a task of these tiers."
    tables = [block for each in sections.values() for block in each.blocks if isinstance(block, Table)]
    assert all(table.rows for table in tables)
    assert "Tasks: digests" not in " ".join(table.caption for table in tables)


def drawn(found: Findings) -> tuple[set[str], str]:
    """Names of its sections, those of datasets after the first with a number, and all they say; draws its pictures."""
    names, text = set(), []
    with figures.style():
        for chapter in chapters_of(found):
            for section in chapter.sections:
                names.add(f"{section.name}{chapter.suffix}")
                for block in section.blocks:
                    text.append(str(block))
                    if isinstance(block, Picture):
                        figures.settle(block.draw())
    return names, " ".join(text)


def two(**changed: Any) -> Trials:
    """Two agents on all tasks, one of them without a pass."""
    planned = [row(agent, task, **changed) for agent in ("codex", "kimi_cli") for task in TASKS]
    return planned, {p.key: record(p, passed=p.agent == "codex") for p in planned}


def joined(*parts: Trials) -> Trials:
    return [p for planned, _ in parts for p in planned], {k: r for _, rs in parts for k, r in rs.items()}


def one_cell() -> Trials:
    planned = [row("codex", task) for task in TASKS]
    return planned, {p.key: record(p) for p in planned}


def all_invalid() -> Trials:
    planned, records = two()
    error = ErrorInfo(type="EngineError", message="gone")
    changed = {
        "status": Status.INFRA_INVALID,
        "reward": None,
        "passed": None,
        "verdict": None,
        "error": error,
    }
    return planned, {key: each.model_copy(update=changed) for key, each in records.items()}


def unpriced() -> Trials:
    planned, records = two()
    return planned, {key: each.model_copy(update={"cost_usd": None}) for key, each in records.items()}


def one_tier() -> Trials:
    planned, records = two()
    return [p for p in planned if p.tier == "easy"], records


ODD: dict[str, tuple[Callable[[], Trials], set[str], set[str]]] = {
    "one cell": (one_cell, {"criteria", "leaderboard", "heat-map"}, {"pairs", "same-model", "attempts"}),
    "one tier": (one_tier, {"leaderboard", "profile"}, {"heat-map", "same-model"}),
    "all invalid": (
        all_invalid,
        {"leaderboard", "audit", "coverage"},
        {"effort", "caches", "cost-quality"},
    ),
    "nothing ran": (lambda: (two()[0], {}), {"leaderboard", "audit"}, {"effort", "caches"}),
    "bounds alone": (
        lambda: ([row("oracle", task) for task in TASKS], {}),
        {"leaderboard", "what-ran"},
        {"criteria", "heat-map", "pairs", "effort"},
    ),
    "no price": (unpriced, {"leaderboard", "pairs"}, {"cost-quality"}),
    "two datasets": (
        lambda: joined(two(), two(dataset="core30", attempt=2)),
        {"pairs", "pairs-2"},
        {"coverage-2"},
    ),
    "two budgets": (lambda: joined(two(), two(budget="tight", attempt=2)), {"pairs", "heat-map"}, set()),
    "two attempts": (lambda: joined(two(), two(attempt=2)), {"attempts"}, set()),
}


@pytest.mark.parametrize(("make", "there", "absent"), ODD.values(), ids=ODD)
def test_odd_sweeps_have_the_sections_that_make_sense(
    tmp_path: Path, make: Callable[[], Trials], there: set[str], absent: set[str]
) -> None:
    names, text = drawn(findings(tmp_path, *make()))
    assert there <= names
    assert not absent & names
    assert not re.search(r"text='(nan|<NA>|None|inf)'|beneath='[^']*(nan|inf|NA)", text)


def test_cells_that_are_called_the_same_do_not_end_the_report(tmp_path: Path) -> None:
    planned = [row("a · b", task, model="c") for task in TASKS] + [
        row("a", task, model="b · c") for task in TASKS
    ]
    names, text = drawn(findings(tmp_path, planned, {p.key: record(p) for p in planned}))
    assert {"profile", "heat-map", "budgets", "pairs"} <= names
    assert text.count("a · b · c") > 4


def test_a_budget_is_named_where_there_are_several(tmp_path: Path) -> None:
    both = joined(two(), two(budget="tight", attempt=2))
    assert "codex · scripted_careful (scripted) · budget tight" in drawn(findings(tmp_path, *both))[1]
    assert "budget default" not in drawn(findings(tmp_path, *two()))[1]


def test_twenty_four_cells_on_ninety_tasks_are_a_page_under_three_megabytes(
    report: Report,
) -> None:
    rng = random.Random(0)
    tasks = [f"{('easy', 'hard')[n % 2]}-{n}" for n in range(90)]
    planned = [
        row(f"agent_{a}", task, model=f"model_{m}") for a in range(4) for m in range(6) for task in tasks
    ]
    records = {
        p.key: record(p, passed=rng.random() < 0.5, cost_usd=rng.lognormvariate(-3, 1)) for p in planned
    }
    page = report(planned, records)
    assert page.stat().st_size < 3_000_000
    assert Elements(page.read_text()).text.count("of 276 pairs") == 4


def test_job_report_writes_the_page_and_the_tables_and_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = write_sweep(tmp_path, *sweep_of_four())
    asked: Any = SimpleNamespace(
        settings=SimpleNamespace(outputs=tmp_path, name=sweep.name, folder=sweep), rescorings=lambda _: ()
    )
    assert ReportJob().run(asked) == 0
    text = capsys.readouterr().out
    assert str(sweep / "report" / "index.html") in text
    assert f"alpha {SCORING.alpha:g}" in (sweep / "report" / "index.html").read_text()
    assert (sweep / "leaderboard.csv").exists()
    asked.settings.folder = tmp_path / "quickstrat"
    with pytest.raises(ConfigError, match="quickstart"):
        ReportJob().run(asked)


def test_decided_goes_by_the_joint_p_and_says_when_resamples_are_too_few(tmp_path: Path) -> None:
    tasks = [f"{tier}-{n}" for tier in ("easy", "hard") for n in range(10)]
    planned = [row(agent, task) for agent in "abcdefgh" for task in tasks]
    records = {p.key: record(p, passed=p.agent == "a") for p in planned}
    for resamples, word, times in ((200, "yes", 7), (10, "too few resamples", 28)):
        scoring = SCORING.model_copy(update={"resamples": resamples})
        section = pairs(findings(tmp_path, planned, records, scoring))
        assert section
        table, note = section.blocks[0], section.blocks[-1]
        assert isinstance(table, Table)
        assert [entries[-1].text for entries in table.rows].count(word) == times
        assert "No Holm p can be below" in str(note)


PRICES = Prices(input=2.0, output=8.0, cache_hit=0.5, source="a list", date="2026-06-04",
                tiers=(PriceTier(above_input_tokens=200_000, input=4.0, output=16.0),))  # fmt: skip


def priced(found: Findings) -> Findings:
    return found._replace(plan=found.plan.model_copy(update={"prices": {"scripted_careful": PRICES}}))


def test_rates_and_their_source_stand_under_what_was_run(tmp_path: Path) -> None:
    """Only the snapshot's name and digest did."""
    table = what_ran(priced(findings(tmp_path, *one_cell()))).blocks[1]
    assert isinstance(table, Table)
    assert [[value.text for value in entries] for entries in table.rows] == [
        ["scripted_careful", "2", "8", "-", "0.5", "a list", "2026-06-04"],
        ["scripted_careful", "4", "16", "-", "-", "a list", "2026-06-04"],
    ]
    assert table.rows[1][0].beneath == "calls above 200k input"


def test_what_caches_saved_is_said_where_there_are_rates(tmp_path: Path) -> None:
    found = findings(tmp_path, *one_cell())
    for given, text in (
        (priced(found), ["0.09", "0.072", "0.012", "-25.0%"]),
        (found, ["0.09", "-", "-", "-"]),
    ):
        section = caches(given)
        assert section
        table = section.blocks[0]
        assert isinstance(table, Table)
        assert [value.text for value in table.rows[0][-4:]] == text


def test_what_judges_charged_is_said_apart_from_what_cells_spent(tmp_path: Path) -> None:
    planned, records = one_cell()
    asked = {key: each.model_copy(update={"judge_usd": 0.5}) for key, each in records.items()}
    sweep = write_sweep(tmp_path, planned, asked)
    text = " ".join(write_projections(sweep, tmp_path).split())
    assert "included: 0.09 USD. Judge models took 3.00 USD more, which belong to no cell." in text
    page = " ".join(Elements((sweep / "report/index.html").read_text()).text.split())
    assert "USD of judges 3.00" in page or "3.00 USD of judges" in page
    for run in tracked_runs(sweep, "none"):
        assert (run.metrics["judge_usd"], run.metrics["cost_usd"]) == (3.0, 0.09)
    key = planned[0].key
    unknown = {**asked, key: asked[key].model_copy(update={"judge_usd": None})}
    partly = write_sweep(tmp_path, planned, unknown, "partly")
    assert "Judge models took >=2.50 USD more" in " ".join(write_projections(partly, tmp_path).split())
    assert ">=2.50" in Elements((partly / "report/index.html").read_text()).text
    for run in tracked_runs(partly, "none"):
        assert (run.metrics["judge_usd"], run.metrics["judge_unpriced"]) == (2.5, 1)
    unjudged = tracked_runs(write_sweep(tmp_path, planned, records, "plain"), "none")
    assert not any("judge_usd" in name for run in unjudged for name in [*run.metrics, *run.tags])


def test_tasks_are_listed_on_which_agents_differ_most_in_tokens(tmp_path: Path) -> None:
    planned, records = two()
    many = Usage(input_tokens=40_000, output_tokens=500)
    dear = next(p for p in planned if (p.agent, p.task) == ("kimi_cli", "hard-2"))
    records[dear.key] = records[dear.key].model_copy(update={"usage": many})
    section = tokens_by_agent(findings(tmp_path, planned, records))
    assert section
    table, median = section.blocks
    assert isinstance(table, Table)
    assert [value.text for value in table.rows[0]] == [
        *("hard-2", "scripted_careful (scripted)", "2"),
        *("codex", "4.5k", "100%", "-", "kimi_cli", "40.5k", "0%", "-", "9.00"),
    ]
    assert "6 of 6 pairs" in table.caption
    assert "over all 6: 1.00" in str(median)
    assert tokens_by_agent(findings(tmp_path, *one_cell())) is None


def test_tasks_of_several_sources_are_counted_by_tier_and_passed_by_source(tmp_path: Path) -> None:
    planned, records = two()
    assert sources(findings(tmp_path, planned, records)) is None
    mixed = [
        each.model_copy(update={"source": "DA-Code" if each.task == "hard-3" else "SkillsBench"})
        for each in planned
    ]
    section = sources(findings(tmp_path, mixed, records))
    assert section
    composed, passed = section.blocks
    assert isinstance(composed, Table)
    assert isinstance(passed, Table)
    assert [[value.text for value in line] for line in composed.rows] == [
        ["DA-Code", "0", "1", "1"], ["SkillsBench", "3", "2", "5"],
    ]  # fmt: skip
    assert {line[0].text: [value.text for value in line[2:]] for line in passed.rows} == {
        "codex": ["1/1", "5/5"], "kimi_cli": ["0/1", "0/5"],
    }  # fmt: skip
    assert "DA-Code (of 1)" in [column.title for column in passed.columns]


def test_what_more_attempts_would_pass_stands_beside_their_variance(tmp_path: Path) -> None:
    planned, records = joined(one_cell(), (again := [row("codex", task, attempt=2) for task in TASKS],
                                           {p.key: record(p, passed=False) for p in again}))  # fmt: skip
    section = attempts(findings(tmp_path, planned, records))
    assert section
    curve = section.blocks[1]
    assert isinstance(curve, Table)
    assert [column.title for column in curve.columns[2:]] == ["pass@1", "pass@2"]
    assert [value.text for value in curve.rows[0][2:]] == ["0.500", "1.000"]


def test_what_other_jobs_found_is_shown_as_long_as_it_is_of_these_trials(tmp_path: Path) -> None:
    planned, records = two()
    sweep = write_sweep(tmp_path, planned, records)
    source = read_source("quickstart", tmp_path)
    compared, cells, _ = compare(Side(source, "AMS", SCORING), Side(source, "passes", SCORING))
    write_comparison(sweep, compared, cells)
    compare_scorings(sweep, [SCORING.model_copy(update={"alpha": 0.9})])
    names, text = drawn(findings(sweep, planned, records))
    assert {"agreement", "sensitivity"} <= names
    assert "quickstart by passes" in text
    assert "Missing above: 2 common cells, 3 are needed" in text
    assert "alpha=0.9" in text
    changed = {**records, planned[0].key: record(planned[0], passed=False)}
    assert not {"agreement", "sensitivity"} & drawn(findings(sweep, planned, changed))[0]


def test_curves_that_coincide_are_told_apart_in_the_legend_too() -> None:
    """A line and one of long dashes looked the same there."""
    curve = pd.DataFrame(1.0, index=[f"cell {n}" for n in range(6)], columns=[0.1, 0.2])
    figure = figures.budget_curves({"easy": curve})
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [f"cell {n}" for n in range(4)]
    assert len({line.get_marker() for line in legend.get_lines()}) == 4
    sizes = [line.get_markersize() for line in legend.get_lines()]
    assert sizes == sorted(set(sizes), reverse=True), "one inside the other"
