"""Limits on disk and on the number of files hold at the end of a rollout as they do during it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event, Thread, current_thread
from typing import Any

import pytest
from docker.errors import ImageNotFound

from runner.agents.bounds import Oracle
from runner.errors import SpoiledMachine
from runner.gateway import Gateway
from runner.records import Budget, BuildSpec, Environment, ExecSpec, SandboxSpec, Status, TrialRecord
from runner.sandbox.docker import base_image, disk_usage
from runner.sandbox.docker.container import DockerSandbox
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from runner.trials.context import TrialContext
from runner.trials.run import run_to_the_end
from tests.support.tasks_factory import dataset, make_task

pytestmark = pytest.mark.docker

LIMITS = {"disk_mb": 64, "files": 300}
DEEP = "import os\nfor n in range({0}): os.mkdir('d'); os.chdir('d')"
MANY = 'python3 -c "import os\nfor i in range(400): {0}"'
PAST = {
    "sparse files of the largest size": ("for i in $(seq 8); do truncate -s 60M s$i; done", "disk"),
    "a sparse file beside an empty one": ("truncate -s 63M s; truncate -s 2M t", "disk"),
    "allocated and never written": ("for i in 1 2 3; do fallocate -l 30M f$i; done", "disk"),
    "outside the workspace": ("for i in 1 2 3; do truncate -s 30M /var/lib/f$i; done", "disk"),
    "in a folder closed to all": ("mkdir d; truncate -s 60M d/s d/t; chmod 0 d", "disk"),
    "holes around a byte": (
        "for i in 1 2 3; do echo x | dd of=s$i bs=1 seek=60000000 2>/dev/null; done",
        "disk",
    ),
    "many empty files": ("seq 400 | xargs touch", "files"),
    "many folders": ("seq 400 | xargs mkdir", "files"),
    "many links to one file": (MANY.format("os.link(__import__('sys').executable, str(i))"), "files"),
    "many links to nowhere": (MANY.format("os.symlink('x', str(i))"), "files"),
    "many pipes": ("mkfifo $(seq 400)", "files"),
    "many in many folders": ("for d in a b c d; do mkdir $d; (cd $d; seq 99 | xargs touch); done", "files"),
    "folders too deep to count": (f'python3 -c "{DEEP.format(3000)}"', "files"),
}
WITHIN = {
    "a sparse file below the limit": "truncate -s 60M s",
    "many links to one large file": "truncate -s 60M s; for i in $(seq 20); do ln s l$i; done",
    "a link to a large device": "ln -s /dev/zero z; ln -s /usr u",
    "large and gone again": "truncate -s 60M a; rm a; truncate -s 60M b; rm b",
    "a large file in memory": "head -c 80M /dev/zero > /dev/shm/x || true",
    "a name like an entry of the list": 'touch \'{"Path":"x"}\' \'a"Path":b\'',
}


@pytest.fixture
def sandbox() -> Iterator[DockerSandbox]:
    base_image.ensure(connect(), print)
    provider = DockerSandboxes.model_validate(LIMITS)
    environment = Environment(image=base_image.tag(), workdir="/workspace")
    spec = SandboxSpec(name="full", image=provider.image(environment), environment=environment, user="root")
    with ExitStack() as stack:
        yield stack.enter_context(provider.open(spec))  # type: ignore[misc]


@pytest.mark.parametrize(("script", "excess"), PAST.values(), ids=PAST)
def test_what_was_made_in_the_last_instant_is_never_copied(
    sandbox: DockerSandbox, script: str, excess: str
) -> None:
    """The commit of such a machine wrote 21.7 GB to the host's disk."""
    images = {image["Id"] for image in connect().api.images(all=True)}
    result = sandbox.exec(ExecSpec(argv=("bash", "-c", script), timeout_seconds=20))
    assert result.ended in ("exited", excess)
    sandbox.kill()
    assert sandbox.excess == excess
    with pytest.raises(SpoiledMachine, match=f"sandbox.{'disk_mb' if excess == 'disk' else 'files'}"):
        sandbox.snapshot()
    for image in {image["Id"] for image in connect().api.images(all=True, name="assay-snapshot")} - images:
        with suppress(ImageNotFound):  # another test's, which has removed it
            assert sandbox._id not in str(connect().api.inspect_image(image))  # type: ignore[no-untyped-call]


