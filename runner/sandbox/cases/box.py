"""Runs the cases of differential testing: one long-lived container a side, one clean machine a case.

`DockerSandboxes.cases(side)` opens a side. Give its box one case (`box.run`), many (`stream`), or two sides the same
(`stream_pairs`). What happens inside is `runner.sandbox.cases.inside`'s; why so, docs/adr/0005 says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from docker import APIClient
from docker.errors import APIError, NotFound
from pydantic import ValidationError

from runner.errors import EngineError, ProgramError
from runner.records.cases import Case, CaseResult, CaseSide, How
from runner.sandbox.cases import launch
from runner.sandbox.cases.inside.changes import LONGEST_PATH
from runner.sandbox.cases.inside.serve import SLACK_SECONDS
from runner.sandbox.cases.lane import Lane, LaneDied
from runner.sandbox.docker.faults import engine_faults, explanation

if TYPE_CHECKING:
    from runner.protocols import CaseBox

_SPARE_BYTES = 1 << 20
"""Of an answer, beside what the limits allow."""
_ESCAPED = 6
"""Bytes that one byte of output or of a name can become in an answer."""
_WRITTEN = 4
"""Characters that one such byte can become: `\\xNN`."""
_SPARE_ENTRY = 500
"""Bytes of a change beside its path and its text."""
_START_SECONDS = 120.0
"""For a container's preparation, which looks at every file where nothing can be mounted."""

T = TypeVar("T")


class _Slot(NamedTuple):
    """Where one case at a time can run."""

    container: str
    number: int
    lane: Lane


class DockerCaseBox:
    """One side, in containers that leaving the context removes. See `protocols.CaseBox`."""

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
        with engine_faults(f"starting cases of {self.side.image.reference}"):
            try:
                self._open()
            except BaseException:  # Ctrl-C, for one: who never entered is never left
                self._remove()
                raise
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
                        slot = self._reopened(slot)
            return CaseResult(exit_code=None, ended="lost", stderr=why, how=self.how)
        finally:
            self._free.put(slot)

    def _open(self) -> None:
        side = self.side
        refused = self._prepared("overlay") if side.how != "copy" else "not asked for"
        if refused:
            if side.how == "overlay":
                raise EngineError(f"sandbox.cases=overlay, and this engine does not permit it: {refused}")
            self._remove()
            self.how = "copy"
            for _ in range(side.lanes):
                if wrong := self._prepared("copy"):
                    raise ProgramError(f"{side.image.reference} cannot run cases: {wrong}")
        for number in range(side.lanes):
            container = self._containers[number % len(self._containers)]
            self._free.put(_Slot(container, number, self._lane(container, number)))

    def _prepared(self, how: How) -> str:
        """Start a container and try its way; returns why that does not work, if it does not."""
        try:
            container = self._api.create_container(**launch.arguments(self._api, self.side, how))["Id"]
            self._containers.append(container)
            self._api.start(container)
        except APIError as error:
            if how == "copy":
                raise
            return explanation(error)
        return self._made_ready(container, how)

    def _made_ready(self, container: str, how: How) -> str:
        preparing = Lane(self._api, container, launch.command("prepare", self.side, how), _SPARE_BYTES)
        try:
            return preparing.complaint or "no reason given" if preparing.wait(_START_SECONDS) else ""
        finally:
            preparing.close()

    def _lane(self, container: str, number: int) -> Lane:
        return Lane(
            self._api, container, launch.command("serve", self.side, self.how, number), longest(self.side)
        )

    def _reopened(self, slot: _Slot) -> _Slot:
        """A new supervisor in the place of a dead one, and nothing left of the case that it died with."""
        slot.lane.close()
        if self.how == "copy":  # with mounts, its machine died with it
            self._api.restart(slot.container, timeout=0)
            if wrong := self._made_ready(slot.container, self.how):
                raise ProgramError(f"{self.side.image.reference} cannot run cases any more: {wrong}")
        return slot._replace(lane=self._lane(slot.container, slot.number))

    def _remove(self) -> None:
        while not self._free.empty():
            self._free.get().lane.close()
        while self._containers:
            with suppress(NotFound):
                self._api.remove_container(self._containers.pop(), force=True, v=True)


def longest(side: CaseSide) -> int:
    """Bytes of the longest answer that a side's limits allow."""
    limits = side.limits
    entry = LONGEST_PATH + limits.text_bytes + _SPARE_ENTRY
    return _ESCAPED * (2 * limits.output_bytes + limits.diff_entries * entry) + _SPARE_BYTES


def read_answer(answer: bytes, side: CaseSide, how: How) -> CaseResult:
    """A supervisor's answer. What runs in a side's container may have taken its place, so it may be anything.

    Raises `LaneDied` for what is not a result within the side's limits.
    """
    try:
        result = CaseResult.model_validate_json(answer)
    except ValidationError as error:
        raise LaneDied(f"it answered what is not a result: {error.errors()[0]['msg']}") from error
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
        raise LaneDied("it answered a result that no case has")
    return result


def stream(
    box: CaseBox, cases: Sequence[Case], cancelled: Callable[[], bool] = lambda: False
) -> Iterator[tuple[int, CaseResult]]:
    """Index in `cases` and result of each, as they end; what `cancelled` stops is missing."""
    return _spread(lambda index: (index, box.run(cases[index])), len(cases), box.side.lanes, cancelled)


def stream_pairs(
    reference: CaseBox,
    candidate: CaseBox,
    cases: Sequence[Case],
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[int, CaseResult, CaseResult]]:
    """Index in `cases`, the reference's and the candidate's result; both sides of a case run at once."""
    lanes = min(reference.side.lanes, candidate.side.lanes)
    with ThreadPoolExecutor(lanes) as others:

        def pair(index: int) -> tuple[int, CaseResult, CaseResult]:
            expected = others.submit(reference.run, cases[index])
            found = candidate.run(cases[index])
            return index, expected.result(), found

        yield from _spread(pair, len(cases), lanes, cancelled)


def _spread(work: Callable[[int], T], count: int, lanes: int, cancelled: Callable[[], bool]) -> Iterator[T]:
    """Results of `work` on 0..count-1, `lanes` at once, as they end; the first that raises ends them all."""

    def unless_cancelled(index: int) -> list[T]:
        return [] if cancelled() else [work(index)]

    with ThreadPoolExecutor(lanes) as pool:
        futures: list[Future[list[T]]] = [pool.submit(unless_cancelled, index) for index in range(count)]
        try:
            for future in as_completed(futures):
                yield from future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
