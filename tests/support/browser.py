"""A headless Chromium that tests and `docs/make_pictures.py` drive.

`python -m tests.support.browser` is `make browser`: as root on Debian it installs what is missing.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

from runner.errors import EngineError
from runner.sandbox.docker.engine import exclusive, install

PROGRAMS = ("chromium", "chromedriver")
PACKAGES = ("chromium", "chromium-driver")
"""Packages of Debian, which keeps both at the same version."""
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # in a container that is too small
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
_NEEDED = (
    "chromium and chromedriver are needed for the tests of pages, and cannot be installed from here ({why}). Put both, "
    "of one version, on the PATH (Debian: sudo apt install chromium chromium-driver)."
)


@contextmanager
def browser(width: int, height: int) -> Iterator[Chrome]:
    """Open a fresh Chromium with a window of this size, in pixels. It keeps what pages write to the console."""
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        chrome = Chrome(options=options, service=ChromeService(shutil.which("chromedriver")))
        try:
            yield chrome
        finally:
            chrome.quit()


def ensure() -> None:
    """Install what is missing. Raises `EngineError` with the remedy if that is not possible."""
    with exclusive("browser"):
        if all(map(shutil.which, PROGRAMS)):
            return
        if os.geteuid() != 0:
            raise EngineError(_NEEDED.format(why="that needs root"))
        if shutil.which("apt-get") is None:
            raise EngineError(_NEEDED.format(why="this machine has no apt-get"))
        install(PACKAGES, partial(print, flush=True))


def main() -> int:
    """Install the browser if need be; return exit code 1 if it cannot be installed."""
    try:
        ensure()
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1
    print("Chromium is there")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
