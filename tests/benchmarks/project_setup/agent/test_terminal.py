"""The agent's terminal and its tools for files in a real container, and attacks on them from inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from threading import Event, Thread

import pytest

from runner.benchmarks.project_setup.agent.shell_session import CommandReport, Terminal, read_file, write_file
from runner.errors import Stopped
from runner.records import Environment, ExecSpec, SandboxSpec
from runner.sandbox.docker import base_image
from runner.sandbox.docker.container import DockerSandbox
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.inside import PYTHON

pytestmark = pytest.mark.docker
LONG_SECONDS = 120.0
"""Time limit for commands that end by themselves."""
SHORT_SECONDS = 0.2
"""Time limit for commands that do not, and for tests that wait repeatedly."""

AWAIT = "until rm /tmp/go 2>/dev/null; do sleep 0.05; done"
"""Command that waits until `go` is called."""

Start = Callable[..., DockerSandbox]


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Return a function that starts containers like an agent's, with limits."""
    base_image.ensure(connect(), print)
    environment = Environment(image=base_image.tag(), workdir="/workspace")
    gateway = tmp_path_factory.mktemp("gateway")
    with ExitStack() as stack:

        def start(**limits: object) -> DockerSandbox:
            provider = DockerSandboxes.model_validate(limits)
            image = provider.image(environment)
            spec = SandboxSpec(
                name="terminal", image=image, environment=environment, user="root", gateway_dir=gateway
            )
            return stack.enter_context(provider.open(spec))  # type: ignore[return-value]

        yield start


@pytest.fixture(scope="session")
def sandbox(start: Start) -> DockerSandbox:
    """Sandbox for all tests that leave it unchanged."""
    return start(pids=256)


@pytest.fixture(scope="session")
def shared() -> dict[float, Terminal]:
    """Return terminals by their time limit."""
    return {}


@pytest.fixture(autouse=True)
def _anew_after_a_failure(request: pytest.FixtureRequest, shared: dict[float, Terminal]) -> Iterator[None]:
    """Replace the shared terminals after a failed test, so that no other test fails."""
    failed = request.session.testsfailed
    yield
    if request.session.testsfailed > failed:
        shared.clear()


@pytest.fixture
def terminal(sandbox: DockerSandbox, shared: dict[float, Terminal]) -> Terminal:
    """Return the shared terminal that waits for the end of commands."""
    return shared.setdefault(LONG_SECONDS, Terminal(sandbox, LONG_SECONDS, lambda: None))


@pytest.fixture
def hasty(sandbox: DockerSandbox, shared: dict[float, Terminal]) -> Terminal:
    """Return the shared terminal that does not wait."""
    return shared.setdefault(SHORT_SECONDS, Terminal(sandbox, SHORT_SECONDS, lambda: None))


def go(terminal: Terminal) -> None:
    """End the wait of `AWAIT`."""
    terminal._sandbox.exec(ExecSpec(argv=("touch", "/tmp/go")))


def to_end(terminal: Terminal, report: CommandReport) -> CommandReport:
    """Wait until a command ends; return the last report with the output of all."""
    printed = [report.output]
    while report.state == "running":
        report = terminal.wait()
        printed.append(report.output)
    return report.model_copy(update={"output": "\n".join(printed).strip()})


# --- a shell that stays ----------------------------------------------------------------------------------------------


def test_a_shell_keeps_its_folder_variables_functions_and_options(terminal: Terminal) -> None:
    terminal.run("cd /usr/lib; export FRUIT=pear; hello() { echo hello $1; }; shopt -s nullglob")
    report = terminal.run("pwd; echo $FRUIT; hello you; echo /nope*")
    assert (report.output, report.exit_code, report.state) == ("/usr/lib\npear\nhello you", 0, "ended")
    assert terminal.cwd == "/usr/lib"


def test_both_streams_come_in_their_order_with_the_exit_code(terminal: Terminal) -> None:
    report = terminal.run("echo one; echo two >&2; echo three; (exit 7)")
    assert (report.output, report.exit_code, report.note) == ("one\ntwo\nthree", 7, "")


