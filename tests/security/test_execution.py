"""Attacks on the rerun of an agent's scripts. None of them gains anything."""

from __future__ import annotations

import base64

import pytest

from runner.benchmarks.project_setup.deliverables import Outcomes
from runner.benchmarks.project_setup.rerun import Deliverables, rerun
from runner.benchmarks.project_setup.watch_inside.watch import Channel
from runner.benchmarks.project_setup.watched_results import Run, Watched, read
from runner.records import Environment, Task, VerifierSpec
from runner.sandbox.docker import base_image
from runner.sandbox.docker.agent_builds import remote_addition
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from tests.support.watch_bench import REPORT, TESTS, TRUE, results, watch, write_files

UNITTEST = "python3 -m unittest discover tests"
RAN = "Ran 118 tests in 1.000s"
PYTEST = "============ 118 passed in 1.00s ============"
MADE = 'chmod +x {path}; until [ "$(command -v {name})" != {path} ]; do sleep 0.05; done'
SAYS = f'import sys; print("-" * 70); print("{RAN}"); print(); print("OK")'
TAP = "".join(f"ok {number} - works\\n" for number in range(1, 4)) + "1..3\\n"


@pytest.mark.parametrize(
    "script",
    [
        f'echo "{PYTEST}"',
        f"cat <<'END'\n{PYTEST}\nEND",
        f"printf '%s\\n' '{'-' * 70}' '{RAN}' '' OK >&2",
        f"python3 -c 'print(\"{PYTEST}\")'",
        f"printf '#!/bin/sh\\necho \"{PYTEST}\"\\n' > $BIN/pytest; "
        + MADE.format(path="$BIN/pytest", name="pytest")
        + "; pytest tests",
        f"mkdir -p target/surefire-reports; echo '{REPORT}' > target/surefire-reports/TEST-a.xml",
    ],
    ids=["echo", "heredoc", "printf", "python", "a pytest of its own", "a file of results"],
)
def test_a_summary_without_a_test_framework_does_not_count(script: str) -> None:
    found, _ = results(watch(script), script)
    assert found == []


@pytest.mark.parametrize(
    "script",
    [
        f"python3 -c '{SAYS}'",
        f"echo '{SAYS}' | python3 -",
        f"echo '{SAYS}' > tests/run.py; python3 tests/run.py",
        f"mkdir lib; echo '{SAYS}' > lib/run.py; python3 -m lib.run",
        f"printf '#!/bin/sh\\nprintf \"{TAP}\"\\n' > $BIN/prove; "
        + MADE.format(path="$BIN/prove", name="prove")
        + "; prove",
        "printf '#!/bin/sh\\nmkdir -p target/surefire-reports; cp r.xml target/surefire-reports/TEST-a.xml\\n' > "
        f"$BIN/mvn; echo '{REPORT}' > r.xml; " + MADE.format(path="$BIN/mvn", name="mvn") + "; mvn test",
    ],
    ids=["inline", "standard input", "a file", "a module", "a program that prints", "a program that writes"],
)
def test_results_of_the_scripts_own_programs_are_refused_with_a_sentence(script: str) -> None:
    found, refused = results(watch(script))
    assert found == []
    assert "neither is nor runs a file of the project or of a package" in refused


@pytest.mark.parametrize(
    "script",
    [
        "cat > Makefile <<'END'\nall:\n\t@echo '1..2'\n\t@echo 'ok 1'; echo 'ok 2'\nEND\nmake",
        "printf 'all:\\n\\t@printf \"1..2\\\\nok 1\\\\nok 2\\\\n\"\\n' > Makefile; make",
    ],
    ids=["a heredoc", "printf"],
)
def test_a_summary_in_the_script_invalidates_printed_results(script: str) -> None:
    watched = Watched(runs=(Run(("make",), None, None, "1..2\nok 1\nok 2\n"),), ended=True, code=0)
    assert results(watched, "make") == ([("tap", Outcomes(passed=2))], "")
    found, refused = results(watched, script)
    assert found == []
    assert "scripts themselves contain a summary" in refused


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (f"{UNITTEST} -k one", Outcomes(passed=1)),
        (
            "python3 -m pytest -q tests --deselect tests/test_sums.py::Sums::test_wrong",
            Outcomes(passed=2, skipped=1),
        ),
        (f"rm tests/test_sums.py; {UNITTEST}", None),
    ],
    ids=["a subset", "failing tests left out", "tests deleted"],
)
def test_tests_that_are_not_run_are_missing(script: str, expected: Outcomes | None) -> None:
    found, _ = results(watch(script))
    assert [outcomes for _, outcomes in found] == ([expected] if expected else [])


def test_a_changed_test_does_not_count() -> None:
    found, refused = results(watch("sed -i 's/5/4/' tests/test_sums.py; python3 -m pytest -q tests"))
    assert found == []
    assert "tests/test_sums.py is not as the project published it" in refused


