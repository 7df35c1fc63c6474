"""A machine whose clock is a day ahead, for the third run of a reference, which finds results that depend on the date.

Python and Node.js ask the C library for the time, so a library of Debian's that is loaded before it can answer
(libfaketime). Go asks the kernel, so a Go tool is compiled again with a `time.Now` that is a day ahead. Neither the
reference's nor any candidate's own image is touched.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from runner.benchmarks.cli_tool_bench.construction.recipe import Language
from runner.errors import VerifierError
from runner.records import ExecSpec, SandboxSpec

if TYPE_CHECKING:
    from runner.protocols import SandboxProvider
    from runner.records import Image, Task

HOSTNAME = "elsewhere"
AHEAD_SECONDS = 90_061
"""Seconds by which the clock is ahead: a day, an hour, a minute and a second, so every printed field differs."""
LIBRARY = "pool/main/f/faketime/libfaketime_0.9.10+2024-06-05+gba9ed5b2-0.6_amd64.deb"
LIBRARY_DIGEST = "sha256:4ecb98d7f6149e4c297a5946c4fa231a1b794d203053962e295dd3a18a47f269"
PLACE = "/opt/moved-clock"
_PRELOADED = {
    "LD_PRELOAD": f"{PLACE}/libfaketime.so.1",
    "FAKETIME": f"+{AHEAD_SECONDS}",
    "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    "FAKETIME_NO_CACHE": "1",
}
ENV: dict[Language, dict[str, str]] = {"python": _PRELOADED, "javascript": _PRELOADED, "go": {}}
"""Language -> environment of commands on such a machine."""
_UNPACK = (
    f"mkdir -p {PLACE} && dpkg-deb --fsys-tarfile /moved-clock/library.deb"
    f" | tar -x -C {PLACE} --wildcards --strip-components=5 '*/libfaketime.so.1'"
)
_COMPILE = f"""
source=$(go env GOROOT)/src/time/time.go
mkdir -p {PLACE}
sed 's/^\\tsec, nsec, mono := runtimeNow()/&; sec += {AHEAD_SECONDS}/' "$source" > {PLACE}/time.go
! cmp -s "$source" {PLACE}/time.go || {{ echo "time.Now of this Go is not known" >&2; exit 1; }}
printf '{{"Replace": {{"%s": "{PLACE}/time.go"}}}}' "$source" > {PLACE}/overlay.json
GOFLAGS="$GOFLAGS -overlay={PLACE}/overlay.json" """


@contextmanager
def image(
    installed: Image, language: Language, task: Task, sandboxes: SandboxProvider, cache: Path
) -> Iterator[Image]:
    """Yield the image of an installed reference with its clock moved. Raises `VerifierError`, `FetchError`."""
    spec = SandboxSpec(name=f"{task.name}-clock", image=installed, environment=task.environment, user="root")
    script = _UNPACK
    if language == "go":
        script = _COMPILE + _install_command(task)
    command = ExecSpec(argv=("bash", "-c", script), cwd="/workspace", user="root", timeout_seconds=600)
    with sandboxes.open(spec) as sandbox:
        if language != "go":
            sandbox.put(_library(cache), "/moved-clock")
        result = sandbox.exec(command)
        if result.exit_code != 0:
            raise VerifierError(
                f"The clock of {task.name} cannot be moved: {(result.stderr or result.stdout)[-500:]}"
            )
        yield sandbox.snapshot()


def _install_command(task: Task) -> str:
    return str(getattr(task.payload, "install", "go install ./..."))


def _library(cache: Path) -> Path:
    """Return the folder with the library's package, fetched once."""
    from runner.sandbox.docker import debian_pool  # noqa: PLC0415 - loads docker

    folder = cache / "moved-clock"
    file = folder / "library.deb"
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            debian_pool.fetch(LIBRARY, LIBRARY_DIGEST, Path(scratch), lambda _: None).rename(file)
    return folder
