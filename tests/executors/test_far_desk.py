"""The desk and a crew elsewhere, without Ray between them: what a crew that is taken for dead can no longer do."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from runner import __version__
from runner.errors import ConfigError, GatewayError, OutputsError, Stopped
from runner.executors.desk import NODE_LOST, Desk
from runner.executors.ray.executor import secrets_of
from runner.executors.ray.far_desk import FarAccount, FarDisplay, FarStore
from runner.executors.ray.line import Line
from runner.executors.ray.messages import Address, Ended, Kit, Secrets, address_of
from runner.executors.ray.parcels import pack, put_in
from runner.gateway import Gateway
from runner.gateway.account import Entry, SweepAccount
from runner.records import Activity, CallLimits, LiveTrial, ModelCall, Status
from runner.report.progress import Progress
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from tests.support.crew_trials import crew_sweep
from tests.support.records_factory import trial_record
from tests.support.waiting import until

pytest.importorskip("ray")

from runner.executors.ray.crew import NodeCrew, Trials
from runner.executors.ray.hired import _ahead
from runner.executors.ray.window import Window

HELD = {"usd": 0.5, "input_tokens": 100, "output_tokens": 50, "turns": 1}
NOTHING = dict.fromkeys(HELD, 0.0)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_FAKED_KEY", "a-key")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    sweep = crew_sweep(tmp_path / "outputs", "gateway.concurrency=1", "executor.retries=1")
    plan = make_plan(sweep.cells, sweep.settings.sandbox, lambda _: ())
    gateway = Gateway(tmp_path / "g", sweep.settings.gateway)
    return Desk(sweep, plan, Store(tmp_path / "outputs"), gateway, Progress(len(plan.todo)))


def entry(trial: str, *, at: int = 1, held: bool = True, usd: float = 0.0, session: str = "s") -> Entry:
    charged = NOTHING | {"usd": usd}
    return Entry(session, trial, "ledger.jsonl", "openai", 0, at, charged, HELD if held else NOTHING)


Work = Callable[[Line, Window], Coroutine[Any, Any, None]]


def connected(desk: Desk, work: Work) -> None:
    """Do something at a crew's end of a line whose other end is a window of the desk."""

    async def both() -> None:
        line = Line()
        window = Window(desk, line.answer)

        async def carry() -> None:
            while True:
                window.take(await line.messages())

        carrying = asyncio.create_task(carry())
        await work(line, window)
        carrying.cancel()

    asyncio.run(both())


def test_what_a_trial_on_another_node_does_is_seen_at_the_desk(desk: Desk) -> None:
    key = desk.plan.todo[0].key
    desk.display.started(key, "x")

    async def work(line: Line, window: Window) -> None:  # noqa: ARG001 - the signature's
        display = FarDisplay(line)
        display.entered(key, "agent")
        display.acting(key, Activity(doing="model", turns=3))
        await asyncio.to_thread(until, lambda: shown(desk).activity.turns)

    connected(desk, work)
    assert (shown(desk).phase, shown(desk).activity) == ("agent", Activity(doing="model", turns=3))


def shown(desk: Desk) -> LiveTrial:
    """The only trial that runs, as the display knows it."""
    assert isinstance(desk.display, Progress)
    (trial,) = desk.display.running({})
    return trial


def test_what_a_lost_crew_held_is_charged_at_its_worst_and_its_call_is_lost(desk: Desk) -> None:
    key = desk.plan.todo[0].key

    async def work(line: Line, window: Window) -> None:
        account = FarAccount(line, CallLimits())
        await asyncio.wrap_future(line.ask("begin", key))
        await account.sending(entry(key))
        assert desk.account.spent["usd"] == 0.0, "a call under way is not spent"
        await window.close()

    connected(desk, work)
    assert desk.account.spent == HELD
    _, (retry,) = desk.store.begin(key)
    assert (retry.lost, retry.reason.type) == (1, "RunnerDied")


