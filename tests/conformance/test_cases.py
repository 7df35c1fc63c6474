"""The contract of both isolations of a case: one suite, run on overlays and on copies."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Literal

import pytest

from metrics.differential import Phase, Rules, judge_case
from runner.benchmarks.cli_tool_bench.reference_runs import observe
from runner.protocols import CaseBox
from runner.records import Environment
from runner.records.cases import Case, CaseLimits, CaseResult, CaseSide
from runner.sandbox.cases import launch
from runner.sandbox.cases.box import stream
from runner.sandbox.cases.inside.command import FLOOD_BYTES
from runner.sandbox.docker import base_image
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.inside import PYTHON
from tests.support.cases_factory import prepared
from tests.support.ignoring import ignoring_all

pytestmark = pytest.mark.docker

LIMITS = CaseLimits(
    seconds=30,
    memory_mb=128,
    pids=32,
    disk_mb=8,
    inodes=1_000,
    output_bytes=10_000,
    diff_entries=50,
    text_bytes=20,
)
FILES = {"a": "a\n", "b": "b\n", "d/one": "1\n", "d/two": "2\n", "d/e/deep": "deep\n"}

Run = Callable[..., CaseResult]
Changes = list[tuple[str, str, str]]
"""Change, kind, and path: below the files' folder, or absolute."""


@pytest.fixture(scope="module")
def sandboxes() -> DockerSandboxes:
    return prepared()


@pytest.fixture(scope="module", params=["overlay", "copy"])
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def open_box(sandboxes: DockerSandboxes, how: str) -> Iterator[Callable[..., CaseBox]]:
    with ExitStack() as stack:

        def open_box(**changed: object) -> CaseBox:
            image = sandboxes.image(Environment(image=base_image.tag()))
            given = {"name": "test", "image": image, "limits": LIMITS, "how": how, **changed}
            return stack.enter_context(sandboxes.cases(CaseSide.model_validate(given)))

        yield open_box


@pytest.fixture(scope="module")
def box(open_box: Callable[..., CaseBox]) -> CaseBox:
    return open_box()


@pytest.fixture(scope="module")
def run(box: CaseBox) -> Run:
    def run(command: str, **fields: object) -> CaseResult:
        return box.run(Case.model_validate({"class": "t", "command": command, "files": FILES} | fields))

    return run


def changes(result: CaseResult) -> Changes:
    """Return the changes of a result in short form."""
    assert result.ended == "exited", result
    return [(c.change, c.kind, c.path.removeprefix("/test_data/")) for c in result.changes]


def test_a_case_ends_with_its_code_and_both_streams(run: Run, how: str) -> None:
    result = run("echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert (result.stdout_bytes, result.stderr_bytes, result.truncated) == (4, 4, ())
    assert (result.how, result.changes) == (how, ())
    assert 0 < result.seconds < LIMITS.seconds


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
        ("nosuch", 127),
        ("./a", 126),
        ("kill -PIPE $$", 141),
        ("cat", 0),
    ],
)
def test_exit_codes_are_those_of_a_shell(run: Run, command: str, code: int) -> None:
    assert run(command).exit_code == code


