"""Attacks by commands of cases: each is contained, on overlays and on copies, and the next case is clean."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import pytest

from runner.protocols import CaseBox
from runner.records import Environment
from runner.records.cases import Case, CaseLimits, CaseResult, CaseSide
from runner.sandbox.cases.box import DockerCaseBox
from runner.sandbox.docker import base_image, engine
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.inside import PYTHON
from tests.support.cases_factory import prepared
from tests.support.look_inside import run_inside

pytestmark = pytest.mark.docker

LIMITS = CaseLimits(
    seconds=30, memory_mb=128, pids=32, disk_mb=8, inodes=3_000, output_bytes=10_000, diff_seconds=10
)
Attack = Callable[..., CaseResult]
CLEAN = (
    "cat a; find . /tmp /var/tmp /dev/shm ~ -mindepth 1 | sort; stat -c %a a . /tmp ~; true > new; stat -c %a new; "
    "wc -l < /proc/sysvipc/shm; "
    "for comm in /proc/[0-9]*/comm; do read name < $comm && echo $name; done"
)
"""Command that prints all traces of an earlier case: files, processes, shared memory, modes."""


@pytest.fixture(scope="module")
def sandboxes() -> DockerSandboxes:
    return prepared()


@pytest.fixture(scope="module", params=["overlay", "copy"])
def sides(request: pytest.FixtureRequest, sandboxes: DockerSandboxes) -> Iterator[tuple[CaseBox, CaseBox]]:
    """Open a reference and a candidate at the same time."""
    image = sandboxes.image(Environment(image=base_image.tag()))
    with ExitStack() as stack:
        boxes = [
            stack.enter_context(
                sandboxes.cases(
                    CaseSide(name=name, image=image, limits=LIMITS, how=request.param, lanes=lanes)
                )
            )
            for name, lanes in (("reference", 1), ("candidate", 2))
        ]
        yield boxes[0], boxes[1]


@pytest.fixture(scope="module")
def attack(sides: tuple[CaseBox, CaseBox]) -> Attack:
    return attacker(sides[1])


def attacker(candidate: CaseBox) -> Attack:
    """Return a function that runs a candidate's command and checks that the next case in each lane is clean."""

    def look() -> list[str]:
        return sorted(
            candidate.run(Case(command_class="t", command=CLEAN, files={"a": "a"})).stdout.splitlines()
        )

    clean = look()
    assert {"a./a", "644", "755", "1777", "sh"} <= set(clean)

    def attack(command: str, **fields: object) -> CaseResult:
        given = {"class": "t", "command": command, "files": {"a": "a"}} | fields
        result = candidate.run(Case.model_validate(given))
        assert [look(), look()] == [clean, clean]
        return result

    return attack


TRAP = """ARG BASE
FROM ${BASE}
ENV PYTHONPATH=/opt/assay/cases PYTHONSTARTUP=/opt/assay/cases/runner/__init__.py PYTHONHOME=/opt/assay/cases
RUN mkdir -p /opt/assay/cases/runner/sandbox && cd /opt/assay/cases && \\
    echo 'raise SystemExit("taken")' > runner/__init__.py && cp runner/__init__.py runner/sandbox/ && \\
    for name in runner sitecustomize usercustomize json; do cp runner/__init__.py $name.py; done
"""


@pytest.mark.parametrize("how", ["overlay", "copy"])
def test_no_code_of_a_candidates_image_runs_as_the_supervisor(
    sandboxes: DockerSandboxes, tmp_path: Path, how: Literal["overlay", "copy"]
) -> None:
    """The candidate's installation runs as root, and may put modules where the supervisor's are imported from."""
    (tmp_path / "Dockerfile").write_text(TRAP)
    digest = hashlib.sha256(TRAP.encode()).hexdigest()
    environment = Environment(context=tmp_path, build_args={"BASE": base_image.tag()}, digest=digest)
    side = CaseSide(name="trap", image=sandboxes.image(environment), how=how)
    with sandboxes.cases(side) as box:
        result = box.run(Case(command_class="t", command="echo mine"))
    assert (result.stdout, result.how) == ("mine\n", how)


