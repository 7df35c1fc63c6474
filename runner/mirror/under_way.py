"""Spending of trials under way, kept in the store, so that another machine knows it if this driver dies.

Each folder has one object, `under_way/<place>.json`, with the calls of its tries that are in no commit yet, without
what was said in them. A driver that takes the store over takes these tries over, and empties the others' objects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Annotated, Self

from pydantic import StringConstraints, ValidationError

from runner.files import write_atomically
from runner.mirror.bucket import Bucket, StoreError
from runner.mirror.commit import encoded
from runner.mirror.marks import Marks
from runner.records import ModelCall, Record
from runner.records.trial_files import JUDGE_LEDGER, LEDGER, RECORD, SENT

UNDER_WAY = "under_way"
_OBJECT = re.compile(rf"{UNDER_WAY}/[0-9a-f]+\.json")
_NUMBERS = re.compile(r"\d+")

Key = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{4,}$")]


class Spent(Record):
    """One ledger of a try."""

    lines: tuple[ModelCall, ...]
    """Calls that have ended, without request and response."""
    sent: tuple[int, ...]
    """Numbers of the calls that were sent, if the session had not ended."""


class Try(Record):
    """One try that has no record."""

    agent: Spent
    judge: Spent


class Tries(Record):
    """Content of the object."""

    of: dict[Key, tuple[Try, ...]] = {}


class UnderWay:
    """A context in which the spend of trials under way is sent to the store again and again."""

    def __init__(
        self,
        bucket: Bucket,
        folder: Callable[[str], Path],
        marks: Marks,
        seconds: float,
        tell_more: Callable[[], None],
    ) -> None:
        """`seconds` is the interval, and so the longest time whose spend is lost if this driver dies.

        `tell_more` is called at the same times. It may raise `StoreError`.
        """
        self._bucket, self._folder, self._marks, self._seconds = bucket, folder, marks, seconds
        self._tell_more = tell_more
        self._name = f"{UNDER_WAY}/{marks.place()}.json"
        self.keys: dict[str, None] = {}
        """Trials of this folder that may have tries without a record."""
        self._told = b""
        self._over: Event
        self._thread: Thread

    def __enter__(self) -> Self:
        self._over = Event()
        self._thread = Thread(target=self._tell_often, name="under way", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        with suppress(StoreError):  # what is there is true or too much
            self.tell()
        with suppress(StoreError):  # whoever watches is told later that nothing was heard
            self._tell_more()

    def take_over(self) -> int:
        """Take the tries of other folders over. Return the number of trials. Raises `OutputsError`.

        The caller holds the lease, so whoever wrote them is dead or has ended.
        """
        emptied, self._told = [], b""  # another driver may have emptied ours
        for found in self._bucket.listing(UNDER_WAY):
            if found.name == self._name or not _OBJECT.fullmatch(found.name):
                continue
            tries = self._read(found.name)
            for key, each in tries.of.items():
                self._adopt(key, each)
            if tries.of:
                emptied.append((found.name, len(tries.of)))
        self.tell()  # first, so that the tries are in one object at any time
        for name, _ in emptied:
            self._bucket.put(name, Tries().model_dump_json().encode())
        return sum(number for _, number in emptied)

    def tell(self) -> None:
        """Write the object, if it has changed. Raises `StoreError`."""
        of = {key: tries for key in tuple(self.keys) if (tries := tuple(self._tries(key)))}
        content = Tries(of=of).model_dump_json().encode()
        if content != self._told:
            self._bucket.put(self._name, content)
            self._told = content

    def _tell_often(self) -> None:
        while not self._over.wait(self._seconds):
            for tell in (self.tell, self._tell_more):
                with suppress(StoreError):  # the next time, or the lease says it
                    tell()

    def _read(self, name: str) -> Tries:
        content, *_ = self._bucket.get(name) or (b"{}",)
        try:
            return Tries.model_validate_json(content)
        except ValidationError as error:
            raise StoreError(
                f"{self._bucket.address}/{name} makes no sense: delete it, and the spend that it tells is forgotten."
            ) from error

    def _adopt(self, key: str, tries: tuple[Try, ...]) -> None:
        """Put tries of another folder beside the earlier ones of a trial."""
        earlier = self._folder(key) / "earlier"
        taken = [int(path.name) for path in earlier.glob("*")]
        for number, each in enumerate(tries, max(taken, default=0) + 1):
            for name, spent in ((LEDGER, each.agent), (JUDGE_LEDGER, each.judge)):
                if spent != Spent(lines=(), sent=()):
                    text = "".join(f"{line.model_dump_json()}\n" for line in spent.lines)
                    write_atomically(earlier / str(number) / name, text.encode())
                    sent = "".join(f"{call}\n" for call in spent.sent)
                    write_atomically((earlier / str(number) / name).with_suffix(SENT), sent.encode())
        self.keys[key] = None

    def _tries(self, key: str) -> Iterator[Try]:
        """Yield the tries of a trial that no commit has and that have no record."""
        folder, mark = self._folder(key), self._marks.read(key)
        for place in (*sorted(folder.glob("earlier/*")), folder):
            known = mark and encoded(place.relative_to(folder) / LEDGER) in mark.files and place != folder
            if known or (place / RECORD).exists():
                continue
            found = Try(agent=_spent(place / LEDGER), judge=_spent(place / JUDGE_LEDGER))
            if found != Try(agent=Spent(lines=(), sent=()), judge=Spent(lines=(), sent=())):
                yield found


def _spent(ledger: Path) -> Spent:
    """Return the spend in a ledger. A line that is being written is left out; its call is among those sent."""
    lines = []
    for line in ledger.read_text().split("\n") if ledger.exists() else ():
        with suppress(ValidationError):
            lines.append(ModelCall.model_validate_json(line).without_content())
    try:
        sent = ledger.with_suffix(SENT).read_text()
    except FileNotFoundError:
        sent = ""
    return Spent(lines=tuple(lines), sent=tuple(map(int, _NUMBERS.findall(sent))))