CHANGES: list[tuple[str, Changes]] = [
    ("true", []),
    ("echo new > n", [("added", "file", "n")]),
    ("echo more >> a", [("changed", "file", "a")]),
    ("rm b", [("deleted", "file", "b")]),
    ("touch a; echo b > b; cp d/one x; mv x d/one; cat a", []),
    ("rm a; echo a > a", []),
    ("chmod 600 a", [("changed", "file", "a")]),
    ("chmod 600 a; chmod 644 a; chmod 700 d; chmod 755 d", []),
    ("chmod 500 d", [("changed", "directory", "d")]),
    ("chmod 0 d", [("changed", "directory", "d")]),
    ("mkdir n", [("added", "directory", "n")]),
    ("ln -s nowhere n", [("added", "symlink", "n")]),
    ("ln -s a n; rm n", []),
    ("ln a n", [("added", "file", "n")]),
    ("mkfifo n", [("added", "other", "n")]),
    ("rm a; ln -s b a", [("changed", "symlink", "a")]),
    ("rm a; mkdir a; echo x > a/x", [("changed", "directory", "a"), ("added", "file", "a/x")]),
    (
        "rm -r d; echo d > d",
        [
            ("changed", "file", "d"),
            ("deleted", "directory", "d/e"),
            ("deleted", "file", "d/e/deep"),
            ("deleted", "file", "d/one"),
            ("deleted", "file", "d/two"),
        ],
    ),
    (
        "rm -r d; mkdir d; echo 1 > d/one; echo 3 > d/three",
        [
            ("deleted", "directory", "d/e"),
            ("deleted", "file", "d/e/deep"),
            ("added", "file", "d/three"),
            ("deleted", "file", "d/two"),
        ],
    ),
    (
        "mv d/e f; rm d/one",
        [
            ("deleted", "directory", "d/e"),
            ("deleted", "file", "d/e/deep"),
            ("deleted", "file", "d/one"),
            ("added", "directory", "f"),
            ("added", "file", "f/deep"),
        ],
    ),
    ("mv d f; mv f d", []),
    ("mv d/e x; mv x d/e; echo more >> d/e/deep", [("changed", "file", "d/e/deep")]),
    ("mkdir -m 700 n; echo x > n/.hidden", [("added", "directory", "n"), ("added", "file", "n/.hidden")]),
    ("mkdir n; rmdir n; rm -rf nothing", []),
    (
        'echo x > ~/h; echo y > "$HOME/.i"; echo z > /tmp/z; echo w > /var/tmp/w; echo v > /dev/shm/v; : > /dev/null',
        [
            ("added", "file", "/home/user/.i"),
            ("added", "file", "/home/user/h"),
            ("added", "file", "/tmp/z"),
            ("added", "file", "/var/tmp/w"),
        ],
    ),
    ('python3 -c \'import os; os.rename("d", "f")\'; mv f d', []),
    (
        r"""touch "$(printf 'line\nbreak')" 'sp ace' 'back\slash' "$(printf '\377')" 'ünï'""",
        [
            ("added", "file", r"\xff"),
            ("added", "file", r"back\\slash"),
            ("added", "file", "line\nbreak"),
            ("added", "file", "sp ace"),
            ("added", "file", "ünï"),
        ],
    ),
]


@pytest.mark.parametrize(("command", "expected"), CHANGES, ids=[command for command, _ in CHANGES])
def test_changes_are_the_difference_in_the_end(run: Run, command: str, expected: Changes) -> None:
    result = run(command, prep="test -d d/e")
    assert (result.exit_code, result.stderr) == (0, ""), result
    assert sorted(changes(result)) == sorted(expected)
    assert [c.path for c in result.changes] == sorted(c.path for c in result.changes)


LINKED = "mkdir real p; echo x > real/a; echo y > p/environ; echo z > p/kmsg; ln -s real link"
"""Prep that makes a folder, a link to it, and a folder whose names also exist elsewhere."""
GONE: Changes = [("changed", "symlink", "p"), ("deleted", "file", "p/environ"), ("deleted", "file", "p/kmsg")]
REPLACED: list[tuple[str, Changes]] = [
    ("rm link; mkdir link", [("changed", "directory", "link")]),
    ("rm link; cp -r real link", [("changed", "directory", "link"), ("added", "file", "link/a")]),
    (
        "rm -r real link; ln -s p real",
        [("deleted", "symlink", "link"), ("changed", "symlink", "real"), ("deleted", "file", "real/a")],
    ),
    ("rm -r p; ln -s /proc/1 p", GONE),
    ("rm -r p; ln -s /proc p", GONE),
]


@pytest.mark.parametrize(("command", "expected"), REPLACED, ids=[command for command, _ in REPLACED])
def test_no_link_is_followed_where_a_folder_was_or_will_be(run: Run, command: str, expected: Changes) -> None:
    """Otherwise the result would reveal the link's target outside the case's machine."""
    result = run(command, prep=LINKED)
    assert (sorted(changes(result)), result.truncated) == (sorted(expected), ())


def test_a_change_has_mode_size_content_and_target(run: Run) -> None:
    result = run(
        "umask 077; printf 0123456789abcdefghijklmnopqrst > n; chmod 4755 n; ln -s ../a l; mkdir -m 1777 m; rm b"
    )
    by_name = {change.path.rpartition("/")[2]: change for change in result.changes}
    file, link, folder, gone = (by_name[name] for name in ("n", "l", "m", "b"))
    assert (file.mode, file.size, file.text) == (0o4755, 30, "0123456789abcdefghij")
    assert file.digest == hashlib.sha256(b"0123456789abcdefghijklmnopqrst").hexdigest()
    assert (link.mode, link.size, link.text, len(link.digest or "")) == (None, None, "../a", 64)
    assert (folder.mode, folder.digest, folder.text) == (0o1777, None, None)
    assert (gone.mode, gone.size, gone.digest, gone.text) == (None, None, None, None)


