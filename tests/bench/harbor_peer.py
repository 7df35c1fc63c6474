"""Speed beside Harbor, the owner of the task format: run on request only, since it installs Harbor from PyPI.

    python -m tests.bench.harbor_peer

Both programs run the oracle on eight trivial tasks, four at a time, from the command line to the last reward, in turn.
The floor is bare calls to Docker, without a program's start, that judge in a new machine, as ours does and Harbor does
not. Each run has tasks of its own, so all build every image. Harbor gets an environment of its own, in a folder that is
removed. It needs Python 3.12, Docker's command line program and Docker Compose (`make compose`). Measures; asserts only
that every reward is 1.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from runner.resources import ROOT
from runner.sandbox.docker import base_image, compose, engine
from tests.bench import trials
from tests.support.tasks_factory import make_task

VERSION = "0.25.0"
TASKS, WORKERS, ROUNDS = 8, 4, 6
BOUND = 5
IMAGES = "assay-bench:"
"""Beginning of the tags of the floor's images."""


def main() -> None:
    """Print each round, then the medians of the ratios."""
    base_image.ensure(engine.connect(), print)
    with tempfile.TemporaryDirectory(prefix="assay-harbor-") as scratch:
        folder = Path(scratch)
        harbor, environment = _install(folder)
        sides: dict[str, Callable[[Path], list[float]]] = {
            "ours": _ours,
            "harbor": lambda tasks: _theirs(harbor, environment, tasks),
            "bare": _floor,
        }
        rounds = []
        for number in range(ROUNDS):
            order = [*sides][number % 3 :] + [*sides][: number % 3]
            took = {side: _timed(sides[side], folder / f"{side}-{number}") for side in order}
            rounds.append(took)
            print(
                f"  round {number + 1}: Harbor {VERSION} {took['harbor']:.1f} s, ours {took['ours']:.1f} s, "
                f"bare {took['bare']:.1f} s (load {os.getloadavg()[0]:.0f})",
                flush=True,
            )
    trials.remove_images(engine.connect(), {IMAGES})
    ours, bare = (
        statistics.median(took["harbor"] / took[side] for took in rounds) for side in ("ours", "bare")
    )
    print(
        f"Harbor {VERSION}, {TASKS} trivial tasks, {WORKERS} at a time: {ours:.1f} times as long as ours "
        f"(bound {BOUND}), {bare:.1f} times as long as bare calls that judge in a new machine"
    )


def _install(folder: Path) -> tuple[Path, dict[str, str]]:
    """Install Harbor; return its program and the variables with which it finds Docker Compose."""
    plugin = compose.program()
    if plugin is None or shutil.which("docker") is None:
        sys.exit("Harbor needs the program docker, and Docker Compose: make compose installs the latter.")
    uv = Path(sys.executable).with_name("uv")
    python = next(filter(None, map(_interpreter, ("3.12", "3.13"))), None)
    if python is None:
        sys.exit("Harbor needs Python 3.12 or newer, which is not here.")
    _run([uv, "venv", "--quiet", "--python", python, folder / "env"], {})
    _run([uv, "pip", "install", "--python", folder / "env/bin/python", f"harbor=={VERSION}"], {})
    plugins = folder / "docker" / "cli-plugins"
    plugins.mkdir(parents=True)
    (plugins / "docker-compose").symlink_to(plugin)
    # Debian's engine has no BuildKit.
    return folder / "env/bin/harbor", {"DOCKER_CONFIG": str(plugins.parent), "DOCKER_BUILDKIT": "0"}


def _interpreter(version: str) -> str | None:
    """Return an interpreter of this version on PATH or in pyenv, if there is one."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    places = [shutil.which(f"python{version}"), *map(str, pyenv.glob(f"{version}.*/bin/python"))]
    # A shim of pyenv on PATH may fail to start.
    works = (
        place
        for place in places
        if place and subprocess.run([place, "-c", ""], capture_output=True, check=False).returncode == 0
    )
    return next(works, None)


def _timed(run: Callable[[Path], list[float]], folder: Path) -> float:
    """Make tasks that no run has had, and return the seconds that one program takes for them."""
    run_name = uuid4().hex
    for number in range(TASKS):
        make_task(
            folder,
            f"t{run_name[:8]}-{number}",
            test="echo 1 > /logs/verifier/reward.txt",
            dockerfile=f"FROM {base_image.tag()}\nRUN mkdir /app && echo {run_name}{number} > /app/n\nWORKDIR /app\n",
            toml='[agent]\ntimeout_sec = 60\n[environment]\nnetwork_mode = "public"\n',
        )
    began = time.monotonic()
    rewards = run(folder)
    seconds = time.monotonic() - began
    if rewards != [1.0] * TASKS:
        sys.exit(f"a measured run did not pass: {rewards}")
    return seconds


def _ours(tasks: Path) -> list[float]:
    words = ["agent=oracle", "dataset=harbor", f"dataset.root={tasks}", f"executor.workers={WORKERS}"]
    words += ["tracker=none", f"outputs={tasks}-outputs", "name=peer"]
    _run([sys.executable, "-m", "runner", *words], {"CI": "true"})
    records = Path(f"{tasks}-outputs").glob("trials/*/*/record.json")
    return [json.loads(record.read_bytes())["reward"] for record in records]


def _theirs(harbor: Path, environment: dict[str, str], tasks: Path) -> list[float]:
    jobs = Path(f"{tasks}-jobs")
    _run(
        [harbor, "run", "-p", tasks, "-a", "oracle", "-n", str(WORKERS), "-q", "-y", "-o", jobs], environment
    )
    return [float(reward.read_text()) for reward in jobs.rglob("verifier/reward.txt")]


def _floor(tasks: Path) -> list[float]:
    tag = f"{IMAGES}{uuid4().hex}"
    trials.bare(engine.connect(), tasks, tag, trials.judge_anew, "bridge")
    return [1.0] * TASKS  # the calls raise if the reward's file is missing


def _run(command: list[str | Path], environment: dict[str, str]) -> None:
    ended = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        sys.exit(f"{command} ended with {ended.returncode}:\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}")


if __name__ == "__main__":
    main()
