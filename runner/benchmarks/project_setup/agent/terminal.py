"""The agent's hands: one shell that lives as long as the rollout, and files (ExecutionAgent, sections 2.4.2, 2.4.4).

The shell is kept by `terminal_inside.py`, which stays behind in the sandbox; each call asks it by a short command. Our
programs come by environment: neither a full disk nor an image without Python is in their way, and whoever lists the
processes sees none of them at length. The sandbox has to have the `python` runtime.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Base64Bytes, Field, ValidationError

from runner.benchmarks.project_setup.agent.cleaning import clean
from runner.errors import AssayError, Stopped
from runner.protocols import Machine
from runner.records import ExecResult, ExecSpec, Record
from runner.sandbox.inside import PYTHON

PIECE, MOST_CHARACTERS = 100_000, 1_500_000
"""Of a variable, and of all together: a little less than Linux takes."""
LOAD = """import os, sys, types
os.environ = {name[1:]: value for name, value in os.environ.items() if name[0] == "+"}
for variable in [name for name in os.environ if name.startswith("ASSAY_MODULE_")]:
    name = variable.removeprefix("ASSAY_MODULE_")
    sys.modules[name] = types.ModuleType(name)
    exec(os.environ.pop(variable), vars(sys.modules[name]))
given = sorted(name for name in os.environ if name.startswith("ASSAY_REQUEST_"))
sys.argv[1:] = ["".join(map(os.environ.pop, given))]
exec(os.environ.pop("ASSAY_PROGRAM"))"""
"""Runs a program and loads the modules that come with it, all in variables; none of them is passed on. The variables
are a dictionary of ours (see `sandbox.inside.PYTHON`): they are for commands, and none for the interpreter itself."""
MOST_PRINTED = 200_000
"""Of what is shown at once, each end; the program inside keeps less."""
MOST_BYTES = 100_000
"""Of a file that is read."""
FILE_SECONDS = 90.0
"""For a file, after which the sandbox counts as hung; the program inside gives up long before."""
START_SECONDS = 30.0
"""For the shell to be started; it takes a tenth of one."""
SPARE_SECONDS = 60.0
"""Beyond the limit until the sandbox counts as hung and is ended; the programs inside give up long before."""
ATTEMPTS = 12
PAUSE_SECONDS = 1.0
"""Between attempts to start a program where there is no room for one; what is inside makes room after three."""
NOBODY, WENT_AWAY = 3, 4
"""Exit codes of `ask_inside.py`."""
ENDINGS: Final = {
    "disk": "The machine filled its disk and was stopped.",
    "files": "The machine had too many files and was stopped.",
    "deadline": "The machine did not answer any more and was stopped.",
    "lost": "The machine stopped.",
    "cancelled": "The machine was stopped.",
    "exited": "No program can be started in the machine any more:",
}
"""What is said of a machine that is gone, by `ExecResult.ended`."""
ANEW = "The terminal was ended from inside and started anew: variables and activated environments are gone."
_SHELL, _SERVE, _ASK, _FILES = (
    Path(__file__).with_name(f"{name}_inside.py") for name in ("shell", "terminal", "ask", "files")
)


class Shown(Record):
    """What a model is shown of a command."""

    state: Literal["ended", "running", "lost", "gone"]
    """running: the time limit has passed; wait, write or terminate. lost: the terminal ended under the command, and a
    new one was started. gone: the machine itself takes no commands any more, nor will it."""
    output: str = ""
    """What was printed since the last time, both streams in their order, cleaned; the middle of much is left out."""
    exit_code: int | None = None
    """None unless it ended by itself or by a signal (128 + n)."""
    seconds: float = 0.0
    """Since the command began."""
    note: str = ""
    """What else there is to know, in sentences: a new shell, an end by force. Empty: nothing."""


class _Told(Record):
    """What `terminal_inside.py` answers; or what a command answers that took its place."""

    state: Literal["ended", "running"]
    head: Base64Bytes = Field(max_length=MOST_PRINTED)
    tail: Base64Bytes = Field(max_length=MOST_PRINTED)
    dropped: int
    """Bytes between the two."""
    exit_code: int | None
    seconds: float
    cwd: str
    note: str

    def shown(self, note: str) -> Shown:
        """For the model, with what there is to note besides."""
        output = clean(self.head + self.tail)
        if self.dropped:
            output = f"{clean(self.head)}\n[{self.dropped} bytes are left out here]\n{clean(self.tail)}"
        return Shown(
            state=self.state,
            output=output,
            exit_code=self.exit_code,
            seconds=self.seconds,
            note=" ".join(filter(None, (note, self.note))),
        )


class Terminal:
    """A shell in a sandbox that keeps its folder, variables and background processes between commands.

    `limit_seconds` is how long each call waits for a command's end. `check` is called several times a second and
    raises `Stopped` when the rollout may go no further; the sandbox's processes are dead then, its files are not.
    Every method raises `EngineError` when the sandbox cannot be reached, and nothing for what a command does.
    """

    def __init__(self, sandbox: Machine, limit_seconds: float, check: Callable[[], None]) -> None:
        self._sandbox = sandbox
        self._limit = limit_seconds
        self._check = check
        self._name = ""
        self._cwd = sandbox.workdir
        self._number = 0

    @property
    def cwd(self) -> str:
        """The shell's folder after the last command."""
        return self._cwd

    def run(self, command: str) -> Shown:
        """Run a command until it ends or the limit passes; while another one runs it is not started, and so said."""
        return self._ask("run", command)

    def wait(self) -> Shown:
        """Wait for the running command once more."""
        return self._ask("wait")

    def write(self, text: str) -> Shown:
        """Type text and a line's end into the running command's terminal, and wait."""
        return self._ask("write", text)

    def terminate(self) -> Shown:
        """End the running command and all that it started; the shell stays."""
        return self._ask("terminate")

    def _ask(self, what: str, text: str = "") -> Shown:
        self._number += 1
        request = {"number": self._number, "do": what, "text": text.replace("\0", ""), "seconds": self._limit}
        note = ""
        try:
            if not self._name:
                self._start()
            found = self._put(request)
            if found.exit_code == NOBODY and what == "run":  # nothing is lost but the shell
                note = ANEW
                self._start()
                found = self._put(request)
            told = _told(found)
            if told is None:
                self._start()
                return Shown(state="lost", note=ANEW)
        except _TooLong as long:
            return Shown(state="ended", note=str(long))
        except _Gone as gone:
            return Shown(state="gone", note=str(gone))
        self._cwd = told.cwd
        return told.shown(note)

    def _start(self) -> None:
        """Start the shell, in its folder if that is there."""
        self._name = f"assay-terminal-{secrets.token_hex(8)}"
        shell = {f"ASSAY_MODULE_{__package__}.{_SHELL.stem}": _SHELL.read_text()}
        given = _given(_SERVE, {"name": self._name, "folder": self._cwd}) | shell
        _inside(self._sandbox, given, START_SECONDS, self._check)

    def _put(self, request: dict[str, Any]) -> ExecResult:
        """Ask until it is heard; what it asks for is done once, however often that is."""
        given = _given(_ASK, {"name": self._name, **request})
        return _inside(self._sandbox, given, self._limit + SPARE_SECONDS, self._check)