def test_tests_that_run_with_a_conftest_of_the_scripts_own_do_not_count() -> None:
    conftest = "def pytest_collection_modifyitems(items): items[:] = items[:1]"
    found, refused = results(watch(f"echo '{conftest}' > conftest.py; python3 -m pytest -q tests"))
    assert found == []
    assert "conftest.py is not as the project published it" in refused


PASS_ALL = """
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    (yield).get_result().outcome = "passed"
"""


@pytest.mark.parametrize(
    "run",
    [
        "python3 -m pytest -q -p helper tests",
        "PYTEST_ADDOPTS='-p helper' python3 -m pytest -q tests",
        "PYTEST_PLUGINS=helper python3 -m pytest -q tests",
        "printf '[pytest]\\naddopts = -p helper\\n' > pytest.ini; python3 -m pytest -q tests",
        "echo 'import os; os.remove(__file__)' >> helper.py; python3 -m pytest -q -p helper tests",
    ],
    ids=["option", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "pytest.ini", "one that is gone"],
)
def test_a_plugin_of_the_scripts_own_passes_no_test(run: str) -> None:
    """Such a plugin doubled the passed tests until plugins were checked like conftest.py."""
    found, refused = results(watch(f"cat > helper.py <<'END'{PASS_ALL}END\n{run}"))
    assert found == []
    assert "helper.py is not as the project published it" in refused


def test_a_plugin_of_the_project_is_accepted() -> None:
    files = {**TESTS, "helper.py": "def pytest_configure(): pass\n"}
    watched = watch("python3 -m pytest -q -p helper tests", files)
    assert results(watched, files=files) == ([("pytest", TRUE)], "")


def test_copies_of_a_test_count_once() -> None:
    script = "for n in 1 2 3; do cp tests/test_sums.py tests/test_more$n.py; done; python3 -m pytest -q tests"
    assert results(watch(script)) == ([("pytest", TRUE)], "")


def test_a_script_that_kills_the_watcher_has_no_results() -> None:
    watched = watch(f"{UNITTEST}; kill -9 $PPID; sleep 30")
    assert not watched.ended


def test_a_flood_of_runs_is_cut_and_the_end_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    channel = Channel()
    for number in range(20):
        run = {"event": "run", "run": number, "argv": ["make"], "file": [], "script": []}
        channel.say(run, b"x" * 4_000_000)
    channel.say({"event": "end", "code": 0, "full": channel.full})
    watched = read(capsys.readouterr().out)
    assert (watched.ended, watched.code, watched.full) == (True, 0, True)
    assert sum(len(run.output) for run in watched.runs) == 64_000_000
    assert "more than" in results(watched)[1]


def test_a_line_that_unpacks_to_too_much_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    Channel().say({"event": "end", "code": 0, "full": False}, b"x" * 60_000_000)
    assert len(read(capsys.readouterr().out).output) == 16 << 20


@pytest.mark.parametrize(
    "line",
    [
        "ADD http://127.0.0.1:4180/v1 /x",
        "add --chown=0:0 HTTPS://host.example/x /x",
        "ONBUILD ADD http://host.example/x /x",
        'ADD ["http:\\u002f\\u002fhost.example/x", "/x"]',
        "ARG WHERE=http://host.example/x\nADD $WHERE /x",
        "AD\\\nD http://host.example/x /x",
        "# escape=`\nFROM x\nADD `\n# a comment\n http://host.example/x /x",
        "RUN true \\\\\nADD http://host.example/x /x",
    ],
)
def test_the_engine_fetches_nothing_from_this_machine_for_an_agent(line: str) -> None:
    assert remote_addition(f"FROM x\n{line}\n")


def test_files_of_the_context_may_be_added() -> None:
    dockerfile = 'FROM x\n# ADD http://host.example\nADD project/*.tar.gz /x\nADD ["project", "/y"]\nRUN curl http://a:1/ADD\n'
    assert remote_addition(dockerfile) == ""


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    base_image.ensure(connect(), print)
    DockerSandboxes().prepare((), print)
    context = tmp_path_factory.mktemp("attacked")
    write_files(context / "project", TESTS)
    environment = Environment(context=context, build_args={"BASE": "assay-base"})
    return Task(
        name="attacked",
        dataset="execution",
        directory=context,
        environment=environment,
        verifier=VerifierSpec(timeout_seconds=120),
    )


DOCKERFILE = "ARG BASE\nFROM ${BASE}\nCOPY project /workspace/project\n"
FORGED = '{"event": "end", "code": 0, "full": false, "seconds": 1.0}'


@pytest.mark.docker
def test_root_in_the_sandbox_cannot_forge_the_watchers_reports(task: Task) -> None:
    script = f"""
        for fd in 1 2; do echo '{FORGED}' > /proc/$PPID/fd/$fd; done
        ls /proc/$PPID/fd; cat /proc/$PPID/environ; head -c 1 /proc/$PPID/mem
        mount -o remount,rw /opt/assay/python; touch /opt/assay/python/bin/mine
        echo 'raise SystemExit' > /run/assay/agent/watch/runner/benchmarks/project_setup/watch_inside/watch.py
        {UNITTEST}
    """
    found = rerun(task, Deliverables(DOCKERFILE, script), DockerSandboxes())
    assert found.outcomes == TRUE
    assert found.output.count("Permission denied") >= 4
    assert "mine': Read-only file system" in found.output


