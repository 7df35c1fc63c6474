"""Sweeps that are resumed and reported from other machines: `outputs=s3://...`."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path

import pytest

from runner.__main__ import main
from runner.cli.config import load_composed
from runner.errors import ConfigError
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.mirror.opening import open_store
from runner.records import LiveSweep
from runner.resources import ROOT
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from tests.support.crew_trials import CONF, crew_sweep
from tests.support.object_store import ObjectServer, environment
from tests.support.waiting import PATIENCE_SECONDS, until
from tests.support.warm import Process

SECRET = environment("")["AWS_SECRET_ACCESS_KEY"]
LEASE_SECONDS = 4


pytestmark = pytest.mark.usefixtures("warm_commands")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the key that the faked provider's model needs."""
    monkeypatch.setenv("ASSAY_FAKED_KEY", "a-key")


class Driver:
    """A machine with a folder of its own that runs the same command as the others."""

    def __init__(self, folder: Path, address: str, *words: str) -> None:
        self.outputs, self.notes = folder / "outputs", folder / "notes"
        self.notes.mkdir(parents=True)
        usual = ("agent=asker", "model=faked", "dataset=numbered", "sandbox=local", "tracker=none")
        self._words = (
            *("--config-dir", str(CONF), *usual, "name=made", "gateway.preflight=false"),
            *(
                f"outputs={address}",
                f"store.local={self.outputs}",
                f"store.lease_seconds={LEASE_SECONDS}",
                *words,
            ),
        )
        # In the key of a trial, so it must be the same everywhere: a path below the current folder.
        self._environment = os.environ | {"CI": "true", "ASSAY_FAKED_KEY": "a-key-of-the-provider"}
        self._environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])

    @contextmanager
    def running(self, *words: str) -> Iterator[Process]:
        with Process((*self._words, *words), self.notes.parent, self._environment) as process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, *words: str) -> tuple[int, str]:
        with self.running(*words) as process:
            said, _ = process.communicate(timeout=2 * PATIENCE_SECONDS)
            return process.wait(0), " ".join(said.split())

    @property
    def begun(self) -> set[str]:
        """Tasks whose trial began here."""
        return {path.name.partition("-")[0] for path in self.notes.glob("*.begins")}

    @property
    def recorded(self) -> set[str]:
        """Keys of the trials with a record here."""
        return {path.parent.name for path in self.outputs.glob("trials/*/*/record.json")}


SLOW = ("dataset.number=5", "executor.workers=1", "agent.notes=notes", "agent.seconds=1.5")


def test_another_machine_goes_on_where_a_killed_driver_stopped_and_a_third_reports(
    address: str, tmp_path: Path
) -> None:
    from runner.mirror.bucket import Bucket  # noqa: PLC0415 - needs obstore

    here, there, third = (Driver(tmp_path / name, address, *SLOW) for name in ("here", "there", "third"))
    with here.running("store.lease_seconds=600") as process:
        until(lambda: len(here.begun) >= 3)
        process.send_signal(signal.SIGSTOP)
        code, said = there.run()
        assert code == 2
        assert f"Another driver is using {address}" in said
        code, said = third.run("job=report")  # at any time
        assert code == 0
        assert "5 trials planned: 2 judged, 0 invalid, 3 not run" in said
        process.kill()
    lease = Bucket(address).get("lease.json")
    assert lease
    Bucket(address).put("lease.json", lease[0].replace(b"600.0", b"0.5"))  # as if ten minutes had passed
    time.sleep(3)

    code, said = there.run()
    assert code == 0, said
    assert len(there.begun) == 3
    assert len(there.begun | here.begun) == len(there.recorded) == 5
    code, said = third.run("job=report")
    assert code == 0
    assert "5 trials planned: 5 judged, 0 invalid, 0 not run" in said
    assert not third.begun
    assert (third.outputs / "made/report/index.html").exists()


def test_what_a_killed_driver_had_spent_is_known_on_another_machine(address: str, tmp_path: Path) -> None:
    """Two calls had been answered, and a third was under way. A third machine is told once, and not again."""
    from runner.mirror.bucket import Bucket  # noqa: PLC0415 - needs obstore

    answers = (
        Behaviour(text="ok"),
        Behaviour(text="ok"),
        Behaviour(text="ok", held="answer"),
        Behaviour(text="ok"),
    )
    with FakeUpstream(*answers) as upstream:
        words = ("dataset.number=1", "agent.questions=3", f"model.api_base={upstream.url}")
        here, there, third = (Driver(tmp_path / name, address, *words) for name in ("here", "there", "third"))
        with here.running() as process:
            until(lambda: len(upstream.requests) == 3)
            time.sleep(LEASE_SECONDS)
            process.kill()
        time.sleep(LEASE_SECONDS + 2)
        code, said = there.run()
        assert code == 0, said
        assert "A driver that ended left 1 trials without a record" in said
    (record,) = Store(there.outputs).load([*there.recorded]).values()
    (retry,) = record.retries
    assert (retry.reason.type, retry.turns, retry.lost, retry.usage.input_tokens) == (
        "RunnerDied",
        2,
        1,
        2000,
    )
    assert record.turns == 3
    objects = [Bucket(address).get(name) for name, _ in Bucket(address).listing("under_way")]
    assert [found[0] for found in objects if found] == [b'{"of":{}}'] * 2
    code, said = third.run("job=report")
    assert code == 0, said
    assert Store(third.outputs).load([record.key])[record.key].retries == (retry,)


