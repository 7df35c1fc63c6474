"""The view of a sweep that runs elsewhere, read as text."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runner.errors import ConfigError
from runner.files import write_atomically
from runner.records import Activity, ErrorInfo, LiveSweep, LiveTrial, PlannedRow, SpendLimits, Status
from runner.report.watch_view import ending, summary, view
from runner.report.watched_sweep import Ended, SweepNow, WatchedSweep
from runner.sweeps import live_file
from runner.sweeps.store import Store
from tests.report.plans import record, row, write_sweep
from tests.support.records_factory import NOON

TASKS = ("easy-1", "easy-2", "hard-1")
ROWS = tuple(row(agent, task, model="scripted_careful") for agent in ("codex", "mini") for task in TASKS)
HOSTILE = "sh: echo \x1b]0;owned\x07 \x1b[2J\x9b31m\u202e\r\nnext\tline \udcff"


def live_trial(key: str, **changed: Any) -> LiveTrial:
    values: dict[str, Any] = {
        "key": key,
        "phase": "agent",
        "started_at": NOON - timedelta(seconds=40),
        "phase_since": NOON - timedelta(seconds=30),
        "activity": Activity(
            doing="tool",
            text="bash: pytest -x",
            turns=3,
            input_tokens=9000,
            output_tokens=600,
            cost_usd=0.05,
        ),
        "activity_since": NOON - timedelta(seconds=5),
        "limits": SpendLimits(usd=0.5, wall_seconds=600),
    }
    return LiveTrial(**values | changed)


def live_sweep(*running: LiveTrial, **changed: Any) -> LiveSweep:
    values: dict[str, Any] = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "began": NOON - timedelta(minutes=5),
        "written": NOON,
        "total": 6,
        "done": 3,
        "left": "2-4 min left",
        "spent": {"usd": 1.25, "input_tokens": 12000},
        "limits": SpendLimits(usd=5, input_tokens=100_000, wall_seconds=3600),
        "running": running,
    }
    return LiveSweep(**values | changed)


def ended(planned: PlannedRow, kind: Any, **changed: Any) -> Ended:
    values: dict[str, Any] = {
        "row": planned,
        "kind": kind,
        "status": "completed",
        "reason": "",
        "cost_usd": 0.02,
        "judge_usd": 0.0,
        "tokens": 4500,
        "turns": 5,
        "seconds": 75.0,
        "finished_at": NOON - timedelta(seconds=90),
        "lasts": True,
        **changed,
    }
    return Ended(**values)


def moment(**changed: Any) -> SweepNow:
    """Three trials that ended in three ways, one that runs, one that is planned and one that is refused."""
    first, second, third, fourth, fifth, sixth = (each.key for each in ROWS)
    gone = "EngineError: The container is gone."
    values: dict[str, Any] = {
        "name": "nightly",
        "moment": NOON,
        "life": "runs",
        "live": live_sweep(live_trial(fourth), pid=12, host="vm"),
        "rows": ROWS,
        "by_key": {each.key: each for each in ROWS},
        "kinds": {
            first: "passed",
            second: "failed",
            third: "invalid",
            fourth: "running",
            fifth: "planned",
            sixth: "refused",
        },
        "ended": {
            first: ended(ROWS[0], "passed"),
            second: ended(ROWS[1], "failed", status="timeout", cost_usd=0.1),
            third: ended(ROWS[2], "invalid", status="infra_invalid", reason=gone, cost_usd=None),
        },
        "running": (live_trial(fourth),),
        "others": False,
        **changed,
    }
    return SweepNow(**values)


def lines(now: SweepNow, width: int, height: int | None = None) -> list[str]:
    return [line.plain.rstrip() for line in view(now, width, height)]


def test_what_80_columns_show() -> None:
    assert lines(moment(), 80) == [
        "nightly  has run for 5:00 (process 12 on vm)",
        "━━━━━━━━━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌  3/5 done  2-4 min left",
        "■ 1 passed  x 1 failed  ! 1 invalid  > 1 running  · 1 planned  - 1 refused",
        "Spent >=0.17 USD, 23.1k tokens, 18 calls",
        "This command: 1.25 of 5 USD, 12k of 100k input tokens, 5:00 of 1:00:00",
        "",
        "codex · scripted_careful (scripted)  ■x!  ■1 x1 !1  >=0.12 USD",
        "mini · scripted_careful (scripted)   >·-  >1 ·1 -1  0.05 USD",
        "",
        "Running",
        "> agent 0:30 of 10:00  mini · scripted_careful (scripted) · easy-1",
        "  0.05 of 0.5 USD, 3 calls, 9.6k tokens  0:05 bash: pytest -x",
        "",
        "Ended last",
        "■ passed 1:30 ago, after 1:15, 0.02 USD  codex · scripted_careful (scripted) · …",
        "x failed (timeout) 1:30 ago, after 1:15, 0.10 USD  codex · scripted_careful (sc…",
        "! invalid (infra_invalid) 1:30 ago, after 1:15, >=0.00 USD  codex · scripted_ca…",
    ]


def test_a_wide_terminal_shows_a_running_trial_on_one_line() -> None:
    assert (
        "> agent 0:30 of 10:00     mini · scripted_careful (scripted) · easy-1  0.05 of 0.5 USD, 3 calls, 9.6k tokens"
        "  0:05 bash: pytest -x"
    ) in lines(moment(), 160)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (
            {"activity": Activity(doing="model", text="ls: .", turns=1)},
            "waits for its model 0:05, after ls: .",
        ),
        ({"activity": Activity(doing="model")}, "waits for its model 0:05"),
        ({"activity": Activity()}, "no model call yet"),
        (
            {"activity": Activity(text="ls: .", turns=1, cost_usd=None)},
            ">=0.00 USD, 1 call, 0 tokens  after ls: .",
        ),
        ({"phase": "building", "image": "the image of a", "activity": Activity()}, "the image of a"),
    ],
)
def test_what_a_running_trial_does(changed: dict[str, Any], says: str) -> None:
    trial = live_trial(ROWS[3].key, **{"limits": SpendLimits(), **changed})
    shown = lines(moment(running=(trial,)), 80)
    assert shown[shown.index("Running") + 2].strip().endswith(says)


def test_a_log_gets_one_line() -> None:
    assert summary(moment()) == (
        "3/5 done, >=0.17 USD, 23.1k tokens, 18 calls, 2-4 min left, 1 running (1 agent), 1 passed, 1 failed, 1 invalid"
    )


@pytest.mark.parametrize(
    ("life", "changed", "says"),
    [
        ("runs", {}, "The sweep's process 12 on vm is alive."),
        (
            "silent",
            {"written": NOON - timedelta(seconds=90)},
            "Nothing was heard for 1:30 of process 12 on vm",
        ),
        (
            "died",
            {},
            "is gone and did not say that it ended, with 1 trial under way. The same command resumes.",
        ),
        ("ended", {"ended": NOON}, "The sweep's command has ended (process 12 on vm, 2026-01-01 "),
    ],
)
def test_the_last_sentence_is_about_the_process(life: str, changed: dict[str, Any], says: str) -> None:
    live = live_sweep(live_trial("k"), pid=12, host="vm", **changed)
    assert says in ending(moment(life=life, live=live))
    assert "No process is at work" in ending(moment(life="absent", live=None))


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("height", [None, 8, 24])
def test_no_escape_of_an_agent_reaches_the_terminal(width: int, height: int | None) -> None:
    """Names, commands, phases and errors are other people's."""
    evil = ROWS[3].model_copy(update={"agent": HOSTILE, "task": HOSTILE, "model": "漢字" * 30})
    rows = (*ROWS[:3], evil)
    bad = ended(rows[2], "invalid", reason=HOSTILE)
    trial = live_trial(
        evil.key, phase=HOSTILE[:20], image=HOSTILE, activity=Activity.model_construct(text=HOSTILE)
    )
    now = moment(
        name=HOSTILE,
        rows=rows,
        by_key={each.key: each for each in rows},
        kinds={each.key: "invalid" for each in rows[:3]} | {evil.key: "running"},
        ended={rows[2].key: bad},
        running=(trial,),
        live=live_sweep(trial, host="vm\x1b[1m", doing=HOSTILE, left=""),
    )
    shown = view(now, width, height)
    assert all(line.plain.isprintable() for line in shown)
    assert all(line.cell_len <= width for line in shown)
    assert height is None or len(shown) <= height
    assert summary(now).isprintable()
    assert ending(now).isprintable()


