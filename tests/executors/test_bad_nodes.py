"""Messages about nodes that cannot run trials, before anything is paid for; nodes that join late and leave."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runner.executors.desk import Desk
from runner.executors.ray.crew import ROOM_BYTES
from runner.gateway import Gateway
from runner.report.progress import Progress
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from tests.support.crew_trials import crew_sweep
from tests.support.waiting import until

pytest.importorskip("ray")

import ray

from runner.executors.ray.cluster import RESOURCE
from runner.executors.ray.hired import HiredCrew
from tests.chaos.campaign import Campaign

pytestmark = [pytest.mark.serial, pytest.mark.timeout(900)]
HOUR = """\
import time
right = time.time
time.time = lambda: right() + 3600
"""
NO_ASSAY = """\
import sys
sys.modules["runner"] = None
"""


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    with Campaign(tmp_path_factory.mktemp("ray"), trials=8, seed=1, nodes=0) as campaign:
        yield campaign


@pytest.fixture(autouse=True)
def _outputs(campaign: Campaign, tmp_path: Path) -> None:
    """Have the campaign's next sweep write here."""
    campaign.begin_anew(tmp_path)


def refused(campaign: Campaign, **environment: str) -> str:
    """Start a sweep whose only node has these variables. Return what the user read when it was refused."""
    node = campaign.cluster.node(2, None, **environment)
    try:
        campaign.start("gateway.preflight=true")
        assert campaign.driver.wait(240) == 3, campaign.log.read_text()
    finally:
        campaign.cluster.kill(node)
    assert not campaign.upstream.requests, "nothing was asked of a provider"
    assert not campaign.outputs.joinpath("trials").exists()
    return said(campaign)


def said(campaign: Campaign) -> str:
    return " ".join(campaign.log.read_text().split())


def python_path(folder: Path, code: str) -> str:
    """Return the folders of a Python that runs this code when it starts."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(code)
    return f"{folder}:{Path(__file__).parents[2]}"


@contextmanager
def small_disk(size: int) -> Iterator[str]:
    """Mount a file system of this many bytes. Its path is short, for the sockets in it."""
    with tempfile.TemporaryDirectory(prefix="small") as folder:
        mount = ("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder)
        mounted = subprocess.run(mount, capture_output=True, check=False)
        if mounted.returncode:
            pytest.skip(f"mounting needs more rights: {mounted.stderr.decode()}")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_node_whose_clock_is_an_hour_off_takes_no_trials(campaign: Campaign, tmp_path: Path) -> None:
    text = refused(campaign, PYTHONPATH=python_path(tmp_path / "clock", HOUR))
    assert "No node takes trials." in text
    assert re.search(
        r"takes no trials: its clock is 3(59|60)\d s ahead of this one\. Set both by a time server", text
    )


def test_a_node_without_docker_takes_no_trials(campaign: Campaign, tmp_path: Path) -> None:
    nobody = f"unix://{tmp_path}/nobody.sock"
    campaign_words = ("dataset=quickstart", "sandbox=docker")
    node = campaign.cluster.node(2, DOCKER_HOST=nobody)
    try:
        campaign.start("gateway.preflight=true", dataset=campaign_words)
        assert campaign.driver.wait(240) == 3, campaign.log.read_text()
    finally:
        campaign.cluster.kill(node)
    assert not campaign.upstream.requests
    assert f"takes no trials: No Docker Engine answers at {nobody}: start it" in said(campaign)


def test_a_node_without_room_takes_no_trials(campaign: Campaign) -> None:
    with small_disk(ROOM_BYTES // 4) as small:
        text = refused(campaign, TMPDIR=small)
    assert f"takes no trials: {small} has 6" in text
    assert "MiB left, and trials need 256. Make room there, or set TMPDIR before `ray start`." in text


def test_a_node_that_has_no_assay_takes_no_trials(campaign: Campaign, tmp_path: Path) -> None:
    text = refused(campaign, PYTHONPATH=python_path(tmp_path / "none", NO_ASSAY))
    assert "No node takes trials." in text
    assert "its crew cannot start (ModuleNotFoundError: " in text
    assert "Install the same version there" in text


class CrewThatDies:
    """A crew that ends while it looks whether its node can run trials."""

    def clock(self) -> float:
        return time.time()

    def check(self, *_: object) -> str:
        os._exit(1)


async def soundness(desk: Desk) -> tuple[str, bool]:
    """Return what the check of such a crew says, and whether its node counts as one that can run trials."""
    node = next(each["NodeID"] for each in ray.nodes() if each["Alive"] and each["Resources"].get(RESOURCE))
    kind: Any = CrewThatDies
    crew = HiredCrew(node, "there", 1, desk, kind)
    unread: Any = None
    return await crew.check(unread, unread), crew.is_sound


def test_models_were_asked_and_paid_after_the_loss_of_a_crew_that_had_found_nothing_out(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_FAKED_KEY", "a-key")
    sweep = crew_sweep(tmp_path / "outputs", "executor=ray")
    plan = make_plan(sweep.cells, sweep.settings.sandbox, lambda _: ())
    desk = Desk(sweep, plan, Store(tmp_path / "outputs"), Gateway(tmp_path / "g"), Progress(1))
    node = campaign.cluster.node(2)
    ray.init(address=campaign.cluster.address, log_to_driver=False, logging_level="CRITICAL")
    try:
        assert asyncio.run(soundness(desk)) == ("", False)
    finally:
        ray.shutdown()
        campaign.cluster.kill(node)


def test_trials_of_a_node_whose_disk_fills_up_run_on_another(campaign: Campaign) -> None:
    with small_disk(ROOM_BYTES * 2) as small:
        filling = campaign.cluster.node(2, TMPDIR=small)
        campaign.start("agent.seconds=4")
        until(lambda: len(campaign.upstream.requests) >= 4, 180)
        other = campaign.cluster.node(2)
        filler = subprocess.run(
            ["dd", "if=/dev/zero", f"of={small}/filler", "bs=1M"], capture_output=True, check=False
        )
        assert b"No space left" in filler.stderr
        until(lambda: "takes no more trials" in campaign.log.read_text(), 60)
        account = campaign.end()
        campaign.cluster.kill(filling)
    campaign.cluster.kill(other)
    assert account.is_whole, (account, campaign.log.read_text())
    assert "takes no more trials: Cannot write" in said(campaign)


def test_a_node_that_joins_late_gets_trials_and_one_that_leaves_gives_them_back(campaign: Campaign) -> None:
    campaign.start("agent.seconds=15")  # the first node still has trials when the second one has joined
    first = campaign.cluster.node(2)
    until(lambda: len(campaign.upstream.requests) >= 2, 180)
    second = campaign.cluster.node(2)
    until(lambda: len(campaign.cluster.crews()) == 2, 120)
    first.send_signal(signal.SIGTERM)
    until(lambda: first.poll() is not None, 60)
    account = campaign.end()
    campaign.cluster.kill(second)
    assert account.is_whole, (account, campaign.log.read_text())
    assert campaign.driver.returncode == 0
    assert "is lost: " in said(campaign)