def test_a_sweep_of_another_machine_is_watched_through_the_store(address: str, tmp_path: Path) -> None:
    words = (*SLOW, "agent.seconds=5")  # the driver is at work while two other commands start
    here, there = (Driver(tmp_path / name, address, *words) for name in ("here", "there"))
    code, said = there.run("job=watch", "job.once=true")
    assert code == 2
    assert f"No sweep of {address} runs on this machine" in said
    assert "has no sweep named made" in said
    with here.running() as process:
        until(lambda: len(here.begun) >= 3)
        until(lambda: _runs_its_third(address))
        code, said = there.run("job=watch", "job.once=true")
        assert code == 0, said
        assert f"(process {process.pid} on " in said
        assert f"The sweep's process {process.pid} on " in said
        assert "Running > agent 0:0" in said
        assert here.recorded >= there.recorded
        assert len(there.recorded) >= 2
        with there.running("job=watch") as watching:
            watched, _ = watching.communicate(timeout=2 * PATIENCE_SECONDS)
    watched = " ".join(watched.split())
    assert watching.returncode == 0, watched
    assert "5/5 done" in watched
    assert f"The sweep's command has ended (process {process.pid} on " in watched
    assert len(there.recorded) == 5
    assert not there.begun
    assert not (there.outputs / "made/live.json").exists()


def _runs_its_third(address: str) -> bool:
    """Return whether the store says that the agent of the third trial is at work."""
    from runner.mirror.bucket import Bucket  # noqa: PLC0415 - needs obstore

    found = Bucket(address).get("sweeps/made/live.json")
    live = LiveSweep.model_validate_json(found[0]) if found else None
    return live is not None and live.done >= 2 and any(each.phase == "agent" for each in live.running)


def test_a_driver_that_died_elsewhere_is_called_silent_and_one_that_died_here_dead(
    address: str, tmp_path: Path
) -> None:
    from runner.mirror.bucket import Bucket  # noqa: PLC0415 - needs obstore

    here, there = (Driver(tmp_path / name, address, *SLOW) for name in ("here", "there"))
    with here.running() as process:
        until(lambda: len(here.begun) >= 2)
        time.sleep(LEASE_SECONDS / 2)
        process.kill()
    live = Bucket(address).get("sweeps/made/live.json")
    assert live
    old = LiveSweep.model_validate_json(live[0])
    old = old.model_copy(update={"written": old.written - timedelta(seconds=90)})
    Bucket(address).put("sweeps/made/live.json", old.model_dump_json().encode())
    code, said = there.run("job=watch", "job.once=true")
    assert code == 0, said
    assert f"of process {process.pid} on " in said
    assert "Nothing was heard for 1:" in said
    code, said = here.run("job=watch", "job.once=true")
    assert code == 0, said
    assert "is gone and did not say that it ended" in said