def test_where_the_lines_do_not_fit_the_boxes_go_first() -> None:
    rows = tuple(row(f"agent{at:02}", f"easy-{task}") for at in range(12) for task in range(60))
    running = tuple(live_trial(each.key) for each in rows[:9])
    now = moment(
        rows=rows,
        by_key={each.key: each for each in rows},
        kinds={each.key: "running" if each in rows[:9] else "planned" for each in rows},
        ended={},
        running=running,
    )
    short, tall = lines(now, 80, 24), lines(now, 80, 60)
    assert len(short) <= 24
    assert "agent00 · scripted_careful (scripted)  >9 ·51  0.45 USD" in short
    assert "  >>>>>>>>>· ·········· ·········· ·········· ·········· ··········" in tall
    assert [line for line in short if line.startswith("and ")] == ["and 3 more cells", "and 7 more"]


@pytest.mark.parametrize("at_work", [0, 1, 9])
def test_more_cells_than_lines_and_nothing_at_work_ended_the_view(at_work: int) -> None:
    rows = tuple(row(f"agent{at:02}", f"easy-{task}") for at in range(24) for task in range(5))
    running = tuple(live_trial(each.key) for each in rows[:at_work])
    kinds = {each.key: "running" if each in rows[:at_work] else "planned" for each in rows}
    now = moment(rows=rows, by_key={each.key: each for each in rows}, kinds=kinds, ended={}, running=running)
    for height in range(60):
        assert len(view(now, 80, height)) <= height


