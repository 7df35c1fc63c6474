"""Traces as a real browser shows them in MLflow's user interface, with a hostile agent, model and task."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from runner.records import ErrorInfo, Status, Verdict
from runner.report.projections import write_projections
from runner.sweeps.store import Store
from runner.tracking.mlflow import MlflowTracker
from tests.report.plans import record, row, write_sweep
from tests.report.test_trial_traces import calls, leave, said
from tests.support.browser import PROGRAMS, browser
from tests.support.mlflow_ui import mlflow_ui
from tests.support.no_page import without_page
from tests.support.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.browser
EVIL = "evil.invalid"
_TRIES = (
    f"![pixel](http://{EVIL}/pixel.png) [press](javascript:window.taken=1) <img src=x onerror=window.taken=1>"
    f"<script>window.taken=1</script><iframe src=http://{EVIL}/frame></iframe>\n\n# Heading of the attacker\n\n"
)
ATTACK = f"\n\n{_TRIES}```\n{_TRIES}~~~\n{_TRIES}"
"""Tries what Markdown and HTML allow, outside of any fence, within one, and after the end of one of three ticks."""
TASKS = ("easy-1", "easy-2", "hard-1")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Iterator[tuple[str, Path]]:
    """The address of the user interface over a sweep of two agents, and the sweep's folder."""
    outputs = tmp_path_factory.mktemp("served")
    shutil.copy(empty_store, outputs / "mlflow.db")
    planned = [row(agent, task) for agent in ("codex", "mini_swe_agent") for task in TASKS]
    attacked = {
        "status": Status.AGENT_ERROR,
        "error": ErrorInfo(type="agent_error", message=ATTACK, phase="agent"),
        "verdict": Verdict(reward=0.0, output=f"1 failed{ATTACK}", components={ATTACK: 1.0}),
    }
    records = {
        each.key: record(each, turns=2)
        if each.agent == "codex"
        else record(each, turns=2, passed=False, **attacked)
        for each in planned
    }
    sweep = write_sweep(outputs, planned, records)
    for key in records:
        leave(
            Store(outputs).folder(key),
            calls(2, scripted=True),
            [said(0, f"I look.{ATTACK}", result=ATTACK), said(1, "Done.", tool=ATTACK)],
        )
    with without_page():
        write_projections(sweep, outputs)
    MlflowTracker().log(sweep)
    with mlflow_ui([sys.executable, "-m", "runner", "job=ui", f"outputs={outputs}"], outputs) as url:
        yield url, sweep


@pytest.fixture(scope="module")
def chrome() -> Iterator[Chrome]:
    if not all(map(shutil.which, PROGRAMS)):
        pytest.fail("no Chromium here: make browser")
    with browser(1440, 1000) as started:
        yield started