def test_a_store_that_goes_down_ends_the_sweep_with_a_sentence_and_the_command_goes_on(
    server: ObjectServer, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server.line() as line:
        with monkeypatch.context() as patch:
            patch.setenv("AWS_ENDPOINT", line.endpoint)
            here = Driver(tmp_path / "here", address, *SLOW)
        with here.running() as process:
            until(lambda: len(here.begun) >= 2)
            line.cut()
            said, _ = process.communicate(timeout=2 * PATIENCE_SECONDS)
    assert process.returncode == 2
    assert "the same command sends it and goes on" in " ".join(said.split())
    assert "Traceback" not in said
    begun, kept = here.begun, here.recorded
    assert len(begun) < 5
    assert kept

    here._environment["AWS_ENDPOINT"] = server.endpoint
    code, said = here.run()
    assert code == 0, said
    assert kept <= here.recorded
    assert len(here.recorded) == 5
    there = Driver(tmp_path / "there", address, *SLOW)
    code, said = there.run()
    assert code == 0, said
    assert not there.begun


def test_what_is_wrong_with_a_store_is_said_before_anything_is_paid_for(
    server: ObjectServer, address: str, tmp_path: Path
) -> None:
    words = ("agent.questions=1", "agent.notes=notes", "gateway.preflight=true")
    for name, where, said, state in (
        ("a", "s3://no-such-bucket/x", "there is no such bucket", nullcontext()),
        ("b", address, "access is refused", server.authenticating()),
    ):
        driver = Driver(tmp_path / name, where, *words)
        with state:
            code, text = driver.run()
        assert code == 2
        assert said in text
        assert not driver.begun
        assert "openai" not in text  # nobody asked the provider


def test_no_secret_and_no_key_of_the_store_is_in_a_file_or_an_object(address: str, tmp_path: Path) -> None:
    from runner.mirror.bucket import Bucket  # noqa: PLC0415 - needs obstore

    driver = Driver(tmp_path / "here", address)
    code, said = driver.run()
    assert code == 0
    texts = [path.read_bytes() for path in driver.outputs.rglob("*") if path.is_file()]
    bucket = Bucket(address)
    names = [
        name for prefix in ("records", "files", "sweeps", "under_way") for name, _ in bucket.listing(prefix)
    ]
    texts += [found[0] for name in [*names, "lease.json"] if (found := bucket.get(name))]
    assert len(texts) > 20
    for secret in (SECRET, "an-account", "a-key-of-the-provider"):
        assert not any(secret.encode() in text for text in [*texts, said.encode()])


def test_keys_are_those_of_a_folder_and_datasets_keep_their_files_in_the_copy(tmp_path: Path) -> None:
    at_store = crew_sweep(Path("x"), "outputs=s3://bucket/team", f"store.local={tmp_path}")
    in_folder = crew_sweep(tmp_path)
    keys = [
        [trial.key for trial in make_plan(sweep.cells, sweep.settings.sandbox, lambda _: ()).trials]
        for sweep in (at_store, in_folder)
    ]
    assert keys[0] == keys[1]
    assert at_store.settings.outputs == tmp_path
    assert at_store.composed[0]["outputs"] == "s3://bucket/team"
    assert load_composed(at_store.composed).settings == at_store.settings
    other = crew_sweep(
        Path("x"), "outputs=s3://bucket/team/", f"store.local={tmp_path}", "dataset=cli_tool_bench"
    )
    assert other.settings.store.address == "s3://bucket/team"
    assert other.composed[0]["dataset"]["verifier"]["cache"] == "${outputs}/references"
    assert other.cells[0].dataset.model_dump()["verifier"]["cache"] == tmp_path / "references"


def test_each_address_and_endpoint_has_a_folder_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("AWS_ENDPOINT", raising=False)
    words = ("outputs=s3://bucket/a", "outputs=s3://bucket-a", "outputs=s3://bucket/a/b")
    folders = {crew_sweep(Path("x"), word).settings.outputs for word in words}
    monkeypatch.setenv("AWS_ENDPOINT", "https://elsewhere")
    folders.add(crew_sweep(Path("x"), words[0]).settings.outputs)
    assert len(folders) == 4
    assert all(folder.parent == tmp_path / "assay/stores" for folder in folders)


@pytest.mark.parametrize(
    "outputs",
    [
        *("gs://bucket/x", "s3://", "s3://a", "s3://bucket/../x", "s3://bucket//x", "s3://key:hush@bucket/x"),
        *("s3://bucket/x?key=hush", "s3://bucket/a b", "http://key:hush@host/bucket"),
    ],
)
def test_what_is_no_address_is_refused_without_repeating_it(outputs: str) -> None:
    with pytest.raises(ConfigError, match="s3://BUCKET/PREFIX") as refused:
        crew_sweep(Path("x"), f"outputs='{outputs}'")
    assert "hush" not in str(refused.value)


def test_without_obstore_the_extra_is_named_and_a_folder_needs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    for module in [name for name in sys.modules if name.startswith("runner.mirror.")]:
        if module not in ("runner.mirror.opening", "runner.mirror.commit"):
            monkeypatch.delitem(sys.modules, module)
    words = ["job=report", "name=made", f"store.local={tmp_path}", "tracker=none"]
    assert main([*words, "outputs=s3://bucket/x"]) == 2
    assert "pip install 'assay[s3]'" in capsys.readouterr().err
    assert type(open_store(crew_sweep(tmp_path).settings)) is Store


def test_no_sandbox_is_given_what_opens_the_store(tmp_path: Path) -> None:
    words = ("dataset=harbor", f"dataset.root={tmp_path}", "dataset.env=[AWS_SECRET_ACCESS_KEY]")
    with pytest.raises(ConfigError, match="AWS_SECRET_ACCESS_KEY opens the store of the records"):
        crew_sweep(Path("x"), "outputs=s3://bucket/team", *words)
    crew_sweep(tmp_path, *words)
