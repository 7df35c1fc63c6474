"""Forgeries of the results of a hidden suite by the code that it judges, each a session of one machine.

The judged library is honest but for one function. Its tests must have failed whatever the library does besides, and a
forgery that only writes or speaks must not cost the library what it earns.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from runner.records import Verdict
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from tests.bench.suites import CODE, SuiteBench
from tests.support.suite_factory import PASSED

pytestmark = pytest.mark.docker

HONEST = 5 / 7
"""Reward of the library without a forgery: two tests need the function that is missing."""
LIBRARY = """

import os as _os
_forgery = _os.environ.get("FORGERY")
during = lambda words: None
if _forgery:
    _space = {"during": during}
    exec(open(f"/workspace/forgeries/{_forgery}.py").read(), _space)
    during = _space["during"]
"""
MOST = "import tally\n\n\ndef most(words):\n    return tally.during(words)\n"
COMMON = f"""
import json, os, socket, struct, subprocess, sys, time
FD = int(open("/proc/self/environ").read().partition("ASSAY_REPORT=")[2].partition("\\0")[0].partition(":")[0])
NAMES = {PASSED!r}
SESSION = open("/proc/self/cmdline").read().split("\\0")[3]

def write(data, to=FD):
    try:
        os.write(to, data)
    except OSError:
        pass

def passed(name):
    return {{"event": "test", "id": name, "file": "/workspace/" + name.partition("::")[0], "outcome": "passed"}}

def speak(word="", start=0):
    for number, name in enumerate(NAMES, start):
        text = json.dumps(passed(name))
        for line in (f"{{word}} {{text}}\\n", f"{{word}} {{number}} {{text}}", f"{{text}}\\n"):
            write(line.encode())

def introduce(word="forged"):
    write(f"{{word}} 0 {{{{}}}}".encode())
    speak(word, 1)
"""
LIES = """
import _pytest.reports as _reports
_real = _reports.TestReport.from_item_and_call
def lie(cls, item, call):
    report = _real(item, call)
    report.outcome, report.longrepr = "passed", None
    return report
"""
SPEAKS = {
    "every_kind_of_event": """
for event in ("test", "collection", "forged", "command", "session", "end", "", None, 1, [], {}):
    for word in ("", "x", "0" * 32):
        text = json.dumps({"event": event, "id": NAMES[0], "message": "x", "code": 0, "outcome": "failed"})
        write(f"{word} {text}\\n".encode()); write(f"{word} 1 {text}".encode()); write(text.encode())
""",
    "events_without_fields": """
for event in ("test", "collection", "forged", "command"):
    write(json.dumps({"event": event}).encode()); write(b"x 1 " + json.dumps({"event": event}).encode())
""",
    "truncated": "text = json.dumps(passed(NAMES[0])).encode()\nfor end in range(0, len(text), 7): write(text[:end])",
    "empty_messages": "for _ in range(1000): write(b'')",
    "huge": "for size in (16_383, 16_384, 16_385, 150_000, 5_000_000): write(b'x 1 ' + b'\\x22' * size)",
    "binary": "for _ in range(50): write(os.urandom(4000)); write(b'\\0' * 100); write(b'\\n' * 100)",
    "numbers": """
for number in ("NaN", "1e999", "-1e999", "9" * 5000, "-0", "true"):
    write(f'x 1 {{"event": "command", "command": {number}, "code": {number}, "seconds": {number}}}'.encode())
""",
    "deep": "write(b'x 1 ' + b'[' * 16_000); write(b'x 1 ' + b'{\\'a\\':' * 3_000)",
    "unicode": """
for name in ("\\ud800", "\\u202e" + NAMES[0], "\\u2028", NAMES[0].replace("t", "\\u0442"), "\\ufeff" + NAMES[0], "\\0"):
    write(b"x 1 " + json.dumps(passed(name)).encode()); write(name.encode("utf-8", "surrogatepass"))
""",
    "events_of_other_commands": """
for command in (-1, 0, 1, 2, 99, 10**20):
    write(b"x 1 " + json.dumps({**passed(NAMES[0]), "command": command, "outcome": "failed"}).encode())
    write(b"x 1 " + json.dumps({"event": "command", "command": command, "code": 0, "seconds": 1}).encode())
