"""A PostgreSQL server of its own for a test, on a socket in a folder of its own. Installs Debian's if need be."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from runner.errors import EngineError
from runner.sandbox.docker.engine import exclusive, install

ACCOUNT = "postgres"
"""Account of Debian's package. The server refuses to run as root."""


class PostgresMissingError(Exception):
    """There is no PostgreSQL here, and it cannot be installed."""


@contextmanager
def postgres() -> Iterator[str]:
    """Start a server with an empty database. Yield its address; everything is gone afterwards.

    Raises `PostgresMissingError`.
    """
    if find_spec("psycopg") is None:
        raise PostgresMissingError("the driver is missing: pip install 'psycopg[binary]'")
    programs = _programs()
    account = ACCOUNT if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="pg") as name:
        folder = Path(name)
        if account:
            shutil.chown(folder, account)
        data, run = (
            folder / "data",
            partial(subprocess.run, user=account, check=True, capture_output=True, cwd=folder),
        )
        run([programs / "initdb", "--pgdata", data, "--username", "postgres", "--auth", "trust", "--no-sync"])
        options = f"-k {folder} -c listen_addresses= -c fsync=off"
        control = [programs / "pg_ctl", "--pgdata", data, "--wait", "--log", folder / "log"]
        run([*control, "--options", options, "start"])
        try:
            yield f"postgresql+psycopg://postgres@/postgres?host={folder}"
        finally:
            run([*control, "--mode", "immediate", "stop"])


def _programs() -> Path:
    """Return the folder of the server's programs, after installing them if need be."""
    with exclusive("postgres"):
        if not (found := _installed()):
            if os.geteuid() != 0 or shutil.which("apt-get") is None:
                raise PostgresMissingError("there is no PostgreSQL, and installing Debian's needs root")
            try:
                install(["postgresql"], partial(print, flush=True))
            except EngineError as error:
                raise PostgresMissingError(str(error)) from error
            found = _installed()
        if not found:
            raise PostgresMissingError("Debian's package postgresql has no initdb")
        return found


def _installed() -> Path | None:
    """Return the folder with the newest version of the programs."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    if folders:
        return folders[-1].parent
    initdb = shutil.which("initdb")
    return Path(initdb).resolve().parent if initdb else None