def test_what_is_known_of_an_answered_call_survives_its_crew(desk: Desk) -> None:
    key = desk.plan.todo[0].key
    call = ModelCall.model_validate(
        {
            "index": 0,
            "api": "chat",
            "model": "m",
            "started_at": "2026-01-01T00:00:00Z",
            "latency_seconds": 1.0,
            "request": {"a": "secret"},
            "response": {"b": "secret"},
            "status_code": 200,
            "usage": {"input_tokens": 7, "output_tokens": 3},
            "cost_usd": 0.25,
        }
    )

    async def work(line: Line, window: Window) -> None:
        account = FarAccount(line, CallLimits())
        await asyncio.wrap_future(line.ask("begin", key))
        await account.sending(entry(key))
        account.ended(entry(key, at=2, held=False, usd=0.25), call)
        await asyncio.wrap_future(line.ask("may_start"))
        await window.close()

    connected(desk, work)
    assert desk.account.spent["usd"] == 0.25
    assert "secret" not in (desk.store.folder(key) / "ledger.jsonl").read_text()
    _, (retry,) = desk.store.begin(key)
    assert (retry.lost, retry.turns, retry.cost_usd, retry.usage.input_tokens) == (0, 1, 0.25, 7)


def test_a_record_is_taken_once_and_only_of_a_try_that_began(desk: Desk, tmp_path: Path) -> None:
    key = desk.plan.todo[0].key
    record = trial_record(key)

    async def work(line: Line, window: Window) -> None:
        store = FarStore(line, tmp_path / "node")

        def crew() -> None:
            with pytest.raises(FileNotFoundError):
                store.write(record)
            folder, _ = store.begin(key)
            (folder / "agent.stdout").write_text("said")
            (folder / "again").mkdir()
            (folder / "again" / "x").write_text("y")
            store.write(record)

        with pytest.raises(OutputsError, match="did not take"):
            await window.keep(record, {}, -1)
        await asyncio.to_thread(crew)
        assert await window.keep(record, store.parcel(key), line.last)
        assert not await asyncio.wrap_future(line.ask("write", record, {})), "twice is once"
        with pytest.raises(OutputsError, match="did not take"):
            await window.keep(record, {}, -1)

    connected(desk, work)
    assert desk.store.read(key) == record
    assert (desk.store.folder(key) / "agent.stdout").read_text() == "said"
    assert (desk.store.folder(key) / "again" / "x").read_text() == "y"
    assert not list(desk.store.folder(key).glob(".arriving*"))


def test_files_of_a_trial_arrive_in_folders_and_links_do_not(tmp_path: Path) -> None:
    left, arrived = tmp_path / "left", tmp_path / "arrived"
    (left / "again").mkdir(parents=True)
    (left / "ledger.jsonl").write_text("with what was said")
    (left / "again" / "x\n").write_bytes(b"\0y")
    (left / "link").symlink_to("/etc/passwd")
    os.mkfifo(left / "pipe")
    arrived.mkdir()
    (arrived / "ledger.jsonl").write_text("as the desk noted it")
    (arrived / "ledger.sent").write_text("0")
    put_in(pack(left), arrived)
    files = {
        str(path.relative_to(arrived)): path.read_bytes() for path in arrived.rglob("*") if path.is_file()
    }
    assert files == {"ledger.jsonl": b"with what was said", "again/x\n": b"\0y"}


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "a//x", "", ".", "a\0b"])
def test_a_path_that_leads_out_of_the_trials_folder_is_refused_with_all_others(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "trial").mkdir()
    with pytest.raises(ConfigError, match="A crew sent a file named"):
        put_in({"good": b"", name: b""}, tmp_path / "trial")
    assert [path.name for path in tmp_path.rglob("*")] == ["trial"]