""",
    "every_descriptor": """
for descriptor in range(3, 256):
    for name in NAMES:
        write(json.dumps(passed(name)).encode() + b"\\n", descriptor)
""",
    "introduces_itself_in_the_same_process": "introduce()",
    "a_fork_introduces_itself": """
if os.fork() == 0:
    introduce(); os._exit(0)
os.wait()
""",
    "an_orphan_introduces_itself": """
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(0.3); introduce(); os._exit(0)
    os._exit(0)
os.wait(); time.sleep(1)
""",
    "another_session_of_ours": """
os.makedirs("/tmp/own/tests", exist_ok=True)
for name in NAMES:
    file, *_, test = name.split("::")
    open("/tmp/own/" + file, "a").write("def " + test.partition("[")[0] + "(): pass\\n")
subprocess.run([sys.executable, "-I", "-S", SESSION, "tests"], cwd="/tmp/own", pass_fds=(FD,), timeout=60,
               env={"PATH": "/usr/bin:/bin", "ASSAY_REPORT": str(FD)}, stdout=subprocess.DEVNULL)
""",
    "gives_the_launcher_descriptors": """
with socket.socket(fileno=os.dup(FD)) as channel:
    for _ in range(300):
        socket.send_fds(channel, [b"x 1 {}"], [0, 1, 2])
""",
    "claims_to_be_another_process": """
with socket.socket(fileno=os.dup(FD)) as channel:
    for claimed in ((1, 0, 0), (os.getppid(), 0, 0), (os.getpid(), 0, 0)):
        try:
            kind = (socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("3i", *claimed))
            channel.sendmsg([b"x 1 " + json.dumps(passed(NAMES[0])).encode()], [kind])
        except OSError:
            pass
""",
    "attacks_the_launcher": """
import ctypes, signal
for process in (int(name) for name in os.listdir("/proc") if name.isdigit()):
    if process in (os.getpid(), 0):
        continue
    ctypes.CDLL(None).ptrace(16, process, 0, 0)
    for what in ("fd/1", "fd/0", "mem", "environ"):
        try:
            with open(f"/proc/{process}/{what}", "wb") as file:
                file.write(b"".join(json.dumps({**passed(n), "command": 0}).encode() + b"\\n" for n in NAMES))
        except OSError:
            pass
    for sign in (signal.SIGSTOP, signal.SIGKILL):
        try:
            os.kill(process, sign)
        except OSError:
            pass
""",
    "floods_the_output": "for _ in range(200): os.write(2, json.dumps(passed(NAMES[0])).encode() * 500 + b'\\n')",
    "floods_the_channel": "for _ in range(3_000): write(b'x 1 {}')",
    "fills_the_shared_memory": """
try:
    with open("/dev/shm/full", "wb") as file:
        for _ in range(256): file.write(bytes(1 << 20))
except OSError:
    pass
""",
    "replaces_the_writers": """
os.write = lambda descriptor, data: len(data)
json.dumps = lambda *_, **__: "{}"
json.encoder.JSONEncoder.encode = lambda *_: json.dumps(passed(NAMES[0]))
""",
    "shadows_modules": """
import types
for name in ("_pytest.fake", "pluggy.fake", "session", "launch", "runner"):
    sys.modules[name] = types.ModuleType(name)
""",
}
"""Forgeries that only speak, or attack what is not theirs: the library gets what it earns."""
HANGS = {
    "hangs": "introduce(); time.sleep(999)",
    "hangs_in_a_test": "def during(words):\n    introduce(); time.sleep(999)",
    "speaks_without_end": "while True: introduce()",
}
"""Forgeries that end at the time limit of their command."""
LOSES = {
    "speaks_and_leaves": "speak(); speak('x', 1); introduce(); os._exit(0)",
    "speaks_and_leaves_at_exit": "import atexit\nintroduce(); atexit.register(os._exit, 0); sys.exit(0)",
    "a_fork_speaks_and_its_parent_leaves": """
if os.fork() == 0:
    introduce(); time.sleep(0.5); introduce("again"); os._exit(0)
os._exit(0)
""",
    "another_program_speaks": """