class Answer(Record):
    """Of a tool for files."""

    text: str
    """What was asked for, or a sentence that says why there is none."""
    failed: bool = False


def read_file(sandbox: Machine, path: str, cwd: str) -> Answer:
    """The text of a file of the sandbox, without its end when it is long. Raises `EngineError`."""
    return _file(sandbox, {"path": path, "folder": cwd, "most": MOST_BYTES})


def write_file(sandbox: Machine, path: str, content: str, cwd: str) -> Answer:
    """Write a file of the sandbox, and the folders above it. Raises `EngineError`."""
    return _file(sandbox, {"path": path, "folder": cwd, "content": content})


def _file(sandbox: Machine, request: dict[str, Any]) -> Answer:
    try:
        found = _inside(sandbox, _given(_FILES, request), FILE_SECONDS)
    except (_TooLong, _Gone) as error:
        return Answer(text=str(error), failed=True)
    try:
        return Answer.model_validate_json(found.stdout)
    except ValidationError:
        return Answer(
            text="Something in the sandbox kept the file from being handled: try again.", failed=True
        )


def _inside(
    sandbox: Machine, given: dict[str, str], seconds: float, check: Callable[[], None] = lambda: None
) -> ExecResult:
    """Run a program of ours, again for as long as there is no room for it. Raises `_Gone`."""
    spec = ExecSpec(argv=(PYTHON, "-c", LOAD), env=given, timeout_seconds=seconds)
    for attempt in range(ATTEMPTS):
        check()
        if attempt:
            time.sleep(PAUSE_SECONDS)
        found = sandbox.exec(spec, lambda: _is_stopped(check))
        if found.ended != "exited":
            check()
            raise _Gone(ENDINGS[found.ended])
        if found.exit_code == NOBODY and attempt:  # who ended the program before may have ended both
            return found.model_copy(update={"exit_code": WENT_AWAY})
        if found.exit_code in (0, NOBODY, WENT_AWAY):
            return found
    raise _Gone(f"{ENDINGS['exited']} {(found.stdout + found.stderr)[-500:]}")


def _told(found: ExecResult) -> _Told | None:
    """The terminal's answer; None if it gave none."""
    try:
        return _Told.model_validate_json(found.stdout) if found.exit_code == 0 else None
    except ValidationError:
        return None


def _is_stopped(check: Callable[[], None]) -> bool:
    try:
        check()
    except Stopped:
        return True
    return False


def _given(program: Path, request: dict[str, Any]) -> dict[str, str]:
    """The variables by which a program and its request are handed over. Raises `_TooLong`."""
    text = json.dumps(request)
    if len(text) > MOST_CHARACTERS:
        raise _TooLong(f"Not done: more than {MOST_CHARACTERS} characters cannot be handed over at once.")
    starts = range(0, len(text), PIECE)
    pieces = {f"ASSAY_REQUEST_{at:08}": text[at : at + PIECE] for at in starts}
    return {"ASSAY_PROGRAM": program.read_text(), **pieces}


class _TooLong(AssayError):  # noqa: N818 - says what happened
    """More than a program can be given."""


class _Gone(AssayError):  # noqa: N818 - as above
    """The sandbox takes no commands any more."""