def test_a_trial_that_left_nothing_but_its_record_arrives_too(desk: Desk, tmp_path: Path) -> None:
    key = desk.plan.todo[0].key

    async def work(line: Line, window: Window) -> None:
        store = FarStore(line, tmp_path / "node")
        retries = await window.begin(key)
        assert retries == ()
        store.begun(key, retries)
        store.begin(key)
        store.write(trial_record(key))
        assert await window.keep(trial_record(key), store.parcel(key), line.last)
        assert line.last == -1, "the desk was asked nothing: one call runs a trial"

    connected(desk, work)
    assert desk.store.read(key) == trial_record(key)


def test_a_spoiled_try_is_written_before_the_next_one_begins(desk: Desk, tmp_path: Path) -> None:
    key = desk.plan.todo[0].key
    spoiled = trial_record(key, status=Status.INFRA_INVALID, reward=None, passed=None)

    async def work(line: Line, window: Window) -> None:
        store = FarStore(line, tmp_path / "node")
        store.begun(key, await window.begin(key) or ())

        def crew() -> None:
            store.begin(key)
            store.write(spoiled)
            assert store.parcel(key) is None, "the desk has it"
            assert desk.store.read(key) == spoiled
            _, retries = store.begin(key)
            assert len(retries) == 1
            store.write(trial_record(key))

        await asyncio.to_thread(crew)
        assert await window.keep(trial_record(key), store.parcel(key), line.last)

    connected(desk, work)
    assert desk.store.read(key) == trial_record(key)


def test_a_record_waits_until_the_spend_of_its_trial_is_known(desk: Desk) -> None:
    """The result of a trial comes by another way than its messages. The next trial begins once it is there."""
    key = desk.plan.todo[0].key

    async def work() -> None:
        line = Line()
        window = Window(desk, line.answer)
        await window.begin(key)
        FarAccount(line, CallLimits()).closed(entry(key, at=2, held=False, usd=0.25))
        keeping = asyncio.create_task(window.keep(trial_record(key), {}, line.last))
        await asyncio.sleep(0.1)
        assert not keeping.done()
        window.take(await line.messages())
        assert await keeping
        assert desk.account.spent["usd"] == 0.25

    asyncio.run(work())


def test_a_crew_that_is_given_up_begins_no_trial_and_leaves_no_record(desk: Desk) -> None:
    key = desk.plan.todo[0].key

    async def work() -> None:
        window = Window(desk, lambda _: None)
        await window.begin(key)
        keeping = asyncio.create_task(window.keep(trial_record(key), {}, 0))  # its messages never arrive
        await asyncio.sleep(0)
        await window.close()
        assert not await keeping
        assert not await window.keep(trial_record(key), {}, -1)
        assert await window.begin(key) is None

    asyncio.run(work())
    assert desk.store.read(key) is None


def test_a_trial_has_begun_once_its_crew_says_so_and_not_when_it_is_handed_over(desk: Desk) -> None:
    first, second, *_ = (trial.key for trial in desk.plan.todo)

    async def work() -> None:
        line = Line()
        window = Window(desk, line.answer)
        await window.begin(first)
        await window.begin(second)
        assert not window.begun
        FarDisplay(line).entered(first, "environment")
        window.take(await line.messages())
        assert window.begun == {first}

    asyncio.run(work())