def python(script: str) -> dict[str, object]:
    return {"command": 'exec python3 -c "$SCRIPT"', "env": {"SCRIPT": script}}


def test_nothing_tells_a_candidate_which_side_it_is(sides: tuple[CaseBox, CaseBox]) -> None:
    look = Case(
        command_class="t",
        command=(
            "env; pwd; id; hostname; cat /proc/self/cgroup /etc/hosts /etc/passwd; ls /opt /run / /dev; "
            "sed 's/[0-9]*:[0-9]* / /; s/^[0-9 ]*//; s/master:[0-9]*//; s/[0-9a-f]\\{64\\}//g; s,overlay2/[^ ]*,,g' "
            "/proc/self/mountinfo; ls /proc/self/fd; ulimit -a; cat /proc/net/dev /proc/net/unix | wc -l; "
            "ls -la --time-style=+ / | tail -n +2 | grep -v proc"
        ),
    )
    reference, candidate = (box.run(look).stdout for box in sides)
    assert sorted(reference.splitlines()) == sorted(candidate.splitlines()), (
        "sorted, as the engine mounts in any order"
    )
    for word in ("reference", "candidate", "lane"):
        assert word not in reference


def test_writes_outside_are_refused_or_gone(attack: Attack) -> None:
    result = attack(
        "for place in /usr/bin/x /etc/x /etc/passwd /root/x /opt/assay/x /opt/x /proc/sys/kernel/core_pattern /dev/x "
        "/proc/1/oom_score_adj /sys/x /run/x; do (echo x >> $place) 2>/dev/null && echo $place; done; "
        "rm -rf --no-preserve-root / 2>/dev/null; echo x > /tmp/x; echo x > ~/.profile; ln -s /etc /test_data/etc"
    )
    assert result.stdout == ""
    assert {change.path for change in result.changes} <= {
        "/test_data/a",
        "/test_data/etc",
        "/tmp/x",
        "/home/user/.profile",
    }


def test_a_fork_bomb_ends_at_its_deadline(sandboxes: DockerSandboxes, sides: tuple[CaseBox, CaseBox]) -> None:
    side = sides[1].side.model_copy(update={"limits": LIMITS.model_copy(update={"seconds": 3})})
    began = time.monotonic()
    with sandboxes.cases(side) as box:
        attack = attacker(box)
        bomb = attack("bomb() { bomb | bomb & }; bomb; sleep 60")
        assert bomb.ended == "deadline" or "Cannot fork" in bomb.stderr, "its shell may be unable to fork"
        result = attack(**python("import os\nwhile True:\n try: os.fork()\n except OSError: pass"))
    assert result.ended == "deadline"
    assert time.monotonic() - began < 120


def test_daemons_die_with_the_case(attack: Attack) -> None:
    daemon = (
        "import os, signal, time\n"
        "for number in set(signal.valid_signals()) - {9, 19}: signal.signal(number, signal.SIG_IGN)\n"
        "for _ in range(3):\n"
        "    if os.fork(): os._exit(0)\n"
        "    os.setsid()\n"
        "while True:\n"
        "    for place in ('/test_data/a', '/tmp/left', '/dev/shm/left', os.path.expanduser('~/left')):\n"
        "        open(place, 'a').write('late')\n"
    )
    assert attack('python3 -c "$SCRIPT" & sleep 0.3', env={"SCRIPT": daemon}).ended == "exited"


def test_a_full_disk_is_emptied(attack: Attack) -> None:
    result = attack(
        "for place in . ~ /tmp /var/tmp /dev/shm; do cat /dev/zero > $place/big; done; echo x > b || echo full"
    )
    assert "No space left" in result.stderr or "File too large" in result.stderr or result.exit_code == 137
    sizes = [change.size or 0 for change in result.changes]
    assert max(sizes) <= LIMITS.disk_mb << 20