code = "import os\\nfor line in os.environ['LINES'].split('|'): os.write(%d, line.encode())" % FD
lines = "|".join(["w 0 {}", *(f"w {at} {json.dumps(passed(name))}" for at, name in enumerate(NAMES, 1))])
os.set_inheritable(FD, True)
os.execve(sys.executable, ["python3", "-c", code, SESSION], {"LINES": lines})
""",
    "closes_the_channel": "speak(); os.close(FD)",
    "shuts_the_channel": "introduce(); socket.socket(fileno=os.dup(FD)).shutdown(socket.SHUT_RDWR)",
    "kills_its_parents": """
introduce()
for process in (os.getppid(), -1):
    try:
        os.kill(process, 9)
    except OSError:
        pass
""",
    "leaves_pytest": "import pytest\nintroduce(); pytest.exit('done', returncode=0)",
    "skips_its_module": "import pytest\nintroduce(); pytest.skip('done', allow_module_level=True)",
    "breaks_the_stack": "def during(words):\n    return during(words)",
    "skips_in_a_test": "import pytest\ndef during(words):\n    pytest.skip('done')",
    "expects_to_fail": "import pytest\ndef during(words):\n    pytest.xfail('known')",
    "answers_with_an_error": "class Odd(BaseException): pass\ndef during(words):\n    raise Odd",
    "marks_the_tests": """
import pytest
def during(words):
    frame = sys._getframe()
    while frame and "item" not in frame.f_locals:
        frame = frame.f_back
    if frame:
        frame.f_locals["item"].add_marker(pytest.mark.xfail(reason="known"), append=False)
    raise ValueError
""",
}
"""Forgeries that cost the library results of its own: it gets what it earns at most."""
CAUGHT = {
    "patches_reports": LIES + "_reports.TestReport.from_item_and_call = classmethod(lie)",
    "patches_reports_for_a_moment": LIES
    + """
def once(cls, item, call):
    _reports.TestReport.from_item_and_call = _kept
    return lie(cls, item, call)
_kept = _reports.TestReport.__dict__["from_item_and_call"]
def during(words):
    _reports.TestReport.from_item_and_call = classmethod(once)
""",
    "patches_the_judge_first": LIES
    + """
judge = sys.modules["__main__"]
for name, owner in (("broken", "Seal"), ("_spring", "Reporter"), ("_check_judge", "Reporter")):
    if hasattr(judge, owner):
        setattr(getattr(judge, owner), name, lambda *_: [])
_reports.TestReport.from_item_and_call = classmethod(lie)
""",
    "patches_the_language": LIES
    + """
import builtins
_len, _isinstance = len, isinstance
builtins.len = lambda what: 10**9 if _isinstance(what, bytes) and b"forged" in what else _len(what)
builtins.str = str
_reports.TestReport.from_item_and_call = classmethod(lie)
""",
    "patches_the_notation": LIES
    + """
import json.encoder
json.encoder.JSONEncoder.encode = lambda self, report: "{}" if report.get("event") == "forged" else '{"a": 1}'
_reports.TestReport.from_item_and_call = classmethod(lie)
""",
    "passes_everything_but_what_looks_like_a_trap": """
import gc, pytest
from _pytest.config import Config
class Plugin:
    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        code = pyfuncitem.obj.__code__
        return len(pyfuncitem.name) != 21 and code.co_name != "check" and "/workspace" in code.co_filename or None
for found in gc.get_objects():
    if isinstance(found, Config):
        found.pluginmanager.register(Plugin())
""",
    "suppresses_a_report": LIES
    + """
spare, null = os.dup(FD), os.open("/dev/null", os.O_WRONLY)
def hiding(cls, item, call):
    os.dup2(spare if call.when == "teardown" else null, FD)
    return lie(cls, item, call)
_reports.TestReport.from_item_and_call = classmethod(hiding)
""",
    "hollows_out_the_tests_that_follow": """
import gc
def during(words):
    for found in gc.get_objects():
        if type(found).__name__ == "Function" and hasattr(found, "runtest"):
            found.obj = lambda **_: None
""",
}
"""Forgeries that change the judge: nothing of such a session is believed."""
LATER = {
    "writes_start_up_files": """
