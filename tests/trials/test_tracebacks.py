"""Tracebacks of unexpected exceptions in records."""

from __future__ import annotations

import json

import pytest

from runner.errors import TaskError
from runner.records import ErrorInfo, TrialRecord
from runner.records.base import TRACEBACK
from runner.resources import ROOT
from runner.sweeps.plan import make_plan
from tests.support.records_factory import trial_record


def raised(depth: int = 0) -> ErrorInfo:
    try:
        if depth:
            exec("f = lambda n: 1 / 0 if n == 0 else f(n - 1)\nf(depth)", {"depth": depth})
        make_plan(None, None, None)  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001 - what is tested is what is kept of it
        return ErrorInfo.of(error, "verify", unexpected=True)
    raise AssertionError


def test_it_names_modules_and_no_path_of_this_machine() -> None:
    """A record is read on other machines, too."""
    traceback = raised().traceback
    assert traceback
    assert 'File "runner/sweeps/plan.py", line' in traceback
    assert str(ROOT) not in traceback
    assert traceback.startswith("Traceback (most recent call last)")
    assert "TypeError" in traceback.splitlines()[-1]


def test_it_is_bounded() -> None:
    traceback = raised(900).traceback
    assert traceback
    assert len(traceback) <= TRACEBACK
    assert traceback.splitlines()[-1].startswith("ZeroDivisionError") or "RecursionError" in traceback


def test_a_failure_that_is_provided_for_has_none() -> None:
    assert ErrorInfo.of(TaskError("No such task."), "environment").traceback is None


def test_it_holds_no_secret_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library may quote the request that it could not send, with the key in it."""
    monkeypatch.setenv("SOME_PROVIDER_API_KEY", "sk-very-secret")
    error = RuntimeError("cannot send sk-very-secret")
    error.__cause__ = KeyError("Bearer sk-very-secret")
    info = ErrorInfo.of(error, "gateway", unexpected=True)
    assert "sk-very-secret" not in info.model_dump_json()
    assert info.message == "cannot send [SOME_PROVIDER_API_KEY]"
    assert "Bearer [SOME_PROVIDER_API_KEY]" in str(info.traceback)


@pytest.mark.parametrize("field", ["warnings", "traceback"])
def test_records_of_earlier_versions_are_still_read(field: str) -> None:
    record = trial_record(error=ErrorInfo(type="x", message="y"))
    old = json.loads(record.model_dump_json())
    (old if field == "warnings" else old["error"]).pop(field)
    assert TrialRecord.model_validate_json(json.dumps(old)) == record
