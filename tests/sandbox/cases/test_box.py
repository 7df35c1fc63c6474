"""Running cases, apart from how they are isolated: records, the choice of isolation, and images of all kinds."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from pydantic import ValidationError

from runner.errors import EngineError, ProgramError
from runner.records import Environment, Image
from runner.records.cases import Case, CaseSide
from runner.sandbox.cases import launch
from runner.sandbox.docker import base_image, engine
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.inside import PYTHON
from tests.support.cases_factory import prepared
from tests.support.look_inside import run_inside

BARE = """ARG BASE
FROM ${BASE} AS base
RUN mkdir -p /out/bin /out/etc && cp -L --parents $(ldd /bin/sh | grep -o '/[^ ]*') /out && cp -L /bin/sh /out/bin/SHELL
FROM scratch
COPY --from=base /out /
ENV PATH=/tools GREETING="from the image"
WORKDIR /here
"""
"""A shell and its libraries: no Python, no `ls`, no `/tmp`, no accounts."""


def case(command: str, **fields: object) -> Case:
    return Case.model_validate({"class": "t", "command": command} | fields)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"files": {"/etc/passwd": ""}}, "not a path below /test_data"),
        ({"files": {"a/../../b": ""}}, "not a path below"),
        ({"files": {"": ""}}, "not a path below"),
        ({"files": {"a/": ""}}, "not a path below"),
        ({"files": {"a\0b": ""}}, "NUL byte"),
        ({"files": {"n" * 256: ""}}, "more than 255 bytes"),
        ({"files": {"a": "", "a/b": ""}}, "files and folders at once"),
        ({"files": {"a": "", "./a": ""}}, "the same path"),
        ({"files": {"a": "\ud800"}}, "surrogates not allowed|raw data as a unicode"),
        ({"command": "a\0b"}, "NUL byte"),
        ({"command": "\ud800"}, "surrogates not allowed|raw data as a unicode"),
        ({"prep": "a\0b"}, "NUL byte"),
        ({"command": ""}, "at least 1 character"),
        ({"class": ""}, "at least 1 character"),
        ({"env": {"A=B": "c"}}, "not an environment variable"),
        ({"env": {"A": "b\0"}}, "not an environment variable"),
        ({"env": {"A": "\ud800"}}, "surrogates not allowed|raw data as a unicode"),
        ({"timeout": 3}, "Extra inputs"),
    ],
)
def test_a_case_that_cannot_be_run_is_refused_with_the_reason(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Case.model_validate({"class": "t", "command": "true"} | fields)


def test_a_case_is_the_line_of_the_file() -> None:
    line = (
        '{"class":"IO","command":"cat a","files":{"a":"b"},"prep":"","env":{},"start":null,"negative":true}'
    )
    assert Case.model_validate_json(line).model_dump_json() == line


@pytest.fixture(scope="module")
def sandboxes() -> DockerSandboxes:
    return prepared()


def bare(sandboxes: DockerSandboxes, folder: Path, shell: str = "sh") -> Image:
    text = BARE.replace("SHELL", shell)
    (folder / "Dockerfile").write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return sandboxes.image(Environment(context=folder, build_args={"BASE": "assay-base"}, digest=digest))


@pytest.mark.docker
@pytest.mark.parametrize("how", ["overlay", "copy"])
def test_an_image_needs_nothing_but_a_shell(sandboxes: DockerSandboxes, tmp_path: Path, how: str) -> None:
    side = CaseSide.model_validate({"name": "bare", "image": bare(sandboxes, tmp_path), "how": how})
    script = (
        'echo "$GREETING" > /tmp/x; read line < a; echo "$line $PATH $HOME"; pwd; cd; echo h > .h; /bin/ls'
    )
    with sandboxes.cases(side) as box:
        result = box.run(case(script, files={"a": "text\n"}))
    assert result.stdout == "text /tools /home/user\n/test_data\n"
    assert (result.exit_code, result.stderr) == (127, "sh: 1: /bin/ls: not found\n")
    assert [(change.path, change.text) for change in result.changes] == [
        ("/home/user/.h", "h\n"),
        ("/tmp/x", "from the image\n"),
    ]


@pytest.mark.docker
def test_an_image_without_a_shell_is_refused(sandboxes: DockerSandboxes, tmp_path: Path) -> None:
    image = bare(sandboxes, tmp_path, "other")
    with pytest.raises(ProgramError, match="cannot run cases: the image has no /bin/sh"):
        sandboxes.cases(CaseSide(name="no-shell", image=image)).__enter__()
    assert not [
        found
        for found in engine.connect().api.containers(all=True)
        if any("assay-cases-no-shell" in name for name in found["Names"])
    ]


@pytest.mark.docker
def test_where_mounts_are_not_permitted_copies_take_over(
    sandboxes: DockerSandboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This engine withholds the capability to mount."""
    monkeypatch.setattr(launch, "MOUNTING", launch.COPYING)
    image = sandboxes.image(Environment(image=base_image.tag()))
    with sandboxes.cases(CaseSide(name="copies", image=image, lanes=2)) as box:
        result = box.run(case("echo x > a; cat a"))
    assert (box.how, result.how, result.stdout) == ("copy", "copy", "x\n")
    with (
        pytest.raises(EngineError, match="not permit"),
        sandboxes.cases(CaseSide(name="copies", image=image, how="overlay")),
    ):
        pass


@pytest.mark.docker
@pytest.mark.parametrize("how", ["overlay", "copy"])
def test_what_an_agent_left_in_an_image_does_not_reach_the_supervisor(
    sandboxes: DockerSandboxes, tmp_path: Path, how: str
) -> None:
    """The agent left a library for every program to load, and non-files where files are expected."""
    text = (
        "ARG BASE\nFROM ${BASE}\nRUN echo /evil.so > /etc/ld.so.preload && rm /etc/passwd /etc/group "
        "&& ln -s /root/other /etc/passwd "
        "&& ln -s /root/secret /etc/group && mkdir -p /test_data/old /home/user && touch /home/user/old /tmp/old "
        "&& chown -R 9999 /test_data /usr/local && chmod 777 /srv\n"
    )
    (tmp_path / "Dockerfile").write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    environment = Environment(context=tmp_path, build_args={"BASE": "assay-base"}, digest=digest)
    side = CaseSide.model_validate({"name": "hostile", "image": sandboxes.image(environment), "how": how})
    with sandboxes.cases(side) as box:
        api = engine.connect().api
        found = run_inside(api, box._containers[0], PYTHON, "-c", "print('ours')")
        assert found == "ours\n", "no library, and so no complaint of the loader's either"
        result = box.run(case("ls -A . ~ /tmp; id -un; id -gn"))
    assert result.stdout == ".:\n\n/home/user:\n\n/tmp:\nuser\nuser\n"
