"""The calls that a trial makes to the Docker Engine, against the table that gives a reason for each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import requests

from runner.agents.bounds import Oracle
from runner.gateway import Gateway
from runner.records import Budget
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.overlay_layer import layers_of
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from runner.trials.context import TrialContext
from runner.trials.run import run_to_the_end
from tests.support.tasks_factory import dataset, make_task

pytestmark = pytest.mark.docker
PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "engine-calls.md"
ROW = re.compile(r"\| `(\w+) (/\S+)` \| .+ \|")
PLACES = (
    (r"/containers/[0-9a-f]{64}", "/containers/ID"),
    (r"/exec/[0-9a-f]{64}", "/exec/ID"),
    (r"/images/[^/?]+", "/images/IMAGE"),
)


def test_a_trial_makes_the_calls_that_the_page_gives_reasons_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base_image.ensure(connect(), print)
    make_task(tmp_path / "tasks", "counted")
    sandboxes = DockerSandboxes()
    data = dataset(tmp_path / "tasks")
    sandboxes.image(data.tasks()[0].environment)
    if not _are_layers_readable():
        pytest.skip("this engine's layers cannot be read from here")
    cell = Cell(agent=Oracle(), model=NO_MODEL, dataset=data, budget=Budget(), attempts=1)
    sandboxes = DockerSandboxes()
    plan = make_plan([cell], sandboxes, lambda _: ())
    context = TrialContext(sandboxes, Gateway(tmp_path), Store(tmp_path / "outputs"), "calls", {})
    calls: list[tuple[str, str]] = []
    send = requests.Session.send

    def listed(
        session: requests.Session, request: requests.PreparedRequest, **options: object
    ) -> requests.Response:
        path = (
            str(request.path_url).partition("?")[0].partition("/v1.")[2]
        )  # empty for the client's first question
        for pattern, place in PLACES:
            path = re.sub(pattern, place, path)
        if path:
            calls.append((str(request.method), path[path.index("/") :]))
        return send(session, request, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(requests.Session, "send", listed)
    record = run_to_the_end(plan.trials[0], context, retries=0, cancelled=lambda: False)
    assert record.reward == 1.0
    assert calls == ROW.findall(PAGE.read_text())


def _are_layers_readable() -> bool:
    api = connect().api
    container = api.create_container(base_image.tag(), ["true"])["Id"]
    try:
        return layers_of(api.inspect_container(container)) is not None
    finally:
        api.remove_container(container, force=True)
