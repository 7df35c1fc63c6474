"""What all records are, and a failure as one."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


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

    @classmethod
    def of(cls, error: BaseException, phase: str = "") -> ErrorInfo:
        """The record of an exception; long messages keep their end, where builds say what went wrong."""
        beneath = error.__cause__ or error.__context__
        return cls(
            type=type(error).__name__,
            message=str(error)[-4000:],
            cause=f"{type(beneath).__name__}: {beneath}"[:1000] if beneath else None,
            phase=phase,
        )