def ids(sweep: Path) -> tuple[str, dict[str, str], dict[tuple[str, str], str]]:
    """The experiment, the run of each agent, and the trace of each agent and task."""
    from mlflow import MlflowClient  # noqa: PLC0415 - as the code under test does: after its environment is set

    client = MlflowClient(tracking_uri=f"sqlite:///{sweep.parent / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("assay").experiment_id
    runs = client.search_runs([experiment], "tags.`assay.kind` = 'cell'")
    traces = client.search_traces(locations=[experiment], include_spans=False)
    return (
        experiment,
        {run.data.params["agent"]: run.info.run_id for run in runs},
        {(each.info.tags["agent"], each.info.tags["task"]): each.info.trace_id for each in traces},
    )


def show(chrome: Chrome, url: str, *words: str) -> str:
    """Open a page, wait until it shows all these words, and return its text. It must have obeyed no attack."""
    chrome.get("about:blank")
    chrome.get(url)

    try:
        until(lambda: all(word in text_of(chrome) for word in words), 2 * PATIENCE_SECONDS)
    except AssertionError as error:
        raise AssertionError(f"{words} are not in {text_of(chrome)}") from error
    time.sleep(1)  # what an attack would load or run
    unharmed(chrome)
    return text_of(chrome)


def text_of(page: Chrome) -> str:
    return str(run(page, "return document.body.innerText"))


def run(page: Chrome, script: str, *given: object) -> Any:
    return page.execute_script(script, *given)


def unharmed(chrome: Chrome) -> None:
    loaded = run(chrome, "return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert not [name for name in loaded if EVIL in name]
    assert run(chrome, "return window.taken") is None
    for selector in (f"[src*='{EVIL}']", f"[href*='{EVIL}']", "[href^='javascript']", "img[src='x']"):
        assert not chrome.find_elements(By.CSS_SELECTOR, selector)
    headings = chrome.find_elements(By.CSS_SELECTOR, "h1, h2, h3, h4")
    assert "Heading of the attacker" not in [each.text for each in headings]


def press(chrome: Chrome, words: str) -> None:
    """Press the first span of the tree with this name."""
    found = chrome.find_elements(By.XPATH, f"//span[starts-with(normalize-space(text()), {words!r})]")
    run(chrome, "arguments[0].click()", found[0])
    time.sleep(1)


def test_the_traces_of_a_run_are_listed_with_the_verifiers_judgements(
    served: tuple[str, Path], chrome: Chrome
) -> None:
    url, sweep = served
    experiment, runs, _ = ids(sweep)
    text = show(
        chrome,
        f"{url}/#/experiments/{experiment}/runs/{runs['mini_swe_agent']}/traces",
        *("easy-1", "easy-2", "hard-1", "passed", "reward", "agent_error", "False"),
    )
    assert "failed (agent_error)" in text


def test_a_trace_shows_each_step_and_what_was_said_and_run(served: tuple[str, Path], chrome: Chrome) -> None:
    url, sweep = served
    experiment, _, traces = ids(sweep)
    trace = traces["mini_swe_agent", "easy-1"]
    show(
        chrome,
        f"{url}/#/experiments/{experiment}/traces?selectedEvaluationId={trace}",
        *("mini_swe_agent · scripted_careful (scripted)", "call 1", "bash", "call 2", "verifier"),
        "No language model answered in this trial",
    )
    for name, words in (("call 1", "I look."), ("bash", "ls 0"), ("verifier", "1 failed")):
        press(chrome, name)
        until(lambda words=words: words in text_of(chrome))  # type: ignore[misc]
        unharmed(chrome)
        assert "Heading of the attacker" in text_of(chrome)


def test_a_judgement_shows_the_verifiers_words(served: tuple[str, Path], chrome: Chrome) -> None:
    url, sweep = served
    experiment, _, traces = ids(sweep)
    trace = traces["mini_swe_agent", "easy-1"]
    show(chrome, f"{url}/#/experiments/{experiment}/traces?selectedEvaluationId={trace}", "call 1", "Assess")
    (assess,) = chrome.find_elements(By.XPATH, "//button[contains(., 'Assess')]")
    run(chrome, "arguments[0].click()", assess)
    until(lambda: "Feedback (3)" in text_of(chrome))
    arrows = "[data-component-id='shared.model-trace-explorer.toggle-assessment-expanded']"
    for arrow in chrome.find_elements(By.CSS_SELECTOR, arrows):
        run(chrome, "arguments[0].click()", arrow)
    until(lambda: "1 failed" in text_of(chrome))
    unharmed(chrome)


def test_two_agents_are_compared_task_by_task(served: tuple[str, Path], chrome: Chrome) -> None:
    url, sweep = served
    experiment, runs, traces = ids(sweep)
    text = show(
        chrome,
        f"{url}/#/experiments/{experiment}/runs/{runs['mini_swe_agent']}/traces?compareToRunUuid={runs['codex']}",
        *("easy-1", "easy-2", "hard-1", "compare to", "True", "False"),
    )
    for task in TASKS:
        assert text.count(f'"{task}"') == 1, "the two agents' trials of a task are not in one row"
    for trace in traces.values():
        assert trace[:6] in text


def test_the_evaluation_runs_name_every_cell(served: tuple[str, Path], chrome: Chrome) -> None:
    url, sweep = served
    experiment, _, _ = ids(sweep)
    show(chrome, f"{url}/#/experiments/{experiment}/evaluation-runs", "codex", "mini_swe", "AMS")