@pytest.mark.parametrize(
    "command",
    [
        "echo 'it'\"'\"'s'\necho \"two\" # a comment",
        "cat <<'END'\nit's\ntwo\nEND\n",
        'printf "it\\x27s\\ntwo"',
        'echo "it\'s"; \\\necho two\n\n',
    ],
)
def test_a_command_is_taken_as_it_is_written(terminal: Terminal, command: str) -> None:
    assert terminal.run(command).output == "it's\ntwo"


def test_a_command_of_many_kilobytes_is_run(terminal: Terminal) -> None:
    assert terminal.run(f"echo -n {'x' * 300_000} | wc -c").output == "300000"


def test_a_command_that_is_too_long_for_the_shell_is_refused(terminal: Terminal) -> None:
    assert "too long" in terminal.run("'" * 400_000).note
    assert "handed over" in terminal.run("x" * 2_000_000).note
    assert terminal.run("echo fine").output == "fine"


def test_a_command_that_makes_no_sense_ends_and_the_shell_stays(terminal: Terminal) -> None:
    terminal.run("KEPT=yes")
    for command in ("echo 'open", "if true; then", "fi", "no-such-command", "cd /nope", "set -u; echo $nope"):
        report = terminal.run(command)
        assert (report.state, bool(report.exit_code), bool(report.output)) == ("ended", True, True), command
    assert terminal.run("set +u; echo $KEPT").output == "yes"


def test_a_command_changes_only_its_own_streams(terminal: Terminal) -> None:
    terminal.run("exec >/tmp/elsewhere 2>&1 </dev/null; echo lost; stty sane raw echo")
    assert terminal.run("echo seen; read -t 0 || echo a terminal").output == "seen\na terminal"


def test_commands_inherit_no_descriptor_of_ours(terminal: Terminal) -> None:
    assert terminal.run("exec ls /proc/self/fd").output.split() == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    "command",
    [
        f"{AWAIT}; echo at last",
        rf"printf '$ \n1 0\nexit\n'; {AWAIT}; echo at last",
        f"PS1='> ' bash --norc --noprofile -i -c '{AWAIT}'; echo at last",
        f"exec bash -c '{AWAIT}; echo at last'",
    ],
    ids=["silent", "looks like an end", "a shell in the shell", "in place of the shell"],
)
def test_a_command_that_has_not_ended_is_not_taken_for_one_that_has(hasty: Terminal, command: str) -> None:
    first = hasty.run(command)
    again = hasty.wait()
    assert (first.state, again.state) == ("running", "running")
    go(hasty)
    assert to_end(hasty, hasty.wait()).output.endswith("at last")


def test_processes_in_the_background_do_not_hold_a_command_up(terminal: Terminal) -> None:
    report = terminal.run("sleep 7001 & (setsid sleep 7002 &) ; echo on")
    assert report.state == "ended"
    assert report.output.endswith("on")
    lives = "until grep -qa '[7]002' /proc/[0-9]*/cmdline; do sleep 0.05; done"
    assert terminal.run(f"kill %1 && wait; {lives}").exit_code == 0


def test_lists_of_processes_and_variables_hide_our_programs(terminal: Terminal) -> None:
    """Lists of processes showed the texts of our programs, which contained the commands."""
    report = terminal.run("env; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo needle")
    assert "ASSAY_PROGRAM=" not in report.output
    assert report.output.count("needle") == 1
    assert "select" not in report.output


def test_commands_have_a_dumb_terminal(terminal: Terminal) -> None:
    report = terminal.run("tty; echo $TERM $PAGER; stty size; [ -v DEBIAN_FRONTEND ] || echo unset")
    assert report.output.splitlines()[1:] == ["dumb cat", "50 200", "unset"]
    assert report.output.startswith("/dev/pts/")


# --- the time limit --------------------------------------------------------------------------------------------------


