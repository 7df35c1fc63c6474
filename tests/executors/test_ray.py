"""Real sweeps on a Ray cluster of two nodes on this machine, whose processes die."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import docker
import pytest

from runner.executors.desk import NODE_LOST
from runner.records import Status
from tests.support.tasks_factory import make_task
from tests.support.waiting import until

pytest.importorskip("ray")

from tests.chaos.campaign import Campaign

pytestmark = [pytest.mark.serial, pytest.mark.timeout(900)]
FAULTS = 4


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    with Campaign(tmp_path_factory.mktemp("ray"), trials=16, seed=7) as campaign:
        yield campaign


@pytest.fixture
def outputs(campaign: Campaign, tmp_path: Path) -> Path:
    """Have the campaign's next sweep write here."""
    campaign.begin_anew(tmp_path)
    return campaign.outputs


def test_random_kills_lose_no_trial_and_no_call(campaign: Campaign) -> None:
    account = campaign.fire_at(FAULTS)
    assert account.is_whole, (account, campaign.log.read_text()[-3000:])
    assert account.records == 16
    for path in (campaign.log, *campaign.outputs.rglob("*.json*")):
        assert "a-key" not in path.read_text(), path


def test_limits_at_a_provider_hold_over_all_nodes(campaign: Campaign, outputs: Path) -> None:
    campaign.upstream.most_at_once = 0
    campaign.start("gateway.concurrency=2", dataset=_numbered(8))
    assert campaign.driver.wait(300) == 0, campaign.log.read_text()
    assert len({record.key for record in campaign.records().values()}) == 8
    assert outputs.is_dir()
    assert campaign.upstream.most_at_once == 2, "of four trials at a time"


def test_a_cap_of_the_sweep_counts_all_nodes(campaign: Campaign, outputs: Path) -> None:
    """A call costs 0.013 USD, so a trial of four 0.052, and four trials begin at once."""
    campaign.start("sweep_budget.usd=0.1")
    assert campaign.driver.wait(300) == 5, campaign.log.read_text()
    assert outputs.is_dir()
    records = campaign.records().values()
    assert 2 <= len(records) <= 8
    assert {record.status for record in records} == {Status.COMPLETED}
    assert f"{16 - len(records)} trials were not started" in campaign.log.read_text()


def test_short_trials_that_wait_on_crews_which_die_are_neither_lost_nor_doubled(
    campaign: Campaign, outputs: Path
) -> None:
    """Trials below a second are handed ahead, and then two crews die with what waits there."""
    campaign.faults.clear()
    campaign.kinds, kinds = ("crew",), campaign.kinds
    campaign.start("agent.questions=1", "agent.seconds=0", dataset=_numbered(40))
    until(lambda: len(campaign.records()) >= 8, 180)
    campaign.fire(2, pause=1.0)
    campaign.kinds = kinds
    assert campaign.driver.wait(300) == 0, campaign.log.read_text()
    assert outputs.is_dir()
    assert campaign.faults == {"crew": 2}
    records = campaign.records()
    assert (len(records), {record.status for record in records.values()}) == (40, {Status.COMPLETED})
    assert not list(outputs.glob("trials/*/*/superseded"))


def test_trials_that_only_waited_on_a_crew_which_dies_are_not_lost(
    campaign: Campaign, outputs: Path, tmp_path: Path
) -> None:
    """No try may be lost, so a trial that was is invalid. The crew runs two trials, and two wait there."""
    (notes := tmp_path / "notes").mkdir()
    words = "executor.retries=0", "executor.nodes=1", "agent.questions=0", "agent.seconds=0.5"
    campaign.start(*words, f"agent.notes={notes}", dataset=_numbered(20))
    until(lambda: len(campaign.records()) >= 6, 180)
    os.kill(campaign.cluster.crews()[0], signal.SIGKILL)
    began = {path.name.partition("-")[0] for path in notes.glob("*.begins")}
    campaign.driver.wait(300)
    assert outputs.is_dir()
    records = campaign.records().values()
    assert len(records) == 20, campaign.log.read_text()
    lost = {record.task for record in records if record.error and record.error.type == NODE_LOST}
    assert lost <= began, "the others were never begun"
    assert all(record.status is Status.COMPLETED for record in records if record.task not in lost)


