"""What an agent's two scripts do from scratch: an image of its Dockerfile, the project as published, a watched run.

Nothing that a script says counts. Results are what pytest tells a plugin of ours, the files that frameworks write while
a test program runs, and what test programs print (`watched_results`). See `watch_inside.watch` for how they are seen.

What is not seen: test programs under absolute paths other than `PATHS`, or called in surroundings of the script's own
making (`env -i`, `sudo`, `su -`); but pytest is seen wherever PYTHONPATH reaches it, or `SITES` has its Python.
"""

from __future__ import annotations

import json
import re
import shutil
import tarfile
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from runner.benchmarks.project_setup import watch_inside, watched_results
from runner.benchmarks.project_setup.deliverables import (
    DOCKERFILE,
    PROJECT,
    RESULTS,
    SCRIPT,
    WORKSPACE,
    Rerun,
)
from runner.benchmarks.project_setup.frameworks import PROGRAMS
from runner.benchmarks.project_setup.watch_inside.watch import TOLD
from runner.errors import ConfigError, EngineError, ImageError, SpoiledMachine, TaskError, WorkspaceTooLarge
from runner.records import BuildSpec, Environment, ErrorInfo, ExecSpec, SandboxSpec
from runner.sandbox import archive
from runner.sandbox.inside import AGENT_DIR, PYTHON

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.benchmarks.project_setup.watched_results import Watched
    from runner.protocols import Sandbox, SandboxProvider
    from runner.records import Build, ExecResult, Image, Task

CODE = f"{AGENT_DIR}/watch"
"""In a folder that is new in every sandbox: what the image holds there is not seen."""
PLACE = f"{CODE}/runner/benchmarks/project_setup/watch_inside"
LARGEST = 1 << 20
"""Bytes of a deliverable; a larger one is nobody's script."""
GRACE_SECONDS = 30.0
"""That the watcher has beyond the script's limit, to tell what it saw."""
VERSIONS = tuple(f"python3.{minor}" for minor in range(6, 20))
_PYTHONS = tuple(
    f"{folder}/bin/{name}" for folder in (".venv", "venv", "env", ".env") for name in ("python", "python3")
)
PATHS = (
    *(
        f"{place}{path}"
        for path in _PYTHONS
        for place in ("", "./", f"{WORKSPACE}/", f"{WORKSPACE}/{PROJECT}/")
    ),
    *(f"{place}/bin/{name}" for place in ("/venv", "/opt/venv") for name in ("python", "python3")),
    *(
        f"/usr/bin/{name}"
        for name in ("make", "ctest", "python3", "node", "npm", "mvn", "go", "cargo", "prove")
    ),
    *("./gradlew", "./mvnw"),
)
"""Paths of test programs that are seen although they are no plain names."""
SITES = (
    "/usr/lib/python3/dist-packages",
    "/usr/lib/python3*/site-packages",
    "/usr/local/lib/python3*/*-packages",
    "/opt/*/lib/python3*/site-packages",
    "/root/.pyenv/versions/*/lib/python3*/site-packages",
    *(
        f"{place}/{folder}/lib/python3*/site-packages"
        for place in ("", "/root", WORKSPACE, f"{WORKSPACE}/{PROJECT}")
        for folder in ("*", ".venv", ".env", ".tox/*", ".nox/*")
    ),
)
"""Where Pythons have their packages: patterns of folders."""
PLUGIN = {
    "METADATA": "Metadata-Version: 2.1\nName: assay-watch\nVersion: 0\n",
    "RECORD": "",
    "entry_points.txt": "[pytest11]\nassay_watch_pytest = assay_watch_pytest\n",
}
"""What makes pytest load a module from Python's path by itself, and nothing fail where it is not there."""
_TERMINAL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[^\n\t\x20-\x7e\xa0-\U0010ffff]"
)


