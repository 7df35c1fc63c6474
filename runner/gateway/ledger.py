"""The ledger: one JSON line per model call, on disk before the agent has its answer."""

from __future__ import annotations

import json
from pathlib import Path

from runner.records import ModelCall
from runner.records.trial_files import SENT

UNANSWERED_BYTES = 64 << 20
"""Limit on stored unanswered requests of one session: a refused agent may retry forever, and readers load it all."""


class Ledger:
    """A JSONL file of one session's calls, written call by call so that a killed runner loses no spend.

    No call stays in memory: each request repeats the conversation, so their size grows with its square.
    """

    def __init__(self, path: Path, secret: str) -> None:
        """Open `path` for appending, after removing a last line that a crash cut off. Raises `OSError`.

        `secret` is the trial's key. It is taken out of every line, since an agent may show it to its model.
        """
        self._secret = secret.encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file = path.open("ab", buffering=0)
        whole = _whole(path.read_bytes())
        self._file.truncate(len(whole))
        self._start = len(whole)
        self._sent_path = path.with_suffix(SENT)
        self._sent = self._sent_path.open("wb", buffering=0)
        self._unanswered = 0

    def sending(self, index: int) -> None:
        """Note that a request of this call is being sent, in case the runner is killed before it ends.

        Raises `OSError` if the disk is full.
        """
        self._sent.write(b"%d\n" % index)

    def append(self, call: ModelCall) -> None:
        """Write one call and hand it to the operating system.

        Raises `OSError` if the disk is full, and then removes the part that was written.
        """
        line = self._line(call)
        if call.response is None:
            self._unanswered += len(line)
            if self._unanswered > UNANSWERED_BYTES:
                line = self._line(call.model_copy(update={"request": {}}))
        end = self._path.stat().st_size
        try:
            rest = memoryview(line)
            while rest:  # on a disk that is almost full, a write is short before one fails
                rest = rest[self._file.write(rest) :]
        except OSError:
            self._file.truncate(end)
            raise

    def _line(self, call: ModelCall) -> bytes:
        # pydantic's own escaping to ASCII takes four times as long, and no thread can interrupt it.
        line = json.dumps(call.model_dump(mode="json"), separators=(",", ":"))
        return line.encode().replace(self._secret, b"[key]") + b"\n"

    def calls(self) -> tuple[ModelCall, ...]:
        """Return the calls of this session, in the order of arrival."""
        lines = _whole(self._path.read_bytes()[self._start :]).splitlines()
        return tuple(sorted(map(ModelCall.model_validate_json, lines), key=lambda call: call.index))

    def close(self) -> None:
        """Close the file once no call is under way. Reading still works."""
        self._file.close()
        self._sent.close()
        self._sent_path.unlink(missing_ok=True)


def _whole(content: bytes) -> bytes:
    """Return the lines that have an end."""
    return content[: content.rfind(b"\n") + 1]
