"""The base of all records, and a failure as a record."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from pydantic import BaseModel, ConfigDict

TRACEBACK = 8_000
"""Characters of a traceback that are stored, from its end."""


class Record(BaseModel):
    """Base of all records: immutable, without unknown fields, with finite or explicitly missing numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ErrorInfo(Record):
    """A failure as a value."""

    type: str
    """Class name of the exception, or a short kind such as `disk`."""
    message: str
    """Message of the exception; for long ones its end."""
    cause: str | None = None
    """The exception beneath, as `Type: message`."""
    phase: str = ""
    """Part of the trial: environment, agent, collect, verify or gateway."""
    traceback: str | None = None
    """Traceback of an unexpected exception, with modules in place of files. None for a failure that the code provides
    for, and in records of earlier versions."""

    @classmethod
    def of(cls, error: BaseException, phase: str = "", *, unexpected: bool = False) -> ErrorInfo:
        """Return the record of an exception. Of a long message it keeps the end, where builds report what
        went wrong.
        """
        beneath = error.__cause__ or error.__context__
        return cls(
            type=type(error).__name__,
            message=str(error)[-4000:],
            cause=f"{type(beneath).__name__}: {beneath}"[:1000] if beneath else None,
            phase=phase,
            traceback=_traceback(error) if unexpected else None,
        )


def _traceback(error: BaseException) -> str:
    """Return the traceback without paths of this machine, which mean nothing on another."""
    text = "".join(traceback.format_exception(error))
    for folder in sorted({str(Path(entry).resolve()) for entry in sys.path if entry}, key=len, reverse=True):
        text = text.replace(f'"{folder}/', '"')
    return text[-TRACEBACK:]