class Deliverables(NamedTuple):
    """What lies in a workspace; None for what is not there, no regular file, no text, or too large."""

    dockerfile: str | None = None
    script: str | None = None
    results: str | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the files that are not there."""
        return tuple(
            name for name, text in zip((DOCKERFILE, SCRIPT, RESULTS), self, strict=True) if text is None
        )


def taken_from(sandbox: Sandbox) -> Deliverables:
    """What lies in a sandbox's workspace, file by file: however large it is. A link counts as nothing, and nothing is
    extracted. Raises `EngineError`.
    """
    texts: list[str | None] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in (DOCKERFILE, SCRIPT, RESULTS):
            tar = Path(folder, "file.tar")
            try:
                sandbox.get(f"{WORKSPACE}/{name}", tar)
                texts.append(_text(tar))
            except (FileNotFoundError, WorkspaceTooLarge):
                texts.append(None)
    return Deliverables(*texts)


def rerun(
    task: Task,
    delivered: Deliverables,
    sandboxes: SandboxProvider,
    seconds: float | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Rerun:
    """Build and run; whatever the scripts do is a value. `seconds` for all of it, where less than the task's limits are
    left. Raises `EngineError`.
    """
    from metrics.execution import script_size  # noqa: PLC0415 - loads pandas

    began = time.monotonic()
    size = None if delivered.script is None else script_size(delivered.script)
    if delivered.dockerfile is None or delivered.script is None:
        names = " and ".join(name for name in delivered.missing if name != RESULTS)
        message = f"There is no {names} in {WORKSPACE}: a regular text file of at most 1 MiB each."
        return Rerun(built=False, script_size=size, error=_error("missing", message))
    environment = task.verifier.environment or task.environment
    limit = min(environment.build_timeout_seconds, _left(began, seconds))
    spec = BuildSpec(
        name=task.name,
        dockerfile=delivered.dockerfile,
        folders={PROJECT: project_of(task)},
        environment=environment,
        timeout_seconds=limit,
    )
    with sandboxes.build(spec, cancelled) as build:
        limit = min(task.verifier.timeout_seconds, _left(began, seconds))
        found = _of_build(task, delivered, sandboxes, build, limit, cancelled)
    return found.model_copy(update={"script_size": size, "seconds": time.monotonic() - began})


def project_of(task: Task) -> Path:
    """Return the folder of the project as published. Raises `TaskError` when it was not fetched."""
    project = task.environment.context and task.environment.context / PROJECT
    if not project or not project.is_dir():
        raise TaskError(f"The project of {task.name} is not here: fetch it with job=setup.")
    return project


def plain(text: str) -> str:
    """The text without colours and control characters."""
    return _TERMINAL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _of_build(
    task: Task,
    delivered: Deliverables,
    sandboxes: SandboxProvider,
    build: Build,
    limit: float,
    cancelled: Callable[[], bool],
) -> Rerun:
    if build.image is None:
        return Rerun(built=False, error=build.error, output=plain(build.output))
    try:
        result = _run_or_blame(task, str(delivered.script), sandboxes, build.image, limit, cancelled)
    except ImageError as error:
        return Rerun(built=False, error=ErrorInfo.of(error, "verify"), output=plain(build.output))
    watched = watched_results.read(result.stdout)
    if not watched.ended and _is_cut(result):
        raise ConfigError("The report of the tests was cut off: set sandbox.output_mb to 10 or more.")
    scripts = (str(delivered.dockerfile), str(delivered.script))
    readings, refused = watched_results.readings(watched, project_of(task), scripts)
    doubts = _ending(result, watched, limit) or _doubts(watched, refused, executed=bool(readings))
    believed = readings if watched.ended else ()
    return Rerun(
        built=bool(believed) or watched.code == 0,
        readings=believed,
        exit_code=watched.code,
        error=doubts,
        output=plain(watched.output),
        image=build.image.id,
    )


def _run_or_blame(
    task: Task,
    script: str,
    sandboxes: SandboxProvider,
    image: Image,
    limit: float,
    cancelled: Callable[[], bool],
) -> ExecResult:
    """As `_run`. What the engine refuses twice of an agent's image, and not of the base image, is the image's fault.

    Raises `ImageError` then, else `EngineError`.
    """
    try:
        return _run(task, script, sandboxes, image, limit, cancelled)
    except (EngineError, SpoiledMachine):
        _check_engine(task, sandboxes)
    try:
        return _run(task, script, sandboxes, image, limit, cancelled)
    except (EngineError, SpoiledMachine) as error:
        raise ImageError(f"Nothing can be run in the image: {error}") from error


def _check_engine(task: Task, sandboxes: SandboxProvider) -> None:
    """Raises `EngineError` where not even the base image takes the project."""
    from runner.sandbox.docker import base  # noqa: PLC0415 - a plan that starts nothing needs no engine

    try:
        with sandboxes.open(_machine(task, sandboxes.image(Environment(image=base.tag())))) as place:
            _lay_out(project_of(task), place)
            place.exec(ExecSpec(argv=("true",), cwd="/", user="root"))
    except ImageError as error:
        raise EngineError(f"The base image does not start: {error}") from error


def _run(
    task: Task,
    script: str,
    sandboxes: SandboxProvider,
    image: Image,
    limit: float,
    cancelled: Callable[[], bool],
) -> ExecResult:
    """Lay the project out anew, tests that an image lacks or changed included, and run the script on it.

    Raises `ImageError` for an image that cannot run any.
    """
    command = ExecSpec(
        argv=watch_command(PYTHON, CODE),
        cwd="/",
        user="root",
        files={f"{WORKSPACE}/{SCRIPT}": script, **watch_files(PLACE, WORKSPACE, limit, SITES)},
        uploads={PLACE: Path(watch_inside.__file__).parent},
        timeout_seconds=limit + GRACE_SECONDS,
    )
    with sandboxes.open(_machine(task, image)) as place:
        _lay_out(project_of(task), place)
        result = place.exec(command, cancelled)
    if result.exit_code == watch_inside.NO_SHELL:
        raise ImageError("The image has no shell: a project's image needs a shell and coreutils.")
    return result


def _machine(task: Task, image: Image) -> SandboxSpec:
    home = task.verifier.environment or task.environment
    limits = {name: getattr(home, name) for name in ("cpus", "memory_mb", "storage_mb")}
    return SandboxSpec(
        name=f"{task.name}-rerun",
        image=image,
        environment=Environment(workdir=WORKSPACE, **limits),
        user="root",
        network="open",
        runtime=True,
    )


def _is_cut(result: ExecResult) -> bool:
    """Whether there is more of what the watcher told than the sandbox's cap let through.

    Its stderr is no part of that. A script can bring the watcher to complain there, and end it: that is a lost run.
    """
    told, complaints = len(result.stdout.encode()), len(result.stderr.encode())
    return complaints <= told < TOLD and result.output_bytes > told + complaints


def _lay_out(project: Path, place: Sandbox) -> None:
    """The project over whatever lies there; a link or a file gives way to a folder."""
    target = f"{WORKSPACE}/{PROJECT}"
    with archive.Packer() as pack, tempfile.NamedTemporaryFile(suffix=".tar") as tar:
        pack.directory(target, 0o755)
        pack.folder(target, project)
        shutil.copyfileobj(pack.stream(), tar)
        tar.flush()
        place.put(Path(tar.name), "/")


def watch_command(python: str, code: str) -> tuple[str, ...]:
    """The watcher's command line; `code` is the folder that its package lies in, and the specification in that."""
    start = f"import sys; sys.path.append({code!r}); from runner.benchmarks.project_setup.watch_inside import watch; "
    return (
        python,
        "-I",
        "-S",
        "-c",
        f"{start}watch.main('{code}/runner/benchmarks/project_setup/watch_inside/spec.json')",
    )


