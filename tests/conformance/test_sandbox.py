"""The contract of every sandbox, container or folder."""

from __future__ import annotations

import io
import signal
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from runner.errors import MachineError, WorkspaceTooLarge
from runner.protocols import Sandbox
from runner.records import Environment, ExecResult, ExecSpec, SandboxSpec
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.limits import MEGABYTE
from runner.sandbox.local import LocalSandbox, LocalSandboxes
from tests.support.waiting import until

CAPS = {"output_mb": 1, "workspace_mb": 4, "workspace_files": 20}
CLOCK = "(while :; do date +%N > clock; done) >/dev/null 2>&1 & until test -s clock; do sleep 0.01; done"
"""Command that leaves a process which writes to the working directory forever."""
Provider = DockerSandboxes | LocalSandboxes
Open = Callable[..., Sandbox]


@pytest.fixture(scope="module", params=["local", pytest.param("docker", marks=pytest.mark.docker)])
def provider(request: pytest.FixtureRequest) -> Provider:
    if request.param == "local":
        return LocalSandboxes(**CAPS)
    base_image.ensure(connect(), print)
    return DockerSandboxes(**CAPS)


def opened(provider: Provider, **spec: object) -> AbstractContextManager[Sandbox]:
    environment = Environment(image=base_image.tag(), workdir="/workspace")
    defaults = {"name": "conformance", "environment": environment, "image": provider.image(environment)}
    return provider.open(SandboxSpec.model_validate(defaults | spec))


@pytest.fixture
def start(provider: Provider) -> Iterator[Open]:
    """Start sandboxes; the test's end removes them, the last one first."""
    with ExitStack() as stack:
        yield lambda **spec: stack.enter_context(opened(provider, **spec))


@pytest.fixture
def sandbox(start: Open) -> Sandbox:
    """Return a sandbox of the test's own, which the test may end."""
    return start()


@pytest.fixture(scope="module")
def lasting(provider: Provider) -> Iterator[Sandbox]:
    """Return a sandbox that all tests share which leave it running."""
    with opened(provider) as sandbox:
        yield sandbox


@pytest.fixture
def shared(lasting: Sandbox) -> Iterator[Sandbox]:
    """Return the shared sandbox with an empty working directory."""
    yield lasting
    assert shell(lasting, "find . -mindepth 1 -delete").exit_code == 0


def shell(sandbox: Sandbox, script: str, **spec: object) -> ExecResult:
    return sandbox.exec(ExecSpec.model_validate({"argv": ("sh", "-c", script), **spec}))


def pack(path: Path, files: dict[str, str]) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return path