def test_a_recorded_sweep_is_replayed_on_all_nodes(campaign: Campaign, outputs: Path, tmp_path: Path) -> None:
    tapes = tmp_path / "tapes"
    campaign.start(f"record={tapes}", dataset=_numbered(8))
    assert campaign.driver.wait(300) == 0, campaign.log.read_text()
    recorded = campaign.records().values()
    (again := tmp_path / "again").mkdir()
    campaign.begin_anew(again)
    campaign.start(dataset=_numbered(8), model=("model=cassette", f"model.path={tapes}"))
    until(lambda: len(campaign.cluster.crews()) == 2, 180)
    assert campaign.driver.wait(300) == 0, campaign.log.read_text()
    assert outputs.is_dir()
    assert not campaign.upstream.requests
    replayed = campaign.records().values()
    assert {record.status for record in replayed} == {Status.COMPLETED}
    assert {record.task: record.usage for record in replayed} == {
        record.task: record.usage for record in recorded
    }


def test_ctrl_c_ends_the_trials_of_all_nodes_with_their_records(campaign: Campaign, outputs: Path) -> None:
    campaign.start("agent.seconds=600", dataset=_numbered(8))
    until(lambda: len(campaign.upstream.requests) >= 8, 180)
    campaign.driver.send_signal(signal.SIGINT)
    assert campaign.driver.wait(60) == 130, campaign.log.read_text()
    assert outputs.is_dir()
    assert {record.status for record in campaign.records().values()} == {Status.CANCELLED}
    assert len(campaign.records()) == 4
    until(lambda: not campaign.cluster.crews(), 60)


def test_a_crew_of_other_files_is_not_given_trials(campaign: Campaign, outputs: Path) -> None:
    """Nodes of this machine have the same files, so the driver alone is given another version."""
    code = (
        "import sys, runner; runner.__version__ = '0.0'\n"
        "from runner.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    campaign.start(code=code)
    assert campaign.driver.wait(120) == 3
    assert not outputs.joinpath("trials").exists()
    text = " ".join(campaign.log.read_text().split())
    assert "No node takes trials." in text
    assert "install the same version there" in text


@pytest.mark.docker
def test_containers_of_a_killed_crew_are_removed_by_the_next_one(
    campaign: Campaign, outputs: Path, tmp_path: Path
) -> None:
    for number in range(6):
        make_task(tmp_path / "tasks", f"t{number}", toml='[agent]\nuser = "1000"\ntimeout_sec = 900\n')
    root = (f"dataset.root={tmp_path / 'tasks'}", "dataset.build_args.BASE=assay-base")
    campaign.start("agent.seconds=600", dataset=("dataset=harbor", *root, "sandbox=docker"))
    until(lambda: len(_containers(campaign.cluster.crews())) == 4, 240)
    crews = campaign.cluster.crews()
    os.kill(crews[0], signal.SIGKILL)
    assert len(_containers(crews[:1])) == 2, "nobody has removed them yet"
    until(lambda: not _containers(crews[:1]), 240)
    until(lambda: len(_containers(campaign.cluster.crews())) == 4, 240)
    owners = [*crews, *campaign.cluster.crews()]
    campaign.driver.send_signal(signal.SIGINT)
    assert campaign.driver.wait(90) == 130, campaign.log.read_text()
    assert not _containers(owners)
    assert outputs.is_dir()
    assert {record.status for record in campaign.records().values()} == {Status.CANCELLED}


def _containers(crews: Sequence[int]) -> list[str]:
    """Names of the containers of these crews."""
    found = []
    with contextlib.closing(docker.from_env()) as client:
        for pid in crews:
            mine = {"label": f"assay.owner_pid={pid}"}
            found += [entry["Names"][0] for entry in client.api.containers(all=True, filters=mine)]
    return found


def _numbered(trials: int) -> tuple[str, ...]:
    return "dataset=numbered", f"dataset.number={trials}", "sandbox=local"
