"""Judge, as root, what an agent left in /app without trusting any of it.

The same file lies in every task of this dataset, because the tests of a task must stand alone.

* /tests and /logs/verifier are closed to everyone but root before anything of the agent's runs.
* /app is rewritten: new plain files that belong to nobody; links that leave it, devices and pipes are gone. So no path
  in it leads root to a hidden file, or nobody to one of root's.
* What the agent made runs as nobody with a clean environment. Its output goes to files and not to pipes, so that a
  process that lives on cannot hold the judge up, and it is dead, with all that it started, before anything is read.
* No verdict is taken from the agent's code: it gets inputs chosen here at random and its answers are compared here.

What remains possible: code that knows it is being judged can answer well here and badly elsewhere.
"""

import json
import math
import os
import resource
import signal
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import NamedTuple

APP = Path("/app")
LOGS = Path("/logs/verifier")
NOBODY = 65534
OUTPUT_BYTES = 16 << 20
PATIENCE = 4
"""Wall-clock seconds for each second of processor time: a busy machine is not the agent's fault."""
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


class Result(NamedTuple):
    """How a command of the agent's ended."""

    code: int | None
    """None when it was killed, at its deadline most likely."""
    out: str
    err: str


def run(*argv, stdin="", seconds=6.0):
    """Run a command in /app as nobody for so many seconds of processor time at most.

    Everything that it started is dead afterwards.
    """

    def limit():
        _limit(seconds)

    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        process = subprocess.Popen(
            argv, stdin=given, stdout=out, stderr=err, preexec_fn=limit, **_as_nobody(cwd=APP, env=ENVIRONMENT)
        )
        try:
            code = process.wait(PATIENCE * seconds)
            code = None if -code in (signal.SIGXCPU, signal.SIGKILL) else code
        except subprocess.TimeoutExpired:
            code = None
        subprocess.run(["bash", "-c", "kill -KILL -1"], stderr=subprocess.DEVNULL, **_as_nobody(cwd="/", env=ENVIRONMENT))
        process.wait()
        return Result(code, _text(out), _text(err))


def content(name):
    """Bytes of a file in /app; fails the check when there is none, or when it is a link that leaves /app."""
    path = (APP / name).resolve()
    if not path.is_relative_to(APP) or not path.is_file():
        raise AssertionError(f"there is no file {name}")
    return path.read_bytes()


def read(name):
    """Text of a file in /app, as `content` gives it."""
    return content(name).decode(errors="replace")


def main(checks, weights=None):
    """Run the checks and write the reward: all or nothing, or with `weights` (check -> share) the sum of the shares."""
    for folder in (Path("/tests"), LOGS):
        folder.chmod(0o700)
    subprocess.run(["true"], check=True, **_as_nobody(cwd="/", env=ENVIRONMENT))
    # The judge works. If it does not reach its end, what it judges has stopped it, and that is worth nothing.
    _write_reward(dict.fromkeys(weights or (), 0), weights)
    _take_over(APP)
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(checks)
    names = [test.id().rpartition(".test_")[2] for test in suite]
    runner = unittest.TextTestRunner(verbosity=2, failfast=weights is None, resultclass=_Successes)
    succeeded = runner.run(suite).names
    _write_reward({name: int(name in succeeded) for name in names}, weights)


class _Successes(unittest.TextTestResult):
    """Names of the checks that succeeded: a reward is given for these, and not for the absence of failures."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.names = set()

    def addSuccess(self, test):
        super().addSuccess(test)
        self.names.add(test.id().rpartition(".test_")[2])


def _write_reward(passed, weights):
    if weights is None:
        (LOGS / "reward.txt").write_text(f"{int(bool(passed) and all(passed.values()))}\n")
        return
    reward = round(sum(weights[name] for name, ok in passed.items() if ok), 6)
    (LOGS / "reward.json").write_text(json.dumps({"reward": reward, **passed}) + "\n")


def _take_over(folder):
    for top, folders, files in os.walk(folder):
        for name in folders + files:
            path = Path(top, name)
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                content = path.read_bytes()
                path.unlink()
                path.write_bytes(content)
                path.chmod(0o755 if mode & 0o111 else 0o644)
            elif stat.S_ISDIR(mode):
                path.chmod(0o755)
            elif not (stat.S_ISLNK(mode) and path.resolve().is_relative_to(folder)):
                path.unlink()
                continue
            os.lchown(path, NOBODY, NOBODY)
    folder.chmod(0o755)
    os.chown(folder, NOBODY, NOBODY)


def _as_nobody(**more):
    return {"user": NOBODY, "group": NOBODY, "extra_groups": (), "start_new_session": True, **more}


def _limit(seconds):
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_BYTES, OUTPUT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _text(file):
    file.seek(0)
    return file.read(OUTPUT_BYTES).decode(errors="replace")