def watch_files(place: str, workspace: str, seconds: float, sites: tuple[str, ...] = ()) -> dict[str, str]:
    """Path -> text of what the watcher at `place` needs beside its programs. It writes into the folders `sites`."""
    spec = {
        "script": f"{workspace}/{SCRIPT}",
        "workdir": f"{workspace}/{PROJECT}",
        "workspace": workspace,
        "seconds": seconds,
        "programs": [*PROGRAMS, *VERSIONS],
        "paths": PATHS,
        "sites": sites,
        "results": watched_results.RESULT_FILES,
    }
    plugin = {f"{place}/plugin/assay_watch-0.dist-info/{name}": text for name, text in PLUGIN.items()}
    return {f"{place}/spec.json": json.dumps(spec), **plugin}


def _ending(result: ExecResult, watched: Watched, limit: float) -> ErrorInfo | None:
    """Why the script did not end by itself, if it did not."""
    if result.ended == "cancelled":
        return _error("cancelled", f"{SCRIPT} was cancelled.")
    if result.ended == "disk":
        return _error("disk", f"{SCRIPT} filled the disk of its sandbox.")
    if result.ended == "files":
        return _error("files", f"{SCRIPT} made more files than its sandbox may have.")
    if not watched.ended:
        message = f"{SCRIPT} ended its sandbox or what watches it: nothing that was seen counts."
        return _error("lost", message)
    if watched.code is None:
        return _error("deadline", f"{SCRIPT} did not end within its limit of {limit:g} s.")
    return None


def _doubts(watched: Watched, refused: tuple[str, ...], *, executed: bool) -> ErrorInfo | None:
    """Why there is no result, or why some of it does not count."""
    if refused:
        return _error("refused", " ".join(refused))
    if not executed:
        message = f"{SCRIPT} ended with exit code {watched.code}, and no test framework reported a test."
        return _error("no_tests", message)
    return None


def _left(began: float, seconds: float | None) -> float:
    return float("inf") if seconds is None else max(1.0, seconds - (time.monotonic() - began))


def _error(kind: str, message: str) -> ErrorInfo:
    return ErrorInfo(type=kind, message=message, phase="verify")


def _text(tar: Path) -> str | None:
    """Of the regular file that is all that a tar holds."""
    with tarfile.open(tar) as archive:
        member = archive.next()
        if member is None or not member.isreg() or member.size > LARGEST:
            return None
        content = archive.extractfile(member)
        try:
            return content.read().decode() if content else None
        except UnicodeDecodeError:
            return None