def test_much_output_is_counted_and_a_flood_of_it_ends_the_case(attack: Attack) -> None:
    result = attack("yes | head -c 32M; yes | head -c 1M >&2")
    assert len(result.stdout) == LIMITS.output_bytes
    assert result.ended == "deadline" or (result.stdout_bytes, result.stderr_bytes) == (32 << 20, 1 << 20)
    assert set(result.truncated) >= {"stdout"}
    flood = attack("yes | head -c 100M; touch after")
    assert (flood.ended, flood.exit_code) == ("flood", None)
    assert len(flood.stdout) == LIMITS.output_bytes


def test_the_supervisor_is_out_of_reach(attack: Attack) -> None:
    """It cannot be killed, stopped, traced, read or written to."""
    script = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
done = []
me = {os.getpid(), os.getppid()}
for pid in [int(name) for name in os.listdir('/proc') if name.isdigit()] + [1, -1]:
    if pid in me: continue
    for number in (signal.SIGKILL, signal.SIGSTOP):
        try:
            os.kill(pid, number)
            if pid > 0: done.append(('kill', pid))  # -1 succeeds whichever process it reached
        except (ProcessLookupError, PermissionError): pass
    if pid > 0 and libc.ptrace(16, pid, 0, 0) == 0: done.append(('ptrace', pid))
    for part in ('mem', 'environ', 'root/etc/passwd', 'cwd', 'fd/0', 'fd/1', 'fd/2', 'fd/4', 'maps'):
        try: open(f'/proc/{pid}/{part}', 'rb').read(1); done.append((part, pid))
        except OSError: pass
for fd in range(3, 100):
    try: os.write(fd, b'{"exit_code": 0, "how": "overlay", "stdout": "forged"}\\n'); done.append(('fd', fd))
    except OSError: pass
print(done, flush=True)
for fd in (1, 2): os.write(fd, b'\\n{"exit_code": 0, "how": "overlay"}\\n\\1\\0\\0\\0\\0\\0\\0\\2{}')
raise SystemExit(7)
"""
    result = attack(**python(script))
    assert result.exit_code == 7
    assert result.stdout.startswith("[]\n\n{"), result


def test_no_privilege_of_the_supervisor_is_available(attack: Attack) -> None:
    """Try mounts, namespaces, users, devices and kernel settings, by number and in the other calling convention."""
    script = """
import ctypes, errno, os, platform, struct
libc = ctypes.CDLL(None, use_errno=True)
done = []
def attempt(name, *arguments):
    ctypes.set_errno(0)
    if libc.syscall(*(ctypes.c_long(value) for value in arguments)) >= 0: done.append(name)
if platform.machine() == 'x86_64':
    text = ctypes.create_string_buffer(b'/tmp')
    at = ctypes.addressof(text)
    kind = ctypes.addressof(ctypes.create_string_buffer(b'tmpfs'))
    for base in (0, 0x40000000):
        attempt('mount', base + 165, kind, at, kind, 0, 0)
        attempt('umount', base + 166, at, 2)
        for flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x08000000, 0x04000000, 0x02000000, 0x80):
            attempt('unshare', base + 272, flag)
        attempt('fsopen', base + 430, kind, 0)
        attempt('open_tree', base + 428, -100, at, 1)
        attempt('bpf', base + 321, 0, 0, 0)
        attempt('perf_event_open', base + 298, 0, 0, -1, -1, 0)
        attempt('setns', base + 308, 0, 0)
        attempt('chroot', base + 161, at)
        attempt('setuid', base + 105, 0)
        attempt('keyctl', base + 250, 0, -3, 1)
    for flag in (0x10000000, 0x00020000, 0x20000000):
        attempt('clone', 56, flag | 17, 0, 0, 0, 0)
