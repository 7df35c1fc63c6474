"""The watcher and a script's test programs, on this machine; sandboxes run the same program."""

from __future__ import annotations

import re
import resource
from pathlib import Path

import pytest

from runner.benchmarks.project_setup.deliverables import Outcomes
from tests.support.waiting import until
from tests.support.watch_bench import REPORT, TESTS, TRUE, results, watch

UNITTEST = "python3 -m unittest discover tests"


def test_results_of_unittest_are_read_from_what_it_prints() -> None:
    watched = watch(f'{UNITTEST}; echo "ended: $?"')
    assert results(watched) == ([("unittest", TRUE)], "")
    assert watched.code == 0
    assert watched.output.endswith("ended: 1\n")


def test_the_plugin_reports_the_results_of_pytest_wherever_it_is() -> None:
    watched = watch('"$PY" -m pytest tests')
    assert not watched.runs
    assert results(watched) == ([("pytest", TRUE)], "")


def test_the_plugin_does_not_change_what_pytest_prints() -> None:
    plain = watch('env -u PYTHONPATH "$PY" -m pytest tests')
    seen = watch("python3 -m pytest tests")
    lines = [
        [re.sub(r" in \d+\.\d+s ", "", line) for line in each.output.splitlines() if "rootdir" not in line]
        for each in (plain, seen)
    ]
    assert lines[0] == lines[1]
    assert not plain.sessions
    assert seen.sessions


def test_a_test_that_runs_twice_counts_once() -> None:
    found, _ = results(watch("python3 -m pytest -q tests; python3 -m pytest -q tests -k one"))
    assert sum((outcomes for _, outcomes in found), Outcomes()) == TRUE


def test_a_pytest_inside_a_test_reports_nothing() -> None:
    inner = {
        "tests/test_run.py": "import pytest, subprocess, sys\ndef test_runs():\n"
        "    subprocess.run([sys.executable, '-m', 'pytest', 'inner.py'])\n    pytest.main(['inner.py'])\n",
        "inner.py": "def test_a(): pass\ndef test_b(): pass\n",
    }
    watched = watch("python3 -m pytest -q tests", inner)
    assert results(watched, files=inner) == ([("pytest", Outcomes(passed=1))], "")


def test_a_virtual_environment_that_is_activated_hides_no_program() -> None:
    script = f"""
        mkdir -p env/bin; ln -s "$PY" env/bin/python3.19
        command -v python3.19 && exit 9
        activate() {{ PATH="$PWD/env/bin:$PATH"; hash -r; }}; activate
        {UNITTEST.replace("python3", "python3.19")}
    """
    watched = watch(script)
    assert results(watched) == ([("unittest", TRUE)], "")


def test_shell_lookups_name_a_file() -> None:
    script = """
        ln -s "$(command -v python3)" other; ./other -c 'print("linked")'
        command -v no-such-program mocha tap || echo none; command -v cd
    """
    assert watch(script).output.splitlines() == ["linked", "none", "cd"]


def test_a_program_that_the_script_installs_is_seen() -> None:
    script = """
        command -v prove-it mocha && exit 9
        printf '#!/bin/sh\\necho ran\\n' > $BIN/mocha; chmod +x $BIN/mocha
        until [ "$(command -v mocha)" != "$BIN/mocha" ]; do sleep 0.05; done
        mocha one two
    """
    watched = watch(script)
    assert watched.code == 0
    assert [(run.argv, run.output) for run in watched.runs] == [(("mocha", "one", "two"), "ran\n")]


def test_programs_under_usual_paths_are_seen() -> None:
    watched = watch(
        f'mkdir -p .venv/bin; ln -s "$PY" .venv/bin/python; .venv/bin/{UNITTEST.replace("python3", "python")}'
    )
    assert results(watched) == ([("unittest", TRUE)], "")


def test_only_the_outermost_program_is_recorded() -> None:
    script = """
        printf '#!/bin/sh\\npython3 -c "print(1)"\\n' > $BIN/npm; chmod +x $BIN/npm
        until [ "$(command -v npm)" != "$BIN/npm" ]; do sleep 0.05; done
        npm test
    """
    watched = watch(script)
    assert [(run.argv, run.output) for run in watched.runs] == [(("npm", "test"), "1\n")]


def test_a_program_has_its_callers_place_variables_and_files() -> None:
    script = """
        mkdir sub; cd sub; export COLOUR=red; umask 027; ulimit -n 99
        echo input | python3 -c '
import os, resource, sys
print(os.path.basename(os.getcwd()), os.environ["COLOUR"], sys.stdin.read().strip(), oct(os.umask(0)), flush=True)
sys.stderr.write("%d\\n" % resource.getrlimit(resource.RLIMIT_NOFILE)[0]); os.kill(os.getpid(), 15)' 2> said
        echo "$?"; cat said
    """
    watched = watch(script)
    assert watched.output.splitlines()[:3] == ["sub red input 0o27", "143", "99"]


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_STACK)[1] != resource.RLIM_INFINITY, reason="stacks are limited here"
)
def test_limits_hold_when_a_program_begins() -> None:
    """The kernel places libraries elsewhere in a program that begins with no limit on its stack."""
    script = """
        cp /bin/cat $BIN/npm
        until [ "$(command -v npm)" != "$BIN/npm" ]; do sleep 0.05; done
        ulimit -s unlimited
        for each in cat npm; do $each /proc/self/maps | grep -m 1 libc | cut -c 1; done
    """
    watched = watch(script)
    assert watched.runs
    plain, seen = watched.output.split()
    assert plain == seen