def test_a_look_that_began_before_the_death_is_not_taken_for_the_last(
    sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of changes is stored once all processes are dead. An earlier list would lack what was made after it."""
    measured, dead, measure = Event(), Event(), disk_usage.measure_layer

    def slow(*of: Any) -> disk_usage.Layer:
        layer = measure(*of)
        if current_thread().name == "early":
            measured.set()
            dead.wait()
        return layer

    monkeypatch.setattr(disk_usage, "measure_layer", slow)
    early = Thread(target=sandbox.changes, name="early")
    early.start()
    measured.wait()
    sandbox.exec(ExecSpec(argv=("touch", "/usr/bin/late"), timeout_seconds=20))
    sandbox.kill()
    dead.set()
    early.join()
    changes = sandbox.changes()
    assert changes
    assert "/usr/bin/late" in changes.added


@pytest.mark.parametrize("script", WITHIN.values(), ids=WITHIN)
def test_what_is_within_the_limits_is_copied(sandbox: DockerSandbox, script: str) -> None:
    result = sandbox.exec(ExecSpec(argv=("bash", "-c", script), timeout_seconds=20))
    assert result.ended == "exited"
    assert sandbox.snapshot().id
    assert sandbox.excess is None


@pytest.mark.parametrize(
    ("script", "ended"),
    [
        ("i=0; while :; do i=$((i+1)); echo > $i; done", "files"),
        (f'python3 -c "{DEEP.format(3000)}"; sleep 60', "files"),
        ("for i in 1 2 3; do truncate -s 60M s$i; done; sleep 60", "disk"),
    ],
    ids=["files one by one", "too deep to measure", "holes"],
)
def test_a_command_that_goes_past_the_limits_is_ended(
    sandbox: DockerSandbox, script: str, ended: str
) -> None:
    """Folders too deep for the engine made it report -1 bytes of disk use, which is below every limit."""
    result = sandbox.exec(ExecSpec(argv=("bash", "-c", script), timeout_seconds=50))
    assert (result.ended, result.exit_code) == (ended, None)


def test_a_build_step_may_make_no_more_files_than_a_sandbox() -> None:
    dockerfile = "ARG BASE\nFROM ${BASE}\nRUN mkdir -p $(seq -f /srv/%g 400) && sleep 50\n"
    spec = BuildSpec(
        name="many",
        dockerfile=dockerfile,
        environment=Environment(build_args={"BASE": "assay-base"}),
        timeout_seconds=60,
    )
    with DockerSandboxes.model_validate(LIMITS).build(spec) as build:
        assert build.error
        assert build.error.type == "files"
        assert build.seconds < 40


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., TrialRecord]:
    """Run one generated task with the oracle, as root."""

    def run(solve: str, toml: str = "", **limits: Any) -> TrialRecord:
        make_task(tmp_path / "tasks", "made", solve, toml='[agent]\nuser = "root"\ntimeout_sec = 30\n' + toml)
        cell = Cell(
            agent=Oracle(),
            model=NO_MODEL,
            dataset=dataset(tmp_path / "tasks"),
            budget=Budget(),
            attempts=1,
        )
        sandboxes, store = DockerSandboxes.model_validate(limits), Store(tmp_path / "outputs")
        sandboxes.prepare((), print)
        (trial,) = make_plan([cell], sandboxes, lambda _: ()).trials
        return run_to_the_end(
            trial, TrialContext(sandboxes, Gateway(tmp_path), store, "test", {}), 0, lambda: False
        )

    return run


@pytest.mark.parametrize(
    ("solve", "reason"),
    [
        ("touch /app/done; for i in 1 2 3; do truncate -s 30M /srv/$i; done", "sandbox.disk_mb"),
        ("touch /app/done; cd /srv; seq 400 | xargs touch", "sandbox.files"),
    ],
    ids=["disk", "files"],
)
def test_a_trial_past_its_limits_at_the_end_is_worth_nothing(
    run: Callable[..., TrialRecord], solve: str, reason: str
) -> None:
    """Although it had done its task: a machine past its limits is not copied, and so not judged."""
    record = run(solve, **LIMITS)
    assert (record.status, record.reward) == (Status.AGENT_ERROR, 0.0), record
    assert record.error
    assert reason in record.error.message
