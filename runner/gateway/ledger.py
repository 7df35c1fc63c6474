"""The ledger: one JSON line per model call, on disk before the agent has its answer."""

from __future__ import annotations

import json
from pathlib import Path

from runner.records import ModelCall
from runner.sweeps.store import SENT

UNANSWERED_BYTES = 64 << 20
"""Of one session's calls without an answer that are kept with their requests. An agent may ask for nothing, and so
without end, what is refused; who reads a ledger reads all of it.
"""


class Ledger:
    """Appends the calls of one session to a JSONL file, so that a runner that is killed loses no spend.

    Nothing is kept in memory: requests repeat the whole conversation, and their sum grows with its square.
    """

    def __init__(self, path: Path, secret: str) -> None:
        """Opens `path` for appending; a last line that a crash cut off is removed first. Raises `OSError`.

        `secret` is the trial's key, which never gets onto it, although an agent may show it to its model.
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
        """Note that a request of this call goes out, for who finds no line of it: the runner was killed meanwhile.

        Raises `OSError` when there is no room.
        """
        self._sent.write(b"%d\n" % index)

    def append(self, call: ModelCall) -> None:
        """Write one call and hand it to the operating system. Raises `OSError` when there is no room; no part of it
        is left then, for the next one would be glued to that.
        """
        line = self._line(call)
        if call.response is None:
            self._unanswered += len(line)
            if self._unanswered > UNANSWERED_BYTES:
                line = self._line(call.model_copy(update={"request": {}}))
        end = self._path.stat().st_size
        try:
            rest = memoryview(line)
            while rest:  # of the last that fits on a disk, only the beginning is written, and no error
                rest = rest[self._file.write(rest) :]
        except OSError:
            self._file.truncate(end)
            raise

    def _line(self, call: ModelCall) -> bytes:
        # pydantic's own escaping to ASCII takes four times as long, in one piece that no thread can interrupt.
        line = json.dumps(call.model_dump(mode="json"), separators=(",", ":"))
        return line.encode().replace(self._secret, b"[key]") + b"\n"

    def calls(self) -> tuple[ModelCall, ...]:
        """The calls of this session, in the order of arrival."""
        lines = _whole(self._path.read_bytes()[self._start :]).splitlines()
        return tuple(sorted(map(ModelCall.model_validate_json, lines), key=lambda call: call.index))

    def close(self) -> None:
        """No call can be appended after this, and none is under way; reading still works."""
        self._file.close()
        self._sent.close()
        self._sent_path.unlink(missing_ok=True)


def _whole(content: bytes) -> bytes:
    """The lines that were written to their end."""
    return content[: content.rfind(b"\n") + 1]