def test_a_program_that_may_open_few_files_inherits_none_of_another() -> None:
    """The watcher holds files of all programs that run, with higher numbers than the limit allows to look up."""
    script = """
        printf '#!/bin/sh\\n: > started.$$; sleep 3\\n' > $BIN/mocha; chmod +x $BIN/mocha; cp /bin/ls $BIN/npm
        for each in mocha npm; do until [ "$(command -v $each)" != "$BIN/$each" ]; do sleep 0.05; done; done
        for each in 1 2 3 4 5 6 7 8; do mocha > /dev/null & done
        until [ "$(ls started.* | wc -l)" = 8 ]; do sleep 0.05; done 2> /dev/null
        ulimit -n 8; npm /proc/self/fd
    """
    watched = watch(script)
    assert ("npm", "/proc/self/fd") in [run.argv for run in watched.runs]
    assert watched.output.split() == ["0", "1", "2", "3"], "the last one is the folder that it lists"


def test_a_request_of_the_scripts_own_with_impossible_limits_starts_nothing() -> None:
    script = """
        cat > ask.py <<'END'
import json, os, socket, sys
spec = {"program": "/bin/touch", "argv": ["touch", "ran"], "cwd": os.getcwd(), "env": {}, "umask": 0, "groups": []}
request = json.dumps({"ask": "run", **spec, "limits": json.loads(sys.argv[1])}).encode()
with socket.socket(socket.AF_UNIX) as watcher:
    watcher.connect(os.environ["PATH"].partition(":")[0] + "/../socket")
    watcher.sendall(len(request).to_bytes(8, "big") + b"\\xff" + request)
    print(watcher.recv(16), os.path.exists("ran"))
END
        for limits in '{"7": 5}' '[]' '{"7": [99, 99]}'; do "$PY" ask.py "$limits"; done
    """
    assert watch(script).output.splitlines() == ["b'' False", "b'' False", "b'0' True"]


def test_a_program_whose_reader_leaves_ends() -> None:
    watched = watch("python3 -c 'while True: print(1)' | head -1; echo ended")
    assert watched.ended
    assert watched.output.splitlines()[0] == "1"


def test_a_signal_reaches_the_program() -> None:
    watched = watch(
        "timeout 1 python3 -c 'import time; time.sleep(1000)'; echo $?; timeout -s KILL 1 sleep 1000"
    )
    assert watched.output.splitlines()[0] == "124"


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 7", 7), ("kill -9 $$", 137), ("read answer; exit 3", 3)],
    ids=["its own", "a signal", "a question nobody answers"],
)
def test_how_a_script_ends(script: str, code: int) -> None:
    watched = watch(script)
    assert (watched.ended, watched.code) == (True, code)


def test_a_script_is_killed_at_its_time_limit() -> None:
    watched = watch("sleep 1000", seconds=1)
    assert (watched.ended, watched.code) == (True, None)


def test_daemons_do_not_delay_the_end() -> None:
    """These daemons outlive the script."""
    noisy = f"while sleep 0.1; do echo noise; done & {UNITTEST}"
    silent = "sleep 90 & python3 -c 'import os, time; os.fork() or time.sleep(90)'"
    assert watch(f"{noisy}; {silent}").code == 0


def test_processes_that_a_script_left_behind_are_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    knows = f"cd /; setsid sleep 900 & echo $! >> {pids}"
    works = f"setsid env -i /bin/sleep 900 & echo $! >> {pids}"
    watch(f"({knows}); ({works})")
    left = pids.read_text().split()
    assert len(left) == 2
    until(lambda: not any(map(sleeps, left)))


def sleeps(pid: str) -> bool:
    try:
        return Path("/proc", pid, "comm").read_text() == "sleep\n" and bool(
            Path("/proc", pid, "exe").readlink()
        )
    except OSError:  # it is gone, or nobody has fetched its exit code
        return False


def test_a_flood_of_output_keeps_its_end() -> None:
    prints = "    def test_loud(self): print(('x' * 9999 + '\\n') * 900)\n"
    tests = {"tests/test_loud.py": f"import unittest\nclass Loud(unittest.TestCase):\n{prints}"}
    watched = watch(UNITTEST, tests)
    assert results(watched, files=tests) == ([("unittest", Outcomes(passed=1))], "")
    assert sum(len(run.output) for run in watched.runs) < 5_000_000


def test_files_of_results_count_only_if_a_test_program_left_them() -> None:
    mvnw = {**TESTS, "mvnw": f"#!/bin/sh\necho '{REPORT}' > target/surefire-reports/TEST-a.xml\n"}
    script = """
        mkdir -p target/surefire-reports; chmod +x mvnw
        ./mvnw test
        cp target/surefire-reports/TEST-a.xml target/surefire-reports/TEST-b.xml
    """
    found, refused = results(watch(script, mvnw), files=mvnw)
    assert (found, refused) == ([("surefire", Outcomes(passed=1, failed=1))], "")


def test_tests_of_two_languages_are_two_readings() -> None:
    tap = {**TESTS, "t/a.t": '#!/usr/bin/perl\nprint "1..2\\nok 1 - a\\nok 2 - b\\n";\n'}
    found, refused = results(watch(f"{UNITTEST}; prove t || perl t/a.t", tap), files=tap)
    assert refused == ""
    assert ("unittest", TRUE) in found
    assert {name for name, _ in found} == {"unittest", "tap"}
