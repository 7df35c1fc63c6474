"""Run many short commands, each on a clean machine: one long-lived container per side, one reset per case.

`DockerSandboxes.cases(side)` opens a side. Its box runs one case (`box.run`) or many (`stream`). The part that runs
inside is `runner.sandbox.cases.inside`; docs/adr/0005 gives the reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple, Self

from docker import APIClient
from docker.errors import APIError, NotFound
from pydantic import ValidationError

from runner.errors import EngineError, ProgramError
from runner.records.cases import Case, CaseResult, CaseSide, How
from runner.sandbox.cases import launch
from runner.sandbox.cases.inside.changes import LONGEST_PATH
from runner.sandbox.cases.inside.serve import SLACK_SECONDS
from runner.sandbox.cases.lane import Lane, LaneDied
from runner.sandbox.docker.engine_faults import engine_faults, explanation

if TYPE_CHECKING:
    from runner.protocols import CaseBox

_SPARE_BYTES = 1 << 20
"""Number of bytes that an answer may have beyond its limited parts."""
_ESCAPED = 6
"""Largest number of bytes that one byte of output or of a name takes in an answer."""
_WRITTEN = 4
r"""Largest number of characters that one such byte takes: `\xNN`."""
_SPARE_ENTRY = 500
"""Number of bytes of a change beyond its path and its text."""
_START_SECONDS = 120.0
"""Time limit for preparing a container, in seconds. Where mounts are not permitted, every file is visited."""


class _Slot(NamedTuple):
    """A place that runs one case at a time."""

    container: str
    number: int
    lane: Lane


class DockerCaseBox:
    """One side, in containers that are removed when the context is left. See `protocols.CaseBox`."""

    def __init__(self, api: APIClient, side: CaseSide) -> None:
        self.side = side
        self.how: How = "overlay"
        """See `protocols.CaseBox`. Known once the context is open."""
        self._api = api
        self._containers: list[str] = []
        self._free: SimpleQueue[_Slot] = SimpleQueue()
        limits = side.limits
        self._patience = 2 * (2 * (limits.seconds + limits.diff_seconds) + SLACK_SECONDS)

    def __enter__(self) -> Self:
        with engine_faults(f"starting cases of {self.side.image.reference}"), ExitStack() as failed:
            failed.callback(self._remove)  # also after Ctrl-C: a context that was never entered is never left
            self._open()
            failed.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        with engine_faults("removing a container of cases"):
            self._remove()

    def run(self, case: Case) -> CaseResult:
        """See `protocols.CaseBox`."""
        request = case.model_dump_json(include={"command", "files", "prep", "env", "start"}).encode()
        slot = self._free.get()
        try:
            why = ""
            with engine_faults("running a case"):
                for _ in range(2):
                    try:
                        return read_answer(slot.lane.ask(request, self._patience), self.side, self.how)
                    except LaneDied as error:
                        why = str(error)
                        slot = self._reopen(slot)
            return CaseResult(exit_code=None, ended="lost", stderr=why, how=self.how)
        finally:
            self._free.put(slot)

    def _open(self) -> None:
        side = self.side
        refused = self._start("overlay") if side.how != "copy" else "not asked for"
        if refused:
            if side.how == "overlay":
                raise EngineError(
                    f"sandbox.cases=overlay is set, but this engine does not permit it: {refused}"
                )
            self._remove()
            self.how = "copy"
            for _ in range(side.lanes):
                if wrong := self._start("copy"):
                    raise ProgramError(f"{side.image.reference} cannot run cases: {wrong}")
        for number in range(side.lanes):
            container = self._containers[number % len(self._containers)]
            self._free.put(_Slot(container, number, self._lane(container, number)))

    def _start(self, how: How) -> str:
        """Start a container and try to isolate cases in this way. Return why that fails, or an empty string."""
        try:
            container = self._api.create_container(**launch.arguments(self._api, self.side, how))["Id"]
            self._containers.append(container)
            self._api.start(container)
        except APIError as error:
            if how == "copy":
                raise
            return explanation(error)
        return self._prepare(container, how)

    def _prepare(self, container: str, how: How) -> str:
        preparing = Lane(self._api, container, launch.command("prepare", self.side, how), _SPARE_BYTES)
        try:
            return preparing.complaint or "no reason given" if preparing.wait(_START_SECONDS) else ""
        finally:
            preparing.close()

    def _lane(self, container: str, number: int) -> Lane:
        return Lane(
            self._api, container, launch.command("serve", self.side, self.how, number), longest(self.side)
        )

    def _reopen(self, slot: _Slot) -> _Slot:
        """Return a slot with a new supervisor in place of a dead one, and clear what the dead one's case left."""
        slot.lane.close()
        if self.how == "copy":  # an overlay's machine died with its supervisor
            self._api.restart(slot.container, timeout=0)
            if wrong := self._prepare(slot.container, self.how):
                raise ProgramError(f"{self.side.image.reference} cannot run cases any more: {wrong}")
        return slot._replace(lane=self._lane(slot.container, slot.number))

    def _remove(self) -> None:
        while not self._free.empty():
            self._free.get().lane.close()
        while self._containers:
            with suppress(NotFound):
                self._api.remove_container(self._containers.pop(), force=True, v=True)


def longest(side: CaseSide) -> int:
    """Return the length in bytes of the longest answer that a side's limits allow."""
    limits = side.limits
    entry = LONGEST_PATH + limits.text_bytes + _SPARE_ENTRY
    return _ESCAPED * (2 * limits.output_bytes + limits.diff_entries * entry) + _SPARE_BYTES


def read_answer(answer: bytes, side: CaseSide, how: How) -> CaseResult:
    """Parse a supervisor's answer. Processes in a side's container may have replaced it, so the answer may be anything.

    Raises `LaneDied` for anything but a result within the side's limits.
    """
    try:
        result = CaseResult.model_validate_json(answer)
    except ValidationError as error:
        raise LaneDied(f"its answer is not a result: {error.errors()[0]['msg']}") from error
    limits = side.limits
    fits = (
        result.how == how
        and result.ended in ("exited", "deadline", "flood", "prep")
        and (result.exit_code is not None) == (result.ended == "exited")
        and max(len(result.stdout), len(result.stderr)) <= _WRITTEN * limits.output_bytes
        and len(result.changes) <= limits.diff_entries
        and all(len(change.text or "") <= _WRITTEN * limits.text_bytes for change in result.changes)
    )
    if not fits:
        raise LaneDied("its answer is not a possible result")
    return result


def stream(box: CaseBox, cases: Sequence[Case]) -> Iterator[tuple[int, CaseResult]]:
    """Yield the index in `cases` and the result of each case as it ends. The first exception ends all."""
    with ThreadPoolExecutor(box.side.lanes) as pool:
        futures = {pool.submit(box.run, case): index for index, case in enumerate(cases)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)