def test_a_question_is_answered_by_typing(hasty: Terminal) -> None:
    report = hasty.run("read -p 'Do you want to continue? [Y/n] ' answer; echo \"you said $answer\"")
    while not report.output:
        report = hasty.wait()
    assert (report.state, report.output) == ("running", "Do you want to continue? [Y/n]")
    assert to_end(hasty, hasty.write("y")).output == "you said y"


def test_python_asks_and_the_line_typed_is_not_shown(hasty: Terminal) -> None:
    report = hasty.run(f"""{PYTHON} -c "print(input('name? ').upper())" """)
    while not report.output:
        report = hasty.wait()
    assert report.output == "name?"
    assert to_end(hasty, hasty.write("assay")).output == "ASSAY"


def test_a_second_command_is_refused_and_unread_input_is_reported(hasty: Terminal) -> None:
    hasty.run("sleep 7003")
    other = hasty.run("echo too early")
    assert (other.state, other.output) == ("running", "")
    assert "not started" in other.note
    assert "Not typed" in hasty.write("x" * 5000).note
    assert "does not read" in hasty.write("x\n" * 200_000).note
    report = hasty.terminate()
    assert (report.state, report.exit_code) == ("ended", 130), "Ctrl-C does not wait behind unread input"
    later = hasty.run("read -t 0.1 typed; echo \"read '$typed'\"")
    assert to_end(hasty, later).output == "read ''", "it was for no later command"


def test_what_is_printed_is_shown_once(hasty: Terminal) -> None:
    report = hasty.run(f"echo one; {AWAIT}; echo two")
    while not report.output:
        report = hasty.wait()
    go(hasty)
    assert (report.output, to_end(hasty, hasty.wait()).output) == ("one", "two")


def test_typing_and_terminating_without_a_command_are_reported(terminal: Terminal) -> None:
    for report in (terminal.wait(), terminal.write("y"), terminal.terminate()):
        assert (report.state, report.note) == ("ended", "No command is running.")


@pytest.mark.parametrize(
    "command",
    [
        "sleep 7005; sleep 7005",
        "while true; do sleep 0.1; done",
        "while :; do :; done",
        "(trap '' INT TERM HUP; while :; do sleep 0.1; done)",
        "(setsid nohup sleep 7005 &) ; sleep 7005",
        "stty raw -isig; sleep 7005",
    ],
)
def test_a_command_is_terminated_with_all_that_it_started(hasty: Terminal, command: str) -> None:
    assert hasty.run(command).state == "running"
    report = hasty.terminate()
    assert (report.state, "terminated" in report.note) == ("ended", True)
    assert "new one was started" not in report.note
    assert to_end(hasty, hasty.run("! grep -qa '[7]005' /proc/[0-9]*/cmdline")).exit_code == 0


def test_what_earlier_commands_left_running_and_the_shell_outlive_a_terminated_one(hasty: Terminal) -> None:
    to_end(hasty, hasty.run("sleep 7006 & KEPT=yes; cd /usr"))
    hasty.run("sleep 7006")
    hasty.terminate()
    report = to_end(hasty, hasty.run("echo $KEPT; pwd; kill %1 && echo alive"))
    assert report.output.split() == ["yes", "/usr", "alive"]


def test_a_shell_that_cannot_be_interrupted_is_replaced(hasty: Terminal) -> None:
    to_end(hasty, hasty.run("cd /usr"))
    hasty.run("kill -STOP $$")
    report = hasty.terminate()
    assert report.state == "ended"
    assert "A new one was started in /usr;" in report.note
    assert to_end(hasty, hasty.run("echo fine")).output == "fine"


# --- the shell's own end ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("echo printed; exit 3", 3),
        ("echo printed; exec sh -c 'exit 4'", 4),
        ("echo printed; kill -9 $$", 137),
        ("set -e; echo printed; false; echo not me", 1),
    ],
)
def test_a_shell_that_ends_is_replaced_in_the_same_folder(
    terminal: Terminal, command: str, code: int
) -> None:
    if terminal.cwd != "/usr/lib":
        terminal.run("cd /usr/lib")
    report = terminal.run(command)
    assert (report.state, report.exit_code) == ("ended", code)
    assert "printed" in report.output
    assert "not me" not in report.output
    assert "A new one was started in /usr/lib;" in report.note