def test_a_trial_that_finds_no_place_in_time_goes_back_and_never_starts(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("runner.executors.ray.crew.WAITING_SECONDS", 0.2)
    first, second, third, *_ = map(address_of, desk.plan.todo)
    crew = OneByOne(tmp_path)

    async def work() -> None:
        running = asyncio.create_task(crew.run(first, ()))
        await asyncio.sleep(0)
        assert await crew.run(second, ()) == Ended(unstarted=True)
        waiting = asyncio.create_task(crew.run(third, ()))
        await asyncio.sleep(0)
        await crew.stop()
        assert await waiting == Ended(unstarted=True), "a sweep that is stopped starts nothing more"
        crew.go_on.set()
        assert (await running).refused == "done"

    asyncio.run(work())
    assert crew.started == [first.key]


class OneByOne(NodeCrew):
    """A crew with one place, whose trials wait until they are told to go on."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._store = FarStore(self._line, folder)
        self._pool = ThreadPoolExecutor(1)
        self.started: list[str] = []
        self.go_on = Event()

    def _run(self, address: Address) -> Ended:
        self.started.append(address.key)
        self.go_on.wait()
        return Ended(refused="done")


def test_the_folder_of_a_trial_leaves_its_node_with_the_result(desk: Desk, tmp_path: Path) -> None:
    crew, address = Leaving(tmp_path), address_of(desk.plan.todo[0])
    ended = asyncio.run(crew.run(address, ()))
    assert (ended.parcel, ended.record) == ({"agent.stdout": b"said"}, trial_record(address.key))
    until(lambda: not any(tmp_path.glob("trials/*")))


class Leaving(OneByOne):
    """A crew whose trials leave a file and a record."""

    def _run(self, address: Address) -> Ended:
        folder, _ = self._store.begin(address.key)
        (folder / "agent.stdout").write_text("said")
        record = trial_record(address.key)
        self._store.write(record)
        return Ended(record=record)


@pytest.mark.parametrize(
    ("seconds", "ahead"), [(0.001, 4), (0.05, 4), (0.1, 2), (0.5, 1), (0.99, 1), (1.0, 0), (600.0, 0)]
)
def test_as_many_trials_are_handed_ahead_as_keep_a_place_busy_and_only_short_ones(
    seconds: float, ahead: int
) -> None:
    assert _ahead(trial_record("k", wall_seconds=seconds)) == ahead
    spoiled = trial_record("k", wall_seconds=seconds, status=Status.INFRA_INVALID, reward=None, passed=None)
    assert _ahead(spoiled) == 0


def test_a_place_of_a_lost_crew_is_free_again(desk: Desk) -> None:
    """The prototype's crew that was killed while it waited took a place for ever."""

    async def work(line: Line, window: Window) -> None:
        account = FarAccount(line, CallLimits(concurrency=1))
        holding = account.place("one", "openai")
        await holding.__aenter__()
        waiting = asyncio.create_task(account.place("two", "openai").__aenter__())
        await asyncio.sleep(0.1)
        assert desk.account.waiting == 1
        await window.close()
        waiting.cancel()
        async with asyncio.timeout(5), desk.account.place("three", "openai"):
            pass

    connected(desk, work)
    assert desk.account.waiting == 0


def test_without_a_desk_no_call_is_sent_and_no_trial_begins(tmp_path: Path) -> None:
    line = Line()
    line.cut("The desk of the sweep is gone.")
    with pytest.raises(GatewayError, match="desk"):
        asyncio.run(FarAccount(line, CallLimits()).sending(entry("k")))
    with pytest.raises(OutputsError, match="desk"):
        FarStore(line, tmp_path).begin("k")


def test_trials_of_several_nodes_that_want_one_file_of_the_cache_make_it_once(
    desk: Desk, tmp_path: Path
) -> None:
    """Each node used to have a cache of its own, and paid for the same guidelines."""
    made: list[str] = []

    def crew(line: Line, name: str) -> bytes:
        store = FarStore(line, tmp_path / name)
        with store.cached("guidelines/x.json", lambda: None) as entry:
            if entry.content is None:
                made.append(name)
                time.sleep(0.3)
                entry.keep(name.encode())
        with store.cached("guidelines/x.json", lambda: None) as entry:
            assert entry.content
            return entry.content

    async def both(line: Line, _: Window) -> None:
        async with asyncio.TaskGroup() as group:
            other = Line()
            window = Window(desk, other.answer)

            async def carry() -> None:
                while True:
                    window.take(await other.messages())

            carrying = asyncio.create_task(carry())
            got = [group.create_task(asyncio.to_thread(crew, *each)) for each in ((line, "a"), (other, "b"))]
        carrying.cancel()
        assert {each.result() for each in got} == {made[0].encode()}

    connected(desk, both)
    assert len(made) == 1
    assert (desk.store.cache / "guidelines" / "x.json").read_text() == made[0]


def test_a_crew_that_is_lost_while_it_makes_a_file_of_the_cache_leaves_it_to_the_next(
    desk: Desk, tmp_path: Path
) -> None:
    async def work(line: Line, window: Window) -> None:
        store = FarStore(line, tmp_path / "node")
        lost = store.cached("x.json", lambda: None)
        assert (await asyncio.to_thread(lost.__enter__)).content is None
        await window.close()
        next_line = Line()
        next_window = Window(desk, next_line.answer)
        claim = next_line.ask("claim", "x.json")
        next_window.take(await next_line.messages())
        async with asyncio.timeout(5):
            assert await asyncio.wrap_future(claim) is None
        await next_window.close()

    connected(desk, work)


def test_a_trial_that_waits_for_a_file_of_another_node_can_be_stopped(desk: Desk, tmp_path: Path) -> None:
    def stop() -> None:
        raise Stopped("The user stopped the run.")

    async def work(line: Line, _: Window) -> None:
        store = FarStore(line, tmp_path / "node")
        holding = store.cached("x.json", lambda: None)
        await asyncio.to_thread(holding.__enter__)
        with pytest.raises(Stopped):
            await asyncio.to_thread(store.cached("x.json", stop).__enter__)

    connected(desk, work)


def test_an_entry_that_arrives_late_does_not_hide_a_newer_one() -> None:
    account = SweepAccount(CallLimits())
    newer = entry("k", at=3, usd=1.0)
    account.ended(newer, None)  # type: ignore[arg-type]
    asyncio.run(account.sending(entry("k", at=2)))
    assert account.spent["usd"] == 1.0


def test_a_trial_whose_nodes_are_lost_too_often_has_a_record_that_says_so(desk: Desk) -> None:
    trial = desk.next()
    assert trial
    assert desk.lost(trial, "node a: silent") is None
    assert desk.next() == trial, "it comes first"
    record = desk.lost(trial, "node b: silent")
    assert record
    assert (record.status, record.error and record.error.type) == (Status.INFRA_INVALID, NODE_LOST)
    assert record.error
    assert record.error.message == "Its machine was lost 2 times: node b: silent"
    assert desk.store.read(trial.key) == record


def kit(desk: Desk, **changed: Any) -> Kit:
    return Kit(
        version=__version__,
        composed=desk.sweep.composed,
        sweep="made",
        folder=str(Path.cwd()),
        width=1,
        retries=0,
        samples=(address_of(desk.plan.todo[0]),),
        trials=(),
    ).model_copy(update=changed)


def test_a_node_with_another_version_or_other_files_takes_no_trials(desk: Desk) -> None:
    other = address_of(desk.plan.todo[0])._replace(key="0" * 32)
    unknown = other._replace(task="gone")
    check = NodeCrew()._check
    assert "install the same version" in check(kit(desk, version="0.0"), Secrets())
    assert "is another trial there" in check(kit(desk, samples=(other,)), Secrets())
    assert "It knows no task gone" in check(kit(desk, samples=(unknown,)), Secrets())


def test_a_crew_makes_the_same_trials_of_what_hydra_composed(desk: Desk) -> None:
    trials = Trials(desk.sweep)
    for trial in desk.plan.todo:
        assert trials.find(address_of(trial)) == trial
    with pytest.raises(ConfigError):
        trials.find(address_of(desk.plan.todo[0])._replace(key=""))


def test_keys_travel_and_are_not_shown(desk: Desk) -> None:
    secrets = secrets_of(desk.sweep)
    assert secrets == {"ASSAY_FAKED_KEY": "a-key"}
    assert "a-key" not in f"{secrets} {secrets!r} {kit(desk)!r}"
    assert os.environ["ASSAY_FAKED_KEY"] not in kit(desk).model_dump_json()
