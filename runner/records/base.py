"""What all records are, and a failure as one."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from pydantic import BaseModel, ConfigDict

TRACEBACK = 8_000
"""Characters of a traceback that are kept, from its end."""


class Record(BaseModel):
    """Base of all records: immutable, no unknown fields, finite or explicitly missing numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ErrorInfo(Record):
    """A failure as a value."""

    type: str
    """Class name of the exception, or a short kind such as `disk`."""
    message: str
    cause: str | None = None
    """The exception beneath, as `Type: message`."""
    phase: str = ""
    """environment, agent, collect, verify, gateway."""
    traceback: str | None = None
    """Where an unexpected exception was raised, with modules for files. None for a failure that is provided for, and in
    records of earlier versions."""

    @classmethod
    def of(cls, error: BaseException, phase: str = "", *, unexpected: bool = False) -> ErrorInfo:
        """The record of an exception; long messages keep their end, where builds say what went wrong."""
        beneath = error.__cause__ or error.__context__
        return cls(
            type=type(error).__name__,
            message=str(error)[-4000:],
            cause=f"{type(beneath).__name__}: {beneath}"[:1000] if beneath else None,
            phase=phase,
            traceback=_traceback(error) if unexpected else None,
        )


def _traceback(error: BaseException) -> str:
    """The traceback without paths of this machine, which say nothing on another."""
    text = "".join(traceback.format_exception(error))
    for folder in sorted({str(Path(entry).resolve()) for entry in sys.path if entry}, key=len, reverse=True):
        text = text.replace(f'"{folder}/', '"')
    return text[-TRACEBACK:]
