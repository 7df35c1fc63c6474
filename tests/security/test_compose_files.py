"""Compose files of strangers: what they ask for beyond a container is refused by name, and reads nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.records import Task
from runner.sandbox.docker import compose
from tests.support.compose_program import needs_compose
from tests.support.tasks_factory import dataset, make_task

SECRET = "sk-of-this-machine"


def task_of(root: Path, content: str | dict[str, Any], **options: Any) -> Task:
    """Return the task with this Compose file, which may be a service `db` in JSON."""
    folder = make_task(root / "tasks", "made")
    text = (
        content if isinstance(content, str) else json.dumps({"services": {"db": {"image": "x", **content}}})
    )
    (folder / "environment" / "docker-compose.yaml").write_text(text)
    (task,) = dataset(root / "tasks", **options).tasks()
    return task


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "socket": ({"volumes": ["/var/run/docker.sock:/var/run/docker.sock"]}, "mounts the engine's socket"),
    "host path": ({"volumes": ["/etc:/etc-of-host:ro"]}, "mounts /etc at"),
    "path upwards": ({"volumes": ["../tests:/tests:ro"]}, "only volumes of services"),
    "writable file of the task": ({"volumes": ["./Dockerfile:/x"]}, "mount it read-only"),
    "host network": ({"network_mode": "host"}, "`network_mode`"),
    "network of main": ({"network_mode": "service:main"}, "`network_mode`"),
    "privileged": ({"privileged": True}, "`privileged`"),
    "capability": ({"cap_add": ["SYS_ADMIN"]}, "`cap_add`"),
    "device": ({"devices": ["/dev/kmsg:/dev/kmsg"]}, "`devices`"),
    "device rule": ({"device_cgroup_rules": ["a *:* rwm"]}, "`device_cgroup_rules`"),
    "pid": ({"pid": "host"}, "`pid`"),
    "ipc": ({"ipc": "host"}, "`ipc`"),
    "uts": ({"uts": "host"}, "`uts`"),
    "user namespace": ({"userns_mode": "host"}, "`userns_mode`"),
    "control group": ({"cgroup": "host"}, "`cgroup`"),
    "parent group": ({"cgroup_parent": "/"}, "`cgroup_parent`"),
    "runtime": ({"runtime": "evil"}, "`runtime`"),
    "seccomp": ({"security_opt": ["seccomp=unconfined"]}, "security_opt seccomp"),
    "sysctl": ({"sysctls": {"net.ipv4.ip_forward": 1}}, "`sysctls`"),
    "this machine's name": ({"extra_hosts": ["me:host-gateway"]}, "`extra_hosts`"),
    "name server": ({"dns": ["1.1.1.1"]}, "`dns`"),
    "gpus": ({"gpus": "all"}, "`gpus`"),
    "reserved devices": (
        {"deploy": {"resources": {"reservations": {"devices": [{"capabilities": ["gpu"]}]}}}},
        "`devices`",
    ),
    "replicas": ({"deploy": {"replicas": 900}}, "replicas"),
    "files of others": ({"volumes_from": ["container:other"]}, "`volumes_from`"),
    "limit": ({"ulimits": {"core": -1}}, "`ulimits.core`"),
    "build elsewhere": ({"build": "/etc"}, "built outside of environment/"),
    "build with secrets": ({"build": {"context": ".", "ssh": ["default"]}}, "`ssh`"),
    "build on the host's network": ({"build": {"context": ".", "network": "host"}}, "`network`"),
    "priority in memory": ({"oom_score_adj": -1000}, "`oom_score_adj`"),
    "hook": ({"post_start": [{"command": "id", "privileged": True}]}, "`post_start`"),
    "checks without pause": ({"healthcheck": {"test": "true", "interval": "1ms"}}, "checks its health more"),
    "waits for main": ({"depends_on": ["main"]}, "waits for main"),
}


@needs_compose
@pytest.mark.parametrize("case", REFUSED)
def test_what_reaches_beyond_a_container_is_refused_by_name(tmp_path: Path, case: str) -> None:
    asks, sentence = REFUSED[case]
    refused = task_of(tmp_path, asks).refused or ""
    assert sentence.lower() in refused.lower()
    assert refused.startswith("docker-compose.yaml: service db ")


DISGUISED = {
    "a volume that is a folder of the host": (
        "services: {db: {image: x, volumes: ['data:/d']}}\nvolumes: {data: {driver_opts: {type: none, device: /}}}",
        "`driver_opts`",
    ),
    "a volume of others": (
        "services: {db: {image: x, volumes: ['data:/d']}}\nvolumes: {data: {external: true, name: other}}",
        "`external`",
    ),
    "a network of others": (
        "services: {db: {image: x, networks: [out]}}\nnetworks: {out: {external: true}}",
        "`external`",
    ),
    "the network of the host": (
        "services: {db: {image: x, networks: [out]}}\nnetworks: {out: {driver: host}}",
        "driver",
    ),
    "a secret": (
        "services: {db: {image: x, secrets: [a]}}\nsecrets: {a: {file: /etc/shadow}}",
        "`secrets`",
    ),
    "main itself": ("services: {main: {privileged: true}}", "main asks for `privileged`"),
    "main's own program": ("services: {main: {command: ./server}}", "main has a command"),
    "a mount of main": ("services: {main: {volumes: ['/:/host']}}", "main mounts /"),
    "a merged key": (
        "x-a: &a {privileged: true}\nservices: {db: {<<: *a, image: x}}",
        "`privileged`",
    ),
}


@needs_compose
@pytest.mark.parametrize("case", DISGUISED)
def test_what_hides_elsewhere_in_the_file_is_refused_as_well(tmp_path: Path, case: str) -> None:
    text, sentence = DISGUISED[case]
    assert sentence in (task_of(tmp_path, text).refused or "")


READING = {
    "env_file": "services: {db: {image: x, env_file: '%s'}}",
    "escaped": 'services: {db: {image: x, "\\x65nv_file": "%s"}}',
    "tagged": "services: {db: {image: x, !!binary ZW52X2ZpbGU=: '%s'}}",
    "aliased": "x-k: &k env_file\nservices: {db: {image: x, *k : '%s'}}",
    "long form": "services: {db: {image: x, env_file: [{path: '%s', format: raw}]}}",
    "include": "include: ['%s']",
    "include of a variable file": "include: [{path: x.yaml, env_file: '%s'}]",
    "extends": "services: {db: {extends: {file: '%s', service: db}}}",
    "labels": "services: {db: {image: x, label_file: '%s'}}",
    "second document": "services: {}\n---\nservices: {db: {image: x, env_file: '%s'}}",
    "hidden by a line break": "# \u2028services: {db: {image: x, env_file: '%s'}}",
}


@needs_compose
@pytest.mark.parametrize("case", READING)
def test_no_file_of_this_machine_is_read(tmp_path: Path, case: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"KEY={SECRET}\n")
    task = task_of(tmp_path, READING[case].replace("%s", str(secret)))
    assert task.refused
    assert SECRET not in repr(task)


@needs_compose
def test_no_variable_of_this_machine_is_read_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_TEST_KEY", SECRET)
    asks = {"environment": {"A": "${ASSAY_TEST_KEY}", "B": "${ASSAY_TEST_KEY:-none}", "ASSAY_TEST_KEY": None}}
    task = task_of(tmp_path / "one", asks)
    assert task.environment.services[0].settings["environment"] == {"A": "", "B": "none"}
    named = task_of(tmp_path / "two", asks, env=("ASSAY_TEST_KEY",))
    assert named.environment.services[0].settings["environment"] == dict.fromkeys(
        ("A", "B", "ASSAY_TEST_KEY"), SECRET
    )
    assert named.host_env == ("ASSAY_TEST_KEY",)


def aliases(depth: int) -> str:
    """Return lines of which each stands for nine of the line before."""
    lines = (f"x-a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, depth))
    return "x-a0: &a0 [x]\n" + "".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        f"x-a: &a {'x' * 200_000}\nx-b: [" + "*a, " * 9_000 + "]\n",
        aliases(12),
        "x-a: &a x\nx-b: &a [" + "*a, " * 9 + "]\n",  # the second &a is not complete yet
        "x-a: &a {b: *a}\n",
        "x-a: *a\n",
        "x-a: [" + "x, " * 10_000 + "]\n",
        "x-a: &a {" + ", ".join(f"k{n}: v" for n in range(200)) + "}\nx-b:\n" + "  - {<<: *a}\n" * 30,
    ],
    ids=["a long text", "nine of nine", "its own name", "itself", "nothing", "without an alias", "merged"],
)
def test_a_file_with_aliases_without_end_kept_compose_busy_for_half_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """The long text would have taken gigabytes instead: 400 aliases of it took 0.8."""
    monkeypatch.setattr(compose, "program", lambda: pytest.fail("Compose was asked"))
    refused = task_of(tmp_path, f"{text}services: {{main: {{image: x}}, db: {{image: x}}}}").refused or ""
    assert "values, counting what aliases repeat" in refused or "repeats no value" in refused


@needs_compose
def test_a_file_with_a_few_aliases_is_read(tmp_path: Path) -> None:
    again = "x-b: &a x\nx-c: *a\n"  # an anchor may be given a second time
    assert not task_of(
        tmp_path, f"{aliases(3)}{again}services: {{main: {{image: x}}, db: {{image: x}}}}"
    ).refused


def test_without_compose_one_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian 12 has version 1, which is too old: it is not taken for one that could be used."""
    old = tmp_path / "bin" / "docker-compose"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 1.29.2\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:/bin")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setattr(compose, "PLUGINS", ())
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    compose.program.cache_clear()
    try:
        refused = task_of(tmp_path, {}).refused or ""
    finally:
        compose.program.cache_clear()
    assert "run `make compose`" in refused
    assert refused.endswith(".")