import site
place = site.getusersitepackages()
os.makedirs(place, exist_ok=True)
hook = "import sys; exec(open('/workspace/forgeries/patches_reports.py').read())"
for name, text in (("evil.pth", hook), ("usercustomize.py", hook), ("sitecustomize.py", hook), ("pytest.py", "")):
    open(os.path.join(place, name), "w").write(text)
""",
    "writes_a_conftest": """
open("/workspace/conftest.py", "w").write("def pytest_pyfunc_call(pyfuncitem):\\n    return True\\n")
""",
}
"""Forgeries that wait for the next session; what comes before them is cleared away."""
FORGERIES = SPEAKS | LOSES | HANGS | CAUGHT | LATER


EVERY = "ASSAY_EVERY_CASE" in os.environ
"""Whether each forgery that only speaks has a session of its own; otherwise they speak one after the other in one."""
TOGETHER = "all_that_only_speak"


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    """Return the verdict on each session: each forgery, and what follows those that wait. Three machines run them."""
    base_image.ensure(connect(), print)
    bench = SuiteBench.make(tmp_path_factory.mktemp("bench"), DockerSandboxes())
    files = {**CODE, "tally/__init__.py": CODE["tally/__init__.py"] + LIBRARY, "tally/most.py": MOST}
    scripts = {**FORGERIES, TOGETHER: "\n".join(SPEAKS.values())}
    files |= {f"forgeries/{name}.py": COMMON + text for name, text in scripts.items()}

    def commands(names: Iterable[str]) -> dict[str, str]:
        return {name: f"FORGERY={name} pytest tests" for name in names}

    later: dict[str, str] = {}
    for name, command in commands(LATER).items():
        later |= {name: f"rm -rf ~/.local conftest.py; {command}", f"after_{name}": "pytest tests"}
    speaking = commands(SPEAKS if EVERY else [TOGETHER])
    machines = [
        ({"": "pytest tests", **speaking, **commands(LOSES)}, 600.0),
        ({**commands(CAUGHT), **later}, 600.0),
        (commands(HANGS), 4.0),
    ]

    def judged(number: int) -> dict[str, Verdict]:
        sessions, seconds = machines[number]
        folder = tmp_path_factory.mktemp("judged")
        found = bench.judge_each(folder, files, [*sessions.values()], command_seconds=seconds)
        return dict(zip(sessions, found, strict=True))

    with ThreadPoolExecutor(len(machines)) as pool:
        return {name: one for own in pool.map(judged, range(len(machines))) for name, one in own.items()}


def test_the_library_is_honest_without_a_forgery(verdicts: dict[str, Verdict]) -> None:
    assert verdicts[""].reward == pytest.approx(HONEST)
    assert verdicts[""].components["forged"] == 0.0
    assert len(FORGERIES) >= 45, "as many were tried"


@pytest.mark.parametrize("name", SPEAKS if EVERY else [TOGETHER])
def test_what_judged_code_says_changes_nothing(verdicts: dict[str, Verdict], name: str) -> None:
    verdict = verdicts[name]
    assert verdict.reward == pytest.approx(HONEST), verdict.output
    assert (verdict.components["forged"], verdict.error) == (0.0, None)


@pytest.mark.parametrize("name", [*LOSES, *HANGS])
def test_code_that_leaves_or_hides_gets_what_it_earns_at_most(
    verdicts: dict[str, Verdict], name: str
) -> None:
    verdict = verdicts[name]
    assert verdict.reward is not None
    assert verdict.reward <= HONEST + 1e-9, verdict.output
    assert (verdict.components["forged"], verdict.error) == (0.0, None)


@pytest.mark.parametrize("name", CAUGHT)
def test_nothing_of_a_session_whose_judge_was_changed_is_believed(
    verdicts: dict[str, Verdict], name: str
) -> None:
    verdict = verdicts[name]
    assert (verdict.reward, verdict.error) == (0.0, None), verdict.output
    assert verdict.components["forged"] == 1.0, verdict.output


def test_files_for_the_next_session_gain_nothing(verdicts: dict[str, Verdict]) -> None:
    for name in LATER:
        assert verdicts[name].reward == pytest.approx(HONEST), name
        assert (verdicts[f"after_{name}"].reward, verdicts[f"after_{name}"].components["forged"]) == (
            0.0,
            1.0,
        ), name