def test_a_command_ends_with_its_code_and_both_streams(shared: Sandbox) -> None:
    result = shell(shared, "echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.ended) == (3, "exited")
    assert (result.stdout, result.stderr, result.output_bytes) == ("out\n", "err\n", 8)
    assert 0 < result.seconds < 20


def test_commands_share_the_file_system_and_start_in_the_working_directory(shared: Sandbox) -> None:
    shell(shared, "echo one > made")
    assert shell(shared, "cat made").stdout == "one\n"
    assert shell(shared, "pwd").stdout.strip().endswith(shared.workdir)
    shell(shared, "mkdir sub")
    assert shell(shared, "pwd", cwd="/workspace/sub").stdout.strip().endswith("/workspace/sub")


def test_the_environment_is_what_is_given_and_nothing_of_ours(
    start: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-host")
    environment = Environment(image=base_image.tag(), workdir="/workspace", env={"A": "task", "B": "task"})
    printed = shell(start(environment=environment), "env", env={"B": "command"}).stdout.splitlines()
    assert {"A=task", "B=command"} <= set(printed)
    given = {"A", "B", "PATH", "HOME", "HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_", "LANG", "ASSAY_ROOT"}
    assert {line.partition("=")[0] for line in printed} <= given


def test_files_and_folders_are_there_before_the_command(shared: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("echo ran")
    (tmp_path / "run.sh").chmod(0o700)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "data").write_text("data")
    (tmp_path / "link").symlink_to("deep/data")
    result = shell(
        shared,
        "cat config/it.txt; cat folder/link; test -x folder/run.sh && sh folder/run.sh",
        files={"/workspace/config/it.txt": "é\n"},
        uploads={"/workspace/folder": tmp_path},
    )
    assert result.stdout == "é\ndataran\n"


def test_a_command_that_reads_gets_the_end_of_file(shared: Sandbox) -> None:
    assert shell(shared, "cat", timeout_seconds=20).ended == "exited"


def test_a_signal_is_an_exit_code(shared: Sandbox) -> None:
    assert shell(shared, "kill -9 $$").exit_code == 137
    assert shell(shared, "true").exit_code == 0


def test_a_command_that_cannot_start_is_a_result(shared: Sandbox) -> None:
    result = shared.exec(ExecSpec(argv=("no-such-program", "x")))
    assert (result.exit_code, result.ended) == (126, "exited")
    assert "no-such-program" in result.stdout


def test_an_endless_command_is_killed_at_its_deadline(sandbox: Sandbox, tmp_path: Path) -> None:
    """The deadline is far off until the command has begun, since a busy machine takes long to start it."""

    def extension() -> float:
        return 0.0 if shell(sandbox, "test -e begun").exit_code == 0 else 60.0

    script = "trap '' TERM INT; echo begun; sleep 0.3; touch begun; while :; do sleep 0.1; done"
    began = time.monotonic()
    result = sandbox.exec(ExecSpec(argv=("sh", "-c", script), timeout_seconds=0.1), extension=extension)
    assert (result.ended, result.exit_code, result.stdout) == ("deadline", None, "begun\n")
    assert time.monotonic() - began < 50
    assert sandbox.get("/workspace", tmp_path / "workspace.tar") == 1


def test_a_deadline_moves_on_with_what_was_waited(sandbox: Sandbox) -> None:
    began = time.monotonic()
    spec = ExecSpec(argv=("sh", "-c", "sleep 60"), timeout_seconds=0.2)
    result = sandbox.exec(spec, extension=lambda: min(0.6, time.monotonic() - began))
    assert result.ended == "deadline"
    assert 0.8 <= result.seconds < 20


def test_a_deadline_holds_while_the_command_floods_its_output(sandbox: Sandbox) -> None:
    """Killed while nobody read its output, it took the ten seconds after which the engine gives up."""
    began = time.monotonic()
    assert shell(sandbox, "yes", timeout_seconds=0.3).ended == "deadline"
    assert time.monotonic() - began < 9


def test_a_cancelled_command_ends_at_once(sandbox: Sandbox) -> None:
    cancelled = threading.Event()
    threading.Timer(0.5, cancelled.set).start()
    began = time.monotonic()
    result = sandbox.exec(ExecSpec(argv=("sleep", "60")), cancelled.is_set)
    assert (result.ended, result.exit_code) == ("cancelled", None)
    assert time.monotonic() - began < 20


def test_output_beyond_the_cap_is_dropped_and_counted(shared: Sandbox) -> None:
    flood = "head -c 3000000 /dev/zero | tr '\\0' "
    result = shell(shared, f"{flood} a; {flood} b >&2")
    assert (result.stdout, result.stderr) == ("a" * MEGABYTE, "b" * MEGABYTE)
    assert result.output_bytes == 6_000_000


def test_output_that_is_no_text_is_replaced(shared: Sandbox) -> None:
    assert shell(shared, r"printf '\377a'").stdout == "\ufffda"


def test_a_child_that_holds_the_output_open_does_not_hold_up_the_end(sandbox: Sandbox) -> None:
    began = time.monotonic()
    result = shell(sandbox, "sleep 60 & echo ended")
    assert (result.exit_code, result.stdout) == (0, "ended\n")
    assert time.monotonic() - began < 20


def test_a_command_that_closes_its_output_is_still_waited_for(sandbox: Sandbox) -> None:
    assert shell(sandbox, "exec >&- 2>&-; sleep 0.3; exit 5").exit_code == 5
    assert shell(sandbox, "exec >&- 2>&-; sleep 60", timeout_seconds=0.3).ended == "deadline"


def test_put_copies_a_folder(shared: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f").write_text("text")
    shared.put(tmp_path, "/workspace/new/place")
    assert shell(shared, "cat new/place/a/f").stdout == "text"


def test_a_tar_travels_from_one_sandbox_to_another(start: Open, tmp_path: Path) -> None:
    one, other = start(), start()
    shell(one, "mkdir -p out/deep; echo x > out/deep/f; chmod 750 out/deep/f; ln -s deep/f out/link")
    assert one.get("/workspace/out", tmp_path / "out.tar") == 1
    other.put(tmp_path / "out.tar", "/workspace/arrived")
    assert shell(other, "cat arrived/out/link; stat -c %a arrived/out/deep/f").stdout == "x\n750\n"


def test_get_names_what_it_copied_and_counts_regular_files(shared: Sandbox, tmp_path: Path) -> None:
    shell(shared, "mkdir -p w/sub; touch w/a w/sub/b; ln -s a w/link; ln -s w through")
    for path in ("/workspace/w", "/workspace/w/"):
        assert shared.get(path, tmp_path / "w.tar") == 2
        with tarfile.open(tmp_path / "w.tar") as tar:
            assert sorted(tar.getnames()) == ["w", "w/a", "w/link", "w/sub", "w/sub/b"]
    assert shared.get("/workspace/w/a", tmp_path / "a.tar") == 1
    assert shared.get("/workspace/through", tmp_path / "through.tar") == 2


@pytest.mark.parametrize("path", ["/workspace/nothing", "/workspace/file/below", "/workspace/loop"])
def test_get_of_what_is_not_there(shared: Sandbox, tmp_path: Path, path: str) -> None:
    shell(shared, "touch file; ln -s loop loop")
    with pytest.raises(FileNotFoundError):
        shared.get(path, tmp_path / "nothing.tar")
    assert not (tmp_path / "nothing.tar").exists()


@pytest.mark.parametrize(
    "script",
    [
        "touch $(seq 21)",
        "mkdir $(seq 21)",
        "for i in $(seq 21); do ln -s . $i; done",
        "truncate -s 1G sparse",
    ],
    ids=["files", "folders", "links", "sparse"],
)
def test_get_refuses_too_much_and_leaves_nothing(shared: Sandbox, tmp_path: Path, script: str) -> None:
    shell(shared, f"mkdir w; cd w; {script}")
    with pytest.raises(WorkspaceTooLarge):
        shared.get("/workspace/w", tmp_path / "w.tar")
    assert not (tmp_path / "w.tar").exists()


def test_a_killed_sandbox_can_be_read_and_killed_again(sandbox: Sandbox, tmp_path: Path) -> None:
    shell(sandbox, f"echo kept > f; {CLOCK}")
    sandbox.kill()
    sandbox.kill()
    sandbox.get("/workspace/clock", tmp_path / "one.tar")
    time.sleep(0.3)
    sandbox.get("/workspace/clock", tmp_path / "two.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    assert sandbox.get("/workspace/f", tmp_path / "f.tar") == 1


def test_what_turned_to_bare_addresses_is_known_even_of_a_command_that_was_killed(sandbox: Sandbox) -> None:
    """This concerns containers only: a user of this machine's network cannot be told from the rest of it."""
    is_local = isinstance(sandbox, LocalSandbox)
    turn = "sleep 60" if is_local else "(: < /dev/tcp/203.0.113.1/443) 2>/dev/null; sleep 60"
    assert sandbox.counted().unrouted == (None if is_local else 0)
    ending = sandbox.exec(ExecSpec(argv=("bash", "-c", turn)), lambda: sandbox.counted().unrouted != 0)
    assert ending.ended == "cancelled"
    assert sandbox.counted().unrouted == (None if is_local else 1)


def test_a_snapshot_has_the_files_and_not_the_processes(start: Open) -> None:
    first = start()
    shell(first, f"echo kept > f; {CLOCK}")
    image = first.snapshot()
    second = start(image=image)
    assert second.image == image
    assert shell(second, 'a=$(cat clock); sleep 0.3; test "$a" = "$(cat clock)" && cat f').stdout == "kept\n"
    shell(second, "echo changed > f")
    assert shell(start(image=image), "cat f").stdout == "kept\n"


def test_changes_are_told_against_the_image_of_the_living_and_the_dead(start: Open) -> None:
    first = start()
    shell(first, "mkdir d out; touch d/f gone kept out/g")
    sandbox = start(image=first.snapshot())
    shell(sandbox, "echo longer > d/f; rm -r gone out; mkdir more; ln -s /nowhere more/link")
    living = sandbox.changes()
    sandbox.kill()
    for changes in (living, sandbox.changes()):
        assert changes is not None
        assert {"/workspace/more", "/workspace/more/link"} <= changes.added
        assert {"/workspace", "/workspace/d/f"} <= changes.changed
        assert {"/workspace/gone", "/workspace/out"} <= changes.deleted
        assert "/workspace/kept" not in changes.added | changes.changed | changes.deleted
        assert "/workspace/out/g" not in changes.deleted


def test_fresh_directories_are_empty_and_closed_whatever_the_image_holds(start: Open) -> None:
    """A forged reward in the agent's file system must not lie where the verifier's is expected."""
    agent = start()
    forged = {"/logs/verifier/reward.json": '{"reward": 1}', "/tests/test.sh": "true"}
    shell(agent, "true", files=forged)
    judge = start(image=agent.snapshot(), fresh_dirs=("/tests", "/logs/verifier"))
    root = shell(judge, 'echo "$ASSAY_ROOT"').stdout.strip()
    listed = shell(
        judge, f"ls -A {root}/tests {root}/logs/verifier; stat -c %a {root}/tests {root}/logs/verifier"
    )
    assert [line for line in listed.stdout.splitlines() if line and not line.endswith(":")] == ["700", "700"]


def test_uploads_are_there_before_the_first_command_and_the_last_one_counts(
    start: Open, tmp_path: Path
) -> None:
    for name, files in {"shared": {"a": "old", "b": "kept"}, "own": {"a": "new"}}.items():
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(text)
    uploads = (("/tests", tmp_path / "shared"), ("/tests", tmp_path / "own"))
    sandbox = start(uploads=uploads, fresh_dirs=("/tests",), user="root")
    assert shell(sandbox, "cat $ASSAY_ROOT/tests/a $ASSAY_ROOT/tests/b").stdout == "newkept"
    assert shell(sandbox, "stat -c %a $ASSAY_ROOT/tests").stdout == "700\n"


def test_leaving_removes_everything(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = Environment(image=base_image.tag(), workdir="/workspace")
    spec = SandboxSpec(name="gone", environment=environment, image=provider.image(environment))
    with provider.open(spec) as sandbox:
        image = sandbox.snapshot()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(MachineError, match=image.reference):
        provider.open(spec.model_copy(update={"image": image})).__enter__()
    assert list(tmp_path.iterdir()) == []


def test_what_a_process_about_to_end_releases_is_gone(tmp_path: Path) -> None:
    """Local only: on the engine, all tests of this process would lose their containers. See `test_stopping`
    for that.
    """
    provider = LocalSandboxes()
    with opened(provider) as sandbox, ThreadPoolExecutor(1) as pool:
        mark = tmp_path / "alive"
        running = pool.submit(sandbox.exec, ExecSpec(argv=("sh", "-c", f"touch {mark}; exec sleep 600")))
        until(mark.exists)
        provider.release()
        assert running.result().exit_code == 128 + signal.SIGKILL