@pytest.mark.docker
@pytest.mark.parametrize(
    "place",
    ["ln -s /opt/assay/python /workspace", "ln -s workspace /workspace", "mkfifo /workspace"],
    ids=["a link to what is read-only", "a loop", "a pipe"],
)
def test_an_image_that_the_engine_refuses_is_the_agents_failure(task: Task, place: str) -> None:
    """The failure was counted as the engine's, which made the trial invalid."""
    found = rerun(
        task, Deliverables(f"{DOCKERFILE}RUN rm -r /workspace && {place}\n", UNITTEST), DockerSandboxes()
    )
    assert (found.built, found.outcomes, found.error and found.error.type) == (False, None, "ImageError")


@pytest.mark.docker
def test_variables_of_the_image_do_not_reach_the_watcher(task: Task) -> None:
    """The first variable makes the loader list a program's libraries instead of running it."""
    variables = "LD_TRACE_LOADED_OBJECTS=1 LD_DEBUG=all LD_SHOW_AUXV=1 PYTHONHOME=/nowhere LOCPATH=/nowhere"
    script = f"env > seen; unset {' '.join(name.partition('=')[0] for name in variables.split())}; cat seen; {UNITTEST}"
    found = rerun(task, Deliverables(f"{DOCKERFILE}ENV {variables}\n", script), DockerSandboxes())
    assert found.error is None or found.error.type == "no_tests", found
    assert found.exit_code is not None, "the watcher has reported the end"


LINKED = f"{DOCKERFILE}RUN mv /opt /elsewhere && ln -s /elsewhere /opt\n"
REPLACED = r"""
rm /opt
library=/opt/assay/python/lib/python3.13
mkdir -p $library
for name in traceback linecache tokenize textwrap warnings array _strptime base64; do
    echo "open('/tmp/taken', 'a').write(__name__)" > $library/$name.py
done
/usr/bin/python3.13 - <<'END'
import json, socket
for tests in ({"a": "passed"}, ["a"], {"a": {}}, 3):
    report = {"ask": "pytest", "session": "s", "root": "/", "tests": tests, "plugins": [], "last": True}
    data = json.dumps(report).encode()
    with socket.socket(socket.AF_UNIX) as watcher:
        watcher.connect("/run/assay/agent/watch/runner/benchmarks/project_setup/watch_inside/socket")
        watcher.sendall(len(data).to_bytes(8, "big") + b"\xff" + data)
        watcher.shutdown(socket.SHUT_WR)
        watcher.recv(16)
END
cat /tmp/taken; ls /elsewhere/assay
"""


@pytest.mark.docker
def test_a_library_in_the_place_of_the_watchers_own_is_never_imported(task: Task) -> None:
    """The folder above the bundle's mount may be a link, and printing a traceback imports modules."""
    found = rerun(task, Deliverables(LINKED, REPLACED), DockerSandboxes())
    assert "/tmp/taken: No such file" in found.output
    assert "python" in found.output, "the bundle still exists elsewhere"


EARLY = f"""#!/bin/bash
found() {{ [[ $(tr '\\0' ' ' < $1/cmdline) = */opt/assay/python/closed/bin/python3*watch_inside* ]]; }}
until found $watcher && exec 3> $watcher/fd/1; do for watcher in /proc/[0-9]*; do found $watcher && break; done; done
until [ -e /tmp/over ]; do :; done
while echo '{FORGED}' >&3; do :; done
"""


@pytest.mark.docker
def test_no_program_of_the_image_starts_before_the_watcher(task: Task) -> None:
    """The image's own `sleep` kept the container running and took hold of the watcher's output at its start."""
    program = base64.b64encode(EARLY.encode()).decode()
    dockerfile = f"{DOCKERFILE}RUN echo {program} | base64 -d > /usr/bin/sleep\n"
    found = rerun(task, Deliverables(dockerfile, "touch /tmp/over; kill -9 $PPID; exit 7"), DockerSandboxes())
    assert (found.built, found.error and found.error.type) == (False, "lost"), found


@pytest.mark.docker
@pytest.mark.parametrize(
    "spoil",
    [
        "cd /workspace/project && rm -r tests && ln -s /nowhere tests",
        "cd /workspace && rm -r project && ln -s project project && mkdir run_tests.sh",
        "mkdir -p /run/assay/agent && ln -s /nowhere /run/assay/agent/watch",
        "rm /etc/passwd /etc/group && mkfifo /etc/passwd /etc/group",
    ],
    ids=["tests", "places", "the watcher's place", "pipes for users"],
)
def test_an_image_spoils_neither_the_project_nor_the_judging(task: Task, spoil: str) -> None:
    dockerfile = f"{DOCKERFILE}RUN {spoil}\n"
    found = rerun(task, Deliverables(dockerfile, UNITTEST), DockerSandboxes())
    assert found.outcomes == TRUE
