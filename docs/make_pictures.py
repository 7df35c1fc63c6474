"""Pictures of a sweep, taken by headless Chromium: `python docs/make_pictures.py SWEEP_FOLDER`.

Its report as it lies in the folder; and MLflow's UI: logs the sweep again, starts the very command that this prints,
opens the very link, and saves what it shows to `docs/pictures/`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pandas as pd
import requests
from PIL import Image
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

sys.path.insert(0, str(Path(__file__).parents[1]))

from runner.report.projections import REPORT
from runner.tracking.mlflow import MlflowTracker
from tests.support.browser import browser

PICTURES = Path(__file__).parent / "pictures"
SERVER = "http://127.0.0.1:5000"
SETTLE_SECONDS = 4.0
"""Charts and tables draw for a while after their data is there."""


def main(sweep: Path) -> None:
    """Save `report*.png` and six pictures `mlflow_*.png` of the sweep here."""
    link = MlflowTracker().log(sweep).splitlines()[-1]
    PICTURES.mkdir(exist_ok=True)
    with server(sweep.parent), browser(1720, 760) as chrome:
        chrome.set_window_size(1300, 2120)
        chrome.get((sweep.absolute() / REPORT).as_uri())
        save(chrome, "report.png")
        report_pictures(chrome, sweep)
        chrome.set_window_size(1720, 760)
        chrome.get(link.strip())
        wait_for(chrome, "[row-id] [col-id]")
        close_assistant(chrome)
        save(chrome, "mlflow_leaderboard.png")
        chrome.set_window_size(1720, 1500)
        experiment = link.split("/experiments/")[1].split("/")[0]
        runs, experiments = (
            quote(json.dumps(found(experiment, sweep, "cell"))),
            quote(json.dumps([experiment])),
        )
        chrome.get(f"{SERVER}/#/compare-runs?runs={runs}&experiments={experiments}")
        wait_for(chrome, "svg.main-svg")
        close_assistant(chrome)
        save(chrome, "mlflow_compare.png")
        chrome.set_window_size(1720, 900)
        run = found(experiment, sweep, "sweep")[0]
        chrome.get(f"{SERVER}/#/experiments/{experiment}/runs/{run}/artifacts/{REPORT}")
        wait_for(chrome, "iframe")
        close_assistant(chrome)
        hide_paths(chrome)
        save(chrome, "mlflow_sweep.png")
        trace_pictures(chrome, experiment, found(experiment, sweep, "cell"))


def report_pictures(chrome: Chrome, sweep: Path) -> None:
    """Save the matrix of tasks and cells, the steps of a failed trial, and those of one that passed beside them."""
    chrome.set_window_size(1300, 760)
    chrome.execute_script("document.querySelector('.matrix').scrollIntoView()")
    save(chrome, "report_matrix.png")
    trials = pd.read_csv(sweep / "trials.csv")
    failed = trials[(trials["agent"] == "codex") & ~trials["passed"].astype(bool)].iloc[0]
    same_task = trials[(trials["task"] == failed["task"]) & (trials["agent"] == failed["agent"])]
    passed = same_task[same_task["passed"].astype(bool)].iloc[0]
    pages = (sweep / REPORT).parent / "trials"
    chrome.get((pages / f"{failed['key']}.html").absolute().as_uri())
    chrome.set_window_size(1300, 1100)
    chrome.execute_script("document.querySelector('#timeline').scrollIntoView()")
    save(chrome, "report_trial.png")
    chrome.get(f"{(pages / 'side_by_side.html').absolute().as_uri()}#{failed['key']},{passed['key']}")
    chrome.find_element(By.CSS_SELECTOR, "[data-section=timeline]").click()
    time.sleep(SETTLE_SECONDS)
    save(chrome, "report_side_by_side.png")


def trace_pictures(chrome: Chrome, experiment: str, runs: list[str]) -> None:
    """Save the trials of the worst cell beside those of the best, two of one task, and the verifier's words on one."""
    best, worst = runs[0], runs[-1]
    chrome.set_window_size(1720, 1000)
    chrome.get(f"{SERVER}/#/experiments/{experiment}/runs/{worst}/traces?compareToRunUuid={best}")
    wait_for(chrome, "[role='row'], tr")
    close_hints(chrome)
    save(chrome, "mlflow_traces.png")
    failed = failed_traces(worst)
    task = max(failed)
    click(chrome, f"//*[contains(text(), '\"{task}\"')]")
    save(chrome, "mlflow_side_by_side.png")
    chrome.set_window_size(1720, 1320)
    chrome.get(f"{SERVER}/#/experiments/{experiment}/traces?selectedEvaluationId={failed[task]}")
    click(chrome, "//span[text()='verifier']")
    save(chrome, "mlflow_trace.png")