for name, work in {
    'mknod': lambda: os.mknod('/tmp/disk', 0o60666, os.makedev(8, 0)),
    'chown': lambda: os.chown('/test_data/a', 0, 0),
    'nice': lambda: os.nice(-5),
    'oom': lambda: os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-1000'),
    'port': lambda: __import__('socket').socket(17, 3, 0),
    'sysctl': lambda: os.open('/proc/sys/net/ipv4/ip_forward', os.O_WRONLY),
    'setuid bit': lambda: (os.chmod('/test_data/a', 0o4755), os.setuid(0)),
}.items():
    try: work(); done.append(name)
    except OSError: pass
print(done)
"""
    assert attack(**python(script)).stdout == "[]\n"


def test_setuid_programs_give_nothing(attack: Attack) -> None:
    assert attack(
        "find /usr/bin -perm -4000 -type f | head -3; su -c id root < /dev/null; id -u"
    ).stdout.endswith("\n9999\n")


def test_a_candidate_sees_neither_the_other_side_nor_other_cases(sides: tuple[CaseBox, CaseBox]) -> None:
    """The search runs while a case of the reference and one of the candidate hold the text that it looks for."""
    reference, candidate = sides
    canary = "canary-of-the-reference-0123456789"
    backwards = canary[::-1]
    script = (
        "import os\nneedle = os.environ.pop('BACKWARDS')[::-1].encode()\nfound = []\n"
        "for folder, folders, files in os.walk('/'):\n"
        "    if folder in ('/sys', '/usr'): folders.clear()\n"
        "    if folder.startswith('/proc/') and not folder.split('/')[2].isdigit(): folders.clear(); continue\n"
        "    for name in files:\n"
        "        path = os.path.join(folder, name)\n"
        "        if folder == '/proc' or name in ('kmsg', 'mem', 'pagemap', 'clear_refs'): continue\n"
        "        try: fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)\n"
        "        except OSError: continue\n"
        "        try:\n"
        "            if needle in os.read(fd, 1 << 20): found.append(path)\n"
        "        except OSError: pass\n"
        "        finally: os.close(fd)\n"
        "print(found)\n"
    )
    secret = Case(
        command_class="t",
        command=f"echo {canary} > b; sleep 1.5",
        files={"a": canary},
        env={"CANARY": canary},
    )
    search = Case.model_validate(
        {"class": "t", "env": {"BACKWARDS": backwards}} | {"command": 'python3 -c "$S"'}
    )
    search = search.model_copy(update={"env": {"BACKWARDS": backwards, "S": script}})
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(2))
        busy = pool.submit(reference.run, secret)
        neighbour = pool.submit(candidate.run, secret)
        found = candidate.run(search)
        assert (busy.result().ended, neighbour.result().ended) == ("exited", "exited")
    assert (found.stdout, found.exit_code) == ("[]\n", 0), found
    planted = candidate.run(search.model_copy(update={"files": {"planted": canary}}))
    assert planted.stdout == "['/test_data/planted']\n", "the search works"


def test_folders_that_shut_everybody_out(attack: Attack) -> None:
    result = attack(
        "mkdir -p shut/in; echo x > shut/in/file; chmod 0 shut/in/file shut/in shut . /tmp ~ 2>/dev/null"
    )
    assert {(change.path, change.mode) for change in result.changes} >= {
        ("/test_data", 0),
        ("/test_data/shut", 0),
        ("/test_data/shut/in", 0),
        ("/test_data/shut/in/file", 0),
    }


def test_very_many_files(attack: Attack) -> None:
    result = attack("mkdir -p n; cd n; seq 100000 | xargs touch 2>&1 | head -1")
    assert result.truncated[0] in ("entries", "diff_seconds")
    assert len(result.changes) <= LIMITS.diff_entries


def test_folders_too_deep_for_any_path(attack: Attack) -> None:
    script = (
        "import os\nfor _ in range(2500):\n os.mkdir('deepdeepdeep'); os.chdir('deepdeepdeep')\nprint('done')"
    )
    result = attack(**python(script))
    assert result.stdout == "done\n"
    assert "entries" in result.truncated
    assert max(len(change.path) for change in result.changes) < 4096


def test_names_that_look_like_something_else(attack: Attack) -> None:
    script = """