def test_a_shell_whose_folder_is_gone_starts_above_it(terminal: Terminal) -> None:
    terminal.run("mkdir -p /tmp/a/b; cd /tmp/a/b")
    terminal.run("rm -r /tmp/a")
    assert "started in /tmp;" in terminal.run("exit").note


# --- much, and strange -----------------------------------------------------------------------------------------------


def test_both_ends_of_a_long_output_are_kept_and_the_rest_is_counted(terminal: Terminal) -> None:
    report = terminal.run("echo BEGIN; yes | head -c 20000000; echo END")
    assert report.output.startswith("BEGIN\ny\n")
    assert report.output.endswith("y\nEND")
    assert len(report.output) < 100_000
    left_out = 20_000_000 + len("BEGIN\nEND\n") - (1 << 15) - (1 << 16)
    assert f"\n[{left_out} bytes are left out here]\n" in report.output


def test_colours_progress_and_zeros_are_cleaned_away(terminal: Terminal) -> None:
    report = terminal.run(r"printf '\e[1;32mok\e[0m\n 10%%\r 99%%\rdone\n\0\xff\a'")
    assert report.output == "ok\ndone\n�"


def test_a_background_process_that_floods_the_terminal_hides_no_end(terminal: Terminal) -> None:
    terminal.run("yes flood &")
    assert terminal.run("true").state == "ended"
    terminal.run("kill %1; wait")
    assert terminal.run("echo quiet").output.endswith("quiet")


# --- attacks ---------------------------------------------------------------------------------------------------------


def test_a_command_that_kills_the_terminal_is_lost_and_a_new_one_is_there(terminal: Terminal) -> None:
    terminal.run("cd /usr/lib")
    report = terminal.run("kill -9 $PPID; sleep 7007")
    assert (report.state, report.exit_code) == ("lost", None)
    assert "started anew" in report.note
    assert terminal.run("pwd").output == "/usr/lib"


def test_a_terminal_that_was_killed_between_commands_loses_no_command(terminal: Terminal) -> None:
    parent = terminal.run("cd /usr; echo $PPID").output
    until_dead = f"while grep -qs '^State:.[^Z]' /proc/{parent}/status; do sleep 0.05; done"
    terminal._sandbox.exec(ExecSpec(argv=("sh", "-c", f"kill -9 {parent}; {until_dead}")))
    report = terminal.run("pwd")
    assert (report.output, report.state) == ("/usr", "ended")
    assert "started anew" in report.note


def test_a_command_runs_once_although_both_ends_of_the_connection_are_killed(terminal: Terminal) -> None:
    kill = (
        "for p in /proc/[0-9]*; do grep -qa ASSAY_PROGRAM $p/cmdline && kill -9 ${p#/proc/}; done; sleep 7008"
    )
    report = terminal.run(f"echo run >> /tmp/runs; {kill}")
    assert report.state == "lost"
    assert terminal.run("cat /tmp/runs").output == "run"


IMPOSTOR = """
import os, pathlib, socket, sys, time
while not pathlib.Path("/tmp/go").exists():
    time.sleep(0.05)
os.kill(int(sys.argv[1]), 9)
server = socket.socket(socket.AF_UNIX)
while True:
    try:
        server.bind("\\0" + sys.argv[2])
        break
    except OSError:
        time.sleep(0.05)
server.listen()
pathlib.Path("/tmp/bound").touch()
while True:
    client, _ = server.accept()
    client.recv(9999)
    client.sendall(b"{}\\n")
    client.close()
"""


def test_an_impostor_of_the_terminal_is_not_believed(terminal: Terminal, sandbox: DockerSandbox) -> None:
    write_file(sandbox, "/tmp/impostor.py", IMPOSTOR, "/")
    terminal.run(f"setsid {PYTHON} /tmp/impostor.py $PPID {terminal._name} &")
    go(terminal)
    sandbox.exec(ExecSpec(argv=("sh", "-c", "until [ -e /tmp/bound ]; do sleep 0.05; done; rm /tmp/go")))
    assert terminal.run("echo x").state == "lost"
    assert terminal.run("echo fine").output == "fine"


