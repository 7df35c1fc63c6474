"""Commands that write every table of a sweep but not its page, or the page with empty pictures."""

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


@contextmanager
def without_pixels() -> Iterator[None]:
    """Make each picture of a page and do not draw it, which is half of a page's processor time."""
    from runner.report import figures  # noqa: PLC0415 - as above

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "settle", lambda _: None)
        patch.setattr(figures, "svg", lambda _: '<svg width="1" height="1"></svg>')
        patch.setattr(figures, "png", lambda _: b"")
        yield
