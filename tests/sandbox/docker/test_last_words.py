"""The output of a command that was ended is complete, to the last line."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

from runner.records import ExecSpec
from runner.sandbox.docker.container import DockerSandbox

COUNTS = "while :; do : $((count += 1)); echo $count; echo $count >> /workspace/printed; sleep 0.003; done"


def until_printed(sandbox: DockerSandbox) -> Callable[[], float]:
    """Return an extension that moves the deadline far off until nine lines are printed: a busy machine is slow."""
    nine_lines = ExecSpec(argv=("bash", "-c", 'test -n "$(sed -n 9p /workspace/printed)"'))

    def extension() -> float:
        return 0.0 if sandbox.exec(nine_lines).exit_code == 0 else 60.0

    return extension


def test_what_was_printed_before_the_deadline_is_not_lost(
    start: Callable[..., DockerSandbox], tmp_path: Path
) -> None:
    """The last lines, still on their way through the engine, were lost; they say why a command took too long."""
    sandbox = start()
    counting = ExecSpec(argv=("bash", "-c", COUNTS), timeout_seconds=0.7)
    result = sandbox.exec(counting, extension=until_printed(sandbox))
    assert result.ended == "deadline"
    sandbox.get("/workspace/printed", tmp_path / "printed.tar")
    with tarfile.open(tmp_path / "printed.tar") as archive:
        file = archive.extractfile("printed")
        written = file.read().decode() if file else ""
    count = written.count("\n")
    assert count >= 9
    assert result.stdout.startswith("".join(f"{number}\n" for number in range(1, count + 1)))


def test_a_command_that_is_ended_while_it_says_nothing_more_holds_nothing_up(
    start: Callable[..., DockerSandbox],
) -> None:
    """Its streams are closed long before its end."""
    sandbox = start()
    script = "echo last; exec >&- 2>&-; seq 9 > /workspace/printed; sleep 600"
    silent = ExecSpec(argv=("bash", "-c", script), timeout_seconds=0.7)
    result = sandbox.exec(silent, extension=until_printed(sandbox))
    assert (result.ended, result.stdout) == ("deadline", "last\n")