def test_the_shell_stays_in_a_folder_whose_name_is_not_text(terminal: Terminal) -> None:
    terminal.run("mkdir -p $'/tmp/\\xff'; cd $'/tmp/\\xff'")
    report = terminal.run("pwd; cd /tmp")
    assert (report.state, report.output) == ("ended", "/tmp/�")


def test_processes_are_killed_when_no_other_can_be_started(terminal: Terminal) -> None:
    """Without free processes no command could be sent."""
    terminal.run("hold() { while :; do sleep 7009 & done; }; (hold >/dev/null 2>&1 &)")
    printed, report = "", terminal.run("echo one")
    while "as many processes" not in printed:
        assert report.state in ("ended", "running")
        report = terminal.run("echo more")
        printed += report.note
    assert terminal.run("! grep -qa '[7]009' /proc/[0-9]*/cmdline").exit_code == 0


def test_a_full_disk_ends_the_machine_with_a_sentence(start: Start) -> None:
    terminal = Terminal(start(disk_mb=64), LONG_SECONDS, lambda: None)
    report = terminal.run("for i in 1 2 3 4; do head -c 30M /dev/zero > /tmp/$i; done; sleep 7010")
    assert (report.state, "disk" in report.note) == ("gone", True)
    assert terminal.run("echo more").state == "gone"
    answers = (read_file(terminal._sandbox, "x", "/"), write_file(terminal._sandbox, "x", "", "/"))
    assert all(answer.failed and "stopped" in answer.text for answer in answers)


def test_a_stop_interrupts_a_command_that_is_waited_for(start: Start) -> None:
    stopped = Event()

    def check() -> None:
        if stopped.is_set():
            raise Stopped("The user stopped the run.")

    sandbox = start()
    terminal = Terminal(sandbox, 10 * LONG_SECONDS, check)
    terminal.run("true")
    waiting = Terminal(sandbox, LONG_SECONDS, lambda: None)

    def stop() -> None:
        while waiting.run("[ -e /tmp/begun ]").exit_code:
            pass
        stopped.set()

    watcher = Thread(target=stop)
    watcher.start()
    with pytest.raises(Stopped):
        terminal.run("touch /tmp/begun; sleep 7011")
    watcher.join()
    with pytest.raises(Stopped):
        terminal.run("echo more")


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_file_is_written_and_read_where_the_shell_is(terminal: Terminal, sandbox: DockerSandbox) -> None:
    terminal.run("mkdir -p /tmp/here; cd /tmp/here")
    content = "line one\n\ttab 'quotes' \"$HOME\" \\n ü 🎈\r\nno end"
    for path in ("new/folder/file", "it's $(odd) ü\n", "/tmp/other/file", "~/file"):
        assert not write_file(sandbox, path, content, terminal.cwd).failed
        assert read_file(sandbox, path, terminal.cwd).text == content
    assert terminal.run("cat new/folder/file ~/file").output == content.replace("\r", "") * 2


def test_a_large_file_is_written_in_pieces(terminal: Terminal, sandbox: DockerSandbox) -> None:
    write_file(sandbox, "/tmp/large", "x" * 1_400_000, "/")
    assert terminal.run("wc -c < /tmp/large").output == "1400000"
    assert read_file(sandbox, "/tmp/large", "/").text.endswith(
        "\n[1300000 bytes more: read them with the terminal]"
    )
    assert "handed over" in write_file(sandbox, "/tmp/large", "x" * 2_000_000, "/").text


def test_impossible_file_operations_are_reported(sandbox: DockerSandbox) -> None:
    for answer in (
        write_file(sandbox, "/opt/assay/python/x", "x", "/"),
        write_file(sandbox, "/dev/full", "x", "/"),
        read_file(sandbox, "/nope", "/"),
    ):
        assert answer.failed
        assert answer.text.split(": ")[1] in {
            "Read-only file system.",
            "No space left on device.",
            "There is no such file.",
        }