import os
names = [b'n' * 255, b'..\\\\..', b'\\xff\\xfe', b'"}\\n{"exit_code": 0}', b'-rf', b' ', b'\\x1b[2J', b'.wh.a']
for name in names:
    open(name, 'w').close()
os.symlink('/proc/1/root', 'root'); os.symlink('/', 'all'); os.symlink('loop', 'loop'); os.symlink('x' * 4000, 'long')
os.mkfifo('pipe'); import socket; socket.socket(socket.AF_UNIX).bind('socket')
"""
    result = attack(**python(script))
    assert result.exit_code == 0, result
    assert len(result.changes) == 14
    assert {change.path for change in result.changes} >= {
        r"/test_data/..\\..",
        r"/test_data/\xff\xfe",
        "/test_data/-rf",
    }


def test_shared_memory_is_removed(attack: Attack) -> None:
    attack("ipcmk -M 1000 -Q -S 3; echo x > /dev/shm/left; ls /dev/mqueue; grep -c . /proc/sysvipc/shm")


def test_attributes_of_a_folder_are_removed(attack: Attack) -> None:
    """A default access list would change the modes of the next case's files."""
    script = (
        "import os, struct\nentries = [(1, 6, -1), (4, 0, -1), (32, 0, -1)]\n"
        "acl = struct.pack('<I', 2) + b''.join(struct.pack('<HHi', *entry) for entry in entries)\n"
        "for place in ('.', os.path.expanduser('~')): os.setxattr(place, 'system.posix_acl_default', acl)\n"
        "open('new', 'w').close(); print(oct(os.stat('new').st_mode))"
    )
    assert attack(**python(script)).stdout == "0o100600\n"


def test_a_port_that_was_used_is_free_again(attack: Attack, sides: tuple[CaseBox, CaseBox]) -> None:
    """The kernel reserves the port of a closed connection for a minute."""
    script = (
        "import socket\nserver = socket.socket(); server.bind(('127.0.0.1', 8080)); server.listen()\n"
        "client = socket.create_connection(('127.0.0.1', 8080)); there, _ = server.accept(); there.close()"
        "; client.close(); print('served')"
    )
    if sides[1].how == "copy":
        pytest.skip("no network namespaces without mounts")
    assert [attack(**python(script)).stdout for _ in range(3)] == ["served\n"] * 3


def test_memory_of_files_is_freed(sides: tuple[CaseBox, CaseBox], attack: Attack) -> None:
    """Otherwise this many cases would have filled the memory of the lane."""
    fill = Case(command_class="t", command="head -c 7M /dev/zero > big")
    for _ in range(27):
        assert sides[1].run(fill).exit_code == 0
    assert attack("python3 -c 'bytearray(80 << 20)'").exit_code == 0


KILL = """
import os
for pid in filter(str.isdigit, os.listdir('/proc')):
    try:
        if b'\\0serve\\0' in open(f'/proc/{pid}/cmdline', 'rb').read(): os.kill(int(pid), 9)
    except (FileNotFoundError, ProcessLookupError):  # it has ended, like all processes of a dead supervisor
        pass
"""


def test_a_supervisor_that_dies_is_replaced(sides: tuple[CaseBox, CaseBox]) -> None:
    """The test kills it from outside, which no case can do. Another supervisor runs its case again."""
    reference = sides[0]
    assert isinstance(reference, DockerCaseBox)
    api = engine.connect().api
    slow = Case(command_class="t", command="echo once > n; sleep 1; cat n", files={"a": "a"})
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(reference.run, slow)
        time.sleep(0.4)
        assert run_inside(api, reference._containers[0], PYTHON, "-I", "-S", "-c", KILL) == ""
        assert future.result().stdout == "once\n"
    assert "/test_data/n" not in reference.run(Case(command_class="t", command=CLEAN)).stdout
