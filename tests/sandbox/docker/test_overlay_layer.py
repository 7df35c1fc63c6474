"""The list of what a container wrote, read from its layers, against the engine's own list of the same container."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.records import Changes, Environment, ExecSpec, SandboxSpec
from runner.sandbox.docker import base_image, disk_usage
from runner.sandbox.docker.container import DockerSandbox
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.overlay_layer import Layers, layers_of
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.limits import Limits

pytestmark = pytest.mark.docker

PREPARED = """
mkdir -p a/b/c a/d e/f; echo 1 > a/b/c/one; echo 2 > a/d/two; ln -s one a/b/c/link; echo 3 > e/f/three; echo 4 > four
mkfifo e/pipe; chmod 600 four; touch -d @1000000000 old
"""
"""Makes the files of the machine from which the others are snapshots."""
SCRIPTS = {
    "nothing": "true",
    "new files and folders": "mkdir -p new/deep/er; echo > new/deep/er/x; ln -s x new/link; mkfifo new/pipe",
    "changed content": "echo more >> a/b/c/one",
    "a folder's rights": "chmod 700 a/b",
    "rights of a file": "chmod 777 four",
    "an owner": "chown 1000 four a/d",
    "opened for writing, and left": "exec 3<>four; exec 3>&-",
    "changed and changed back": "chmod 644 four; chmod 600 four",
    "times": "touch four; touch -d @1000000000 old; touch a",
    "deleted": "rm four; rm -r e",
    "deleted and made again": "rm -r a; mkdir -p a/b; echo > a/b/new",
    "a file for a folder": "rm -r e; echo > e",
    "a folder for a file": "rm four; mkdir four; echo > four/in",
    "a renamed file": "mv four five",
    "a renamed folder": "mv a/b a/moved; mv e/f .",
    "a link for a folder": "rm -r e; ln -s a e; rm a/b/c/link; ln -s nowhere a/b/c/link",
    "hard links": "ln four hard; ln a/d/two a/b/two",
    "a file of the image's": "echo >> /etc/passwd; rm /etc/debian_version; rm -r /usr/share/doc",
    "a capability": "cp /bin/true cap; setcap cap_net_raw+ep cap 2>/dev/null || true",
    "names": "mkdir 'a b' 'ü' 'line\nbreak'; echo > 'a b/\"quoted\"'",
}
"""Name -> script of a machine's changes."""


FOLDERS = [f"case{number}" for number in range(60)]
"""Folders with the same prepared files, so that one machine serves many cases."""
LATER = (
    "rm a/d/two; rm -r e; mkdir -p e/g; echo > e/g/x; mv four f; cp -p f four; rm f",
    "echo 2 > a/d/two; rm -r e; mkdir -p e/f; echo 3 > e/f/three",
)
"""What further layers of the machine change."""


def in_folders(scripts: Mapping[str, str]) -> str:
    """Return a script that runs each script in the folder that is its key."""
    return "\n".join(
        f"(cd /workspace/{folder}; {script}\n) 2>/dev/null" for folder, script in scripts.items()
    )


@pytest.fixture(scope="module")
def provider() -> DockerSandboxes:
    base_image.ensure(connect(), print)
    return DockerSandboxes(files=5000)


@pytest.fixture(scope="module")
def spec(provider: DockerSandboxes) -> Iterator[SandboxSpec]:
    """The machine of a snapshot, whose files lie in several layers."""
    environment = Environment(image=base_image.tag(), workdir="/workspace")
    spec = SandboxSpec(name="layers", image=provider.image(environment), environment=environment, user="root")
    made = f"mkdir {' '.join(FOLDERS)}\n{in_folders(dict.fromkeys(FOLDERS, PREPARED))}"
    with ExitStack() as stack:
        for script in (made, *(in_folders(dict.fromkeys(FOLDERS, later)) for later in LATER)):
            sandbox = stack.enter_context(provider.open(spec))
            sandbox.exec(ExecSpec(argv=("bash", "-c", script), timeout_seconds=60))
            spec = spec.model_copy(update={"image": sandbox.snapshot()})
        yield spec


def layers(sandbox: DockerSandbox) -> Layers:
    found = layers_of(connect().api.inspect_container(sandbox.container))
    if found is None:
        pytest.skip("this engine's layers cannot be read from here")
    return found