def test_boxes_of_attempts_stand_together() -> None:
    rows = tuple(row("codex", task, attempt=number) for number in (1, 2) for task in ("easy-1", "easy-2"))
    kinds = dict(zip((each.key for each in rows), ("passed", "failed", "planned", "invalid"), strict=True))
    now = moment(rows=rows, by_key={each.key: each for each in rows}, kinds=kinds, ended={}, running=())
    assert "codex · scripted_careful (scripted)  ■· x!  ■1 x1 !1 ·1  0.00 USD" in lines(now, 80)


# --- reading ---


def say(folder: Path, live: LiveSweep) -> None:
    write_atomically(folder / live_file.NAME, live.model_dump_json().encode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sweep with one trial that ended."""
    return write_sweep(tmp_path, list(ROWS), {ROWS[0].key: record(ROWS[0])})


def test_a_sweep_is_read_from_what_is_on_disk(folder: Path) -> None:
    store, watched = Store(folder.parent), WatchedSweep(folder)
    now = watched.now()
    assert (now.life, now.is_over, now.counts["passed"], now.counts["planned"]) == ("absent", True, 1, 5)
    with store.locked():
        say(folder, live_sweep(live_trial(ROWS[1].key, started_at=datetime.now(UTC))))
        now = watched.now()
        assert (now.life, now.kinds[ROWS[1].key]) == ("runs", "running")
        store.write(record(ROWS[1], passed=False, status=Status.TIMEOUT, finished_at=datetime.now(UTC)))
        now = watched.now()  # the record is newer than `live.json`
        assert (now.kinds[ROWS[1].key], now.running, now.ended[ROWS[1].key].status) == (
            "failed",
            (),
            "timeout",
        )
    now = watched.now()
    assert (now.life, now.is_over) == ("died", True)
    say(folder, live_sweep(ended=NOON))
    assert watched.now().life == "ended"


def test_a_process_elsewhere_is_believed_while_it_is_heard(folder: Path) -> None:
    watched = WatchedSweep(folder)
    say(folder, live_sweep(host="elsewhere", written=datetime.now(UTC)))
    assert (watched.now().life, watched.now().is_over) == ("runs", False)
    say(folder, live_sweep(host="elsewhere"))
    assert (watched.now().life, watched.now().is_over) == ("silent", False)


def test_a_spoiled_trial_is_read_again_and_a_finished_one_only_when_it_ran_again(folder: Path) -> None:
    """The record of a trial that our side spoiled is moved aside for its next try."""
    store, watched, (spoiled, again) = Store(folder.parent), WatchedSweep(folder), (ROWS[1], ROWS[0])
    error = ErrorInfo(type="EngineError", message="gone")
    store.write(record(spoiled, passed=None, status=Status.INFRA_INVALID, error=error))
    with store.locked():
        say(folder, live_sweep())
        assert watched.now().kinds[spoiled.key] == "invalid"
        store.begin(spoiled.key)
        assert watched.now().kinds[spoiled.key] == "planned"
        say(folder, live_sweep(live_trial(again.key, started_at=datetime.now(UTC))))
        assert watched.now().kinds[again.key] == "running"
        store.begin(again.key)
        store.write(record(again, passed=False))
        say(folder, live_sweep())
        assert watched.now().kinds[again.key] == "failed"


def test_another_process_that_holds_outputs_is_told_apart(folder: Path) -> None:
    watched = WatchedSweep(folder)
    say(folder, live_sweep(pid=1, ended=NOON))
    with Store(folder.parent).locked():
        assert (watched.now().life, watched.now().others) == ("ended", True)
    assert not watched.now().others


def test_a_file_of_another_version_is_as_good_as_none(folder: Path) -> None:
    (folder / live_file.NAME).write_text('{"schema": 9}')
    assert WatchedSweep(folder).now().life == "absent"


def test_there_is_no_such_sweep(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no sweep named nightly"):
        WatchedSweep(tmp_path / "nightly")
