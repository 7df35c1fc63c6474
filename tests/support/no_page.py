"""Commands that write every table of a sweep but not its page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def without_page() -> Iterator[None]:
    """Leave out the page with its pictures: most of the processor time of a command that writes tables."""
    from runner.report import page  # noqa: PLC0415 - brings matplotlib

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "write_report", lambda found: found.folder / "report" / "index.html")
        yield