def engines_list(sandbox: DockerSandbox) -> Changes:
    changes = disk_usage.measure_layer(connect().api, sandbox.container, Limits(files=10**6)).changes
    assert changes
    return changes


def both(provider: DockerSandboxes, spec: SandboxSpec, script: str) -> tuple[Changes | None, Changes]:
    """Return the changes as read here and as the engine lists them."""
    with provider.open(spec) as sandbox:
        assert isinstance(sandbox, DockerSandbox)
        sandbox.exec(ExecSpec(argv=("bash", "-c", script), timeout_seconds=60))
        sandbox.kill()
        found = layers(sandbox).list_changes(10**6)
        assert found
        return found[1], engines_list(sandbox)


def test_the_changes_are_those_that_the_engine_lists(provider: DockerSandboxes, spec: SandboxSpec) -> None:
    read, listed = both(provider, spec, in_folders(dict(zip(FOLDERS, SCRIPTS.values(), strict=False))))
    assert read == listed


PLACES = st.sampled_from(
    ["a", "a/b", "a/b/c", "a/b/c/one", "a/d", "a/d/two", "e", "e/f", "e/f/three", "four", "new", "new/x"]
)
COMMANDS = ("rm -rf {}", "mkdir -p {}", "echo x > {}", "chmod 711 {}", "touch {}")
COMMANDS_OF_TWO = ("mv -T {} {}", "cp -a {} {}", "ln -s {} {}", "ln {} {}")
STEPS = st.tuples(
    st.sampled_from(COMMANDS + COMMANDS_OF_TWO),
    PLACES,
    PLACES,
)


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases=st.lists(st.lists(STEPS, min_size=1, max_size=12), min_size=len(FOLDERS), max_size=len(FOLDERS)))
def test_the_changes_of_any_commands_are_those_that_the_engine_lists(
    provider: DockerSandboxes, spec: SandboxSpec, cases: list[list[tuple[str, str, str]]]
) -> None:
    scripts = ["\n".join(step.format(one, other) for step, one, other in steps) for steps in cases]
    read, listed = both(provider, spec, in_folders(dict(zip(FOLDERS, scripts, strict=True))))
    assert read == listed


def test_a_name_that_is_not_text_is_left_to_the_engine(provider: DockerSandboxes, spec: SandboxSpec) -> None:
    with provider.open(spec) as sandbox:
        assert isinstance(sandbox, DockerSandbox)
        sandbox.exec(ExecSpec(argv=("bash", "-c", r"touch $'\xff'"), timeout_seconds=60))
        sandbox.kill()
        assert layers(sandbox).list_changes(10**6) is None
        changes = sandbox.changes()
        assert changes
        assert any("\ufffd" in path for path in changes.added)


def test_folders_too_deep_are_left_to_the_engine(provider: DockerSandboxes, spec: SandboxSpec) -> None:
    """The engine cannot list them either, so the machine has too many files."""
    deep = "import os\nfor _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')"
    with provider.open(spec) as sandbox:
        assert isinstance(sandbox, DockerSandbox)
        found = layers(sandbox)
        sandbox.exec(ExecSpec(argv=("python3", "-c", deep), timeout_seconds=60))
        assert found.count_paths(10**6) is None
        sandbox.kill()
        assert found.list_changes(10**6) is None
        assert sandbox.excess == "files"


def test_counting_stops_at_the_limit(provider: DockerSandboxes, spec: SandboxSpec) -> None:
    with provider.open(spec) as sandbox:
        assert isinstance(sandbox, DockerSandbox)
        sandbox.exec(ExecSpec(argv=("bash", "-c", "touch $(seq 300)"), timeout_seconds=60))
        found = layers(sandbox)
        count = found.count_paths(10**6)
        assert count
        assert count[0] >= 300
        assert found.count_paths(200) is None
        sandbox.kill()
        assert found.list_changes(200) == (201, None)


@pytest.mark.parametrize(
    "driver",
    [
        {},
        {"Name": "vfs", "Data": None},
        {"Name": "overlay2", "Data": {"UpperDir": "/nowhere/diff", "LowerDir": "/nowhere/a:/nowhere/b"}},
    ],
    ids=json.dumps,
)
def test_layers_that_are_not_here_are_left_to_the_engine(driver: dict[str, object]) -> None:
    assert layers_of({"GraphDriver": driver}) is None