def test_a_change_has_the_former_kind_and_whether_only_its_mode_differs(run: Run) -> None:
    result = run("chmod 700 a d; rm b; mkdir b; rm d/one; echo x > n; chmod 600 d/two; echo x > d/two")
    was = {c.path.removeprefix("/test_data/"): (c.was, c.kind, c.mode_only) for c in result.changes}
    assert was == {
        "a": ("file", "file", True),
        "d": ("directory", "directory", True),
        "b": ("file", "directory", False),
        "d/one": ("file", "file", False),
        "n": (None, "file", False),
        "d/two": ("file", "file", False),
    }


def test_changes_refer_to_the_state_after_prep(run: Run) -> None:
    prep = "echo p > p; rm a; mv d f; mkdir -p ~/q; echo t > /tmp/t; echo b > b; sleep 600 >/dev/null &"
    assert run("cat p f/one /tmp/t; ls; ls ~; pgrep sleep", prep=prep).stdout == "p\n1\nt\nb\nf\np\nq\n"
    assert changes(run("true", prep=prep)) == []
    result = run("echo more >> p; rm -r f/e; rmdir ~/q; echo a > a; rm /tmp/t", prep=prep)
    assert sorted(changes(result)) == [
        ("added", "file", "a"),
        ("changed", "file", "p"),
        ("deleted", "directory", "/home/user/q"),
        ("deleted", "directory", "f/e"),
        ("deleted", "file", "/tmp/t"),
        ("deleted", "file", "f/e/deep"),
    ]


def test_a_prep_that_fails_is_a_value_and_the_command_never_runs(run: Run) -> None:
    result = run("echo ran", prep="echo why >&2; exit 9")
    assert (result.ended, result.exit_code, result.stdout, result.stderr) == ("prep", None, "", "why\n")
    too_much = run("echo ran", files={f"f{number}": "" for number in range(LIMITS.inodes)})
    assert (too_much.ended, too_much.stderr) == (
        "prep",
        "the case's files cannot be written: No space left on device\n",
    )
    assert run("echo ran").stdout == "ran\n"


def test_a_case_has_its_own_environment_only(open_box: Callable[..., CaseBox]) -> None:
    box = open_box(env={"SIDE": "side", "BOTH": "side"}, workdir="/somewhere/else")
    result = box.run(Case(command_class="t", command="pwd; env | sort", env={"BOTH": "case", "LANG": "C"}))
    assert result.stdout.splitlines() == [
        "/somewhere/else",
        "BOTH=case",
        "HOME=/home/user",
        "LANG=C",
        "LOGNAME=user",
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PWD=/somewhere/else",
        "SIDE=side",
        "USER=user",
    ]


def test_a_case_runs_as_a_user_without_privileges(run: Run) -> None:
    result = run(
        "id; grep -E '^(Cap|NoNew|Seccomp:|SigIgn)' /proc/self/status; ls /proc/self/fd; cat /proc/self/cgroup; umask"
    )
    assert result.stdout.startswith("uid=9999(user) gid=9999(user) groups=9999(user)\n")
    status = dict(line.split(":\t") for line in result.stdout.splitlines() if ":\t" in line)
    assert {status.pop(name) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "SigIgn")} == {
        "0" * 16
    }
    assert status == {"NoNewPrivs": "1", "Seccomp": "2"}
    assert "\n0\n1\n2\n3\n" in result.stdout, "ls itself opens descriptor 3"