def click(chrome: Chrome, path: str) -> None:
    """Click on what is there at this XPath, once it is, and wait until the page shows the answer."""
    WebDriverWait(chrome, 60).until(lambda page: page.find_elements(By.XPATH, path))
    close_hints(chrome)
    chrome.execute_script("arguments[0].click()", chrome.find_elements(By.XPATH, path)[0])
    time.sleep(SETTLE_SECONDS)
    close_hints(chrome)


def failed_traces(run: str) -> dict[str, str]:
    """Task -> the id of its trace, for the trials of this run that failed."""
    from mlflow import MlflowClient  # noqa: PLC0415 - after the environment that `MlflowTracker.log` sets

    client = MlflowClient(tracking_uri=SERVER)
    experiment = client.get_run(run).info.experiment_id
    traces = client.search_traces(locations=[experiment], run_id=run, include_spans=False)
    infos = [each.info for each in traces if each.info.response_preview == "failed"]
    return {info.tags["task"]: str(info.trace_id) for info in infos}


@contextmanager
def server(outputs: Path) -> Iterator[None]:
    """MLflow's user interface over a folder of sweeps, until it is no longer needed."""
    words = [sys.executable, "-m", "runner", "job=ui", f"outputs={outputs.absolute()}"]
    with tempfile.TemporaryDirectory() as folder, Path(folder, "log").open("w") as log:
        process = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log, start_new_session=True)
        try:
            for _ in range(120):
                if answers():
                    break
                time.sleep(1)
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)


def answers() -> bool:
    """Return whether the server serves."""
    try:
        return requests.get(f"{SERVER}/health", timeout=5).ok
    except requests.ConnectionError:
        return False


def wait_for(chrome: Chrome, selector: str) -> None:
    """Until the page shows such an element, and a while longer."""
    WebDriverWait(chrome, 60).until(lambda page: page.find_elements(By.CSS_SELECTOR, selector))
    time.sleep(SETTLE_SECONDS)


def close_assistant(chrome: Chrome) -> None:
    """Close the chat panel that covers a quarter of the page."""
    for button in chrome.find_elements(
        By.CSS_SELECTOR, "[data-component-id='mlflow.assistant.chat_panel.close']"
    ):
        button.click()
        time.sleep(SETTLE_SECONDS)


def close_hints(chrome: Chrome) -> None:
    """Close the panel and the hint that cover parts of the page, or lie beneath what is in front."""
    closing = "//button[normalize-space()='Got it' or contains(@data-component-id, 'chat_panel.close')]"
    for button in chrome.find_elements(By.XPATH, closing):
        chrome.execute_script("arguments[0].click()", button)
        time.sleep(SETTLE_SECONDS)


def hide_paths(chrome: Chrome) -> None:
    """Take out where the artifacts lie on this machine, which is nobody's business."""
    chrome.execute_script(  # type: ignore[no-untyped-call]
        "for (const at of document.querySelectorAll('*'))"
        "  if (!at.children.length && at.textContent.includes('file:///')) at.style.visibility = 'hidden'"
    )


def found(experiment: str, sweep: Path, kind: str) -> list[str]:
    """Ids of the sweep's runs of that kind, best first."""
    wanted = {
        "experiment_ids": [experiment],
        "filter": f"tags.`assay.sweep` = '{sweep.name}' AND tags.`assay.kind` = '{kind}'",
        "order_by": ["metrics.AMS DESC"],
    }
    answer = requests.post(f"{SERVER}/api/2.0/mlflow/runs/search", json=wanted, timeout=30).json()
    return [run["info"]["run_id"] for run in answer["runs"]]


def save(chrome: Chrome, name: str) -> None:
    """A PNG of the window in 128 colours, which a page does with, at a third of the size."""
    path = PICTURES / name
    chrome.save_screenshot(str(path))
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(128).save(path, optimize=True)
    print(f"{path} ({path.stat().st_size // 1024} KiB)")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