def test_signals_that_the_engine_ignores_are_not_ignored_in_a_case(
    open_box: Callable[..., CaseBox], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CI once ignored signal 32, which glibc never resets, so all cases ignored it, too."""
    command = launch.command
    monkeypatch.setattr(launch, "command", lambda *given: ignoring_all(command(*given), PYTHON))
    box = open_box()
    script = "grep -E '^Sig(Blk|Ign)' /proc/self/status; sleep 60 & kill -HUP $!; wait $!"
    result = box.run(Case(command_class="t", command=script))
    assert result.stdout == f"SigBlk:\t{0:016}\nSigIgn:\t{0:016}\n"
    assert result.exit_code == 128 + signal.SIGHUP


def test_the_machine_has_a_loopback_a_terminal_and_names(run: Run) -> None:
    script = (
        "import os, pty, socket, multiprocessing\n"
        "server = socket.create_server(('localhost', 8080)); socket.create_connection(('localhost', 8080))\n"
        "pty.openpty(); multiprocessing.Semaphore(); print(os.uname().nodename, os.path.expanduser('~user'))\n"
        "try: socket.create_connection(('198.51.100.1', 80), timeout=2)\n"
        "except OSError as error: print(error.strerror)\n"
    )
    result = run('python3 -c "$SCRIPT"', env={"SCRIPT": script})
    assert result.stdout == "sandbox /home/user\nNetwork is unreachable\n", result


def test_output_beyond_the_cap_is_dropped_counted_and_reported(run: Run) -> None:
    result = run("head -c 25000 /dev/zero | tr '\\0' x; head -c 10000 /dev/zero | tr '\\0' y >&2")
    assert (len(result.stdout), result.stdout_bytes) == (10_000, 25_000)
    assert (len(result.stderr), result.stderr_bytes) == (10_000, 10_000)
    assert result.truncated == ("stdout",)
    whole = [hashlib.sha256(sign * count).hexdigest() for sign, count in ((b"x", 25_000), (b"y", 10_000))]
    assert [result.stdout_digest, result.stderr_digest] == whole


@pytest.mark.parametrize("semantics", ["paper", "artifact"])
def test_outputs_that_differ_beyond_the_cap_do_not_match(
    run: Run, semantics: Literal["paper", "artifact"]
) -> None:
    """They once matched if their beginnings and their lengths were equal."""
    long = "head -c 25000 /dev/zero | tr '\\0' x"
    rules = Rules(semantics)
    one, again, other = (observe(run(f"{long}; echo {end}")) for end in ("a", "a", "b"))
    assert judge_case(one, again, rules).exact_match
    assert (judge_case(one, other, rules).phase, one.stdout == other.stdout) == (Phase.OUTPUT, True)


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_a_flood_of_output_ends_a_case_long_before_its_deadline_and_matches_nothing(
    run: Run, stream: str
) -> None:
    flood = run(f"echo x > n; cat /dev/zero{stream}")
    assert (flood.ended, flood.exit_code) == ("flood", None)
    assert FLOOD_BYTES < max(flood.stdout_bytes, flood.stderr_bytes) < 2 * FLOOD_BYTES
    assert [change.path for change in flood.changes] == ["/test_data/n"]
    assert flood.seconds < LIMITS.seconds
    largest = run(f"head -c {FLOOD_BYTES} /dev/zero{stream}")
    assert (largest.ended, largest.exit_code, largest.stdout_bytes + largest.stderr_bytes) == (
        "exited",
        0,
        FLOOD_BYTES,
    )
    assert run(f"head -c {FLOOD_BYTES + 1} /dev/zero{stream}").ended == "flood"


def test_a_case_may_start_in_the_root_and_write_there_if_it_has_its_own(run: Run, how: str) -> None:
    """The authors' cases run as root in `/`."""
    result = run("pwd; cat test_data/a", prep="pwd", start="/")
    assert (result.stdout, result.changes) == ("/\na\n", ())
    writes = run("echo x > n; mkdir m; mv usr other", start="/")
    assert "mv" in writes.stderr, "entries that it does not own cannot be moved"
    assert [change.path for change in writes.changes] == (["/m", "/n"] if how == "overlay" else [])
    renames = run("mv test_data other && ln -s etc test_data", start="/")
    links = [change.path for change in renames.changes if change.kind == "symlink"]
    assert links == (["/test_data"] if how == "overlay" else [])
    assert not any("passwd" in change.path for change in renames.changes), "no link is followed"
    assert run("ls -d /n /m /other; cat a").stdout == "a\n"


def test_a_case_may_be_larger_than_a_pipe(run: Run) -> None:
    """A case is sent through a pipe. One that the kernel refuses yields a result, too."""
    result = run("echo ${#BIG}", env={"BIG": "x" * 100_000})
    assert (result.stdout, result.exit_code) == ("100000\n", 0)
    result = run(f"echo {'x' * 300_000}")
    assert (result.stderr, result.exit_code) == (
        "cannot start: [Errno 7] Argument list too long: '/bin/sh'\n",
        126,
    )


def test_a_cap_within_a_character_leaves_text(run: Run) -> None:
    result = run("printf x; head -c 20000 /dev/zero | sed 's/\\x00/é/g'")
    assert (result.stdout, result.binary) == ("x" + "é" * 4_999, ())
    assert (result.stdout_bytes, result.truncated) == (40_001, ("stdout",))


def test_output_that_is_not_text_is_readable_and_distinguishable(run: Run) -> None:
    assert run(r"printf 'a\377\0\303\251\n'").stdout == "a\\xff\0é\n"
    assert run(r"printf '\376'").stdout != run(r"printf '\377'").stdout
    byte, text = run(r"printf '\377'"), run(r"printf '\\xff'")
    assert (byte.stdout, byte.binary, text.stdout, text.binary) == (r"\xff", ("stdout",), r"\xff", ())
    assert (observe(byte).note, observe(text).note) == ("not UTF-8", "")
    both = run(r"printf '\377\\xff'; printf '\376' >&2")
    assert (both.stdout, both.binary) == (r"\xff\\xff", ("stdout", "stderr"))


def test_background_processes_end_with_the_case(run: Run) -> None:
    result = run("(sleep 20; echo late >> a; echo late) & echo now; setsid sleep 60 & exit 0")
    assert (result.stdout, result.seconds < 20, result.changes) == ("now\n", True, ())
    assert run("cat /proc/*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep [6]0'").stdout == "0\n"


def test_every_case_starts_clean(run: Run) -> None:
    run("rm -rf /test_data/* ~/*; chmod 0 /test_data; touch /tmp/left ~/left /var/tmp/left /dev/shm/left")
    look = "ls -lan --time-style=+ . /tmp ~ /var/tmp /dev/shm /home | sed 's/^total.*//'; umask"
    first = run(look)
    assert "left" not in first.stdout
    run("mkdir -p deep/er; mkfifo pipe; echo changed > a; ipcmk -M 100; echo x > .hidden")
    assert run(look).stdout == first.stdout
    assert run("cat a; ls -A | wc -l").stdout == "a\n3\n"


def test_a_case_that_never_ends_is_killed_and_its_changes_are_seen(open_box: Callable[..., CaseBox]) -> None:
    box = open_box(limits=LIMITS.model_copy(update={"seconds": 1.5}))
    for command in (
        "echo x > n; echo said; sleep 60",
        "trap '' TERM INT HUP; echo x > n; echo said; while :; do :; done",
    ):
        result = box.run(Case(command_class="t", command=command))
        assert (result.ended, result.exit_code, result.stdout) == ("deadline", None, "said\n")
        assert [change.path for change in result.changes] == ["/test_data/n"]
        assert 1.5 <= result.seconds < 20


def test_changes_beyond_the_limit_are_dropped(run: Run) -> None:
    result = run("for n in $(seq 100); do echo $n > f$n; done")
    assert (len(result.changes), result.truncated) == (LIMITS.diff_entries, ("entries",))
    exactly = run("for n in $(seq 50); do echo $n > f$n; done")
    assert (len(exactly.changes), exactly.truncated) == (LIMITS.diff_entries, ())


def test_looking_for_changes_ends_in_time(open_box: Callable[..., CaseBox]) -> None:
    """Sparse files cost nothing to make and much to read."""
    limits = CaseLimits(disk_mb=64, diff_seconds=1.0, inodes=2_000)
    box = open_box(limits=limits)
    result = box.run(Case(command_class="t", command="for n in $(seq 200); do truncate -s 64M f$n; done"))
    assert result.truncated == ("diff_seconds",)
    assert result.changes[-1].digest is None
    assert 0 < len(result.changes) < 200


def test_limits_hold(run: Run) -> None:
    full = run("head -c 20M /dev/zero > big; echo $?; ls -s big | cut -d' ' -f1", prep="true")
    assert full.exit_code == 0
    assert int(full.stdout.splitlines()[1]) <= LIMITS.disk_mb << 10
    spread = run("for n in 1 2 3 4; do head -c 3M /dev/zero > big$n; done; echo x > last || echo full")
    assert "No space left" in spread.stderr
    many = run("for n in $(seq 1200); do true > f$n || break; done; echo $n")
    assert int(many.stdout) < LIMITS.inodes
    hungry = run("python3 -c 'x = bytearray(400 << 20); print(len(x))'")
    assert (hungry.exit_code, hungry.stdout) == (137, "")
    forks = run("for n in $(seq 100); do sleep 3 & done 2>&1; jobs | wc -l")
    assert forks.exit_code != 0 or int(forks.stdout.splitlines()[-1]) <= LIMITS.pids, forks
    assert run("echo alive").stdout == "alive\n"


def test_results_stream(open_box: Callable[..., CaseBox]) -> None:
    one = open_box(lanes=2)
    cases = [Case(command_class="t", command=f"echo {n} > n; sleep 0.0{9 - n}; cat n") for n in range(6)]
    results = dict(stream(one, cases))
    assert [results[n].stdout for n in range(6)] == [f"{n}\n" for n in range(6)]
