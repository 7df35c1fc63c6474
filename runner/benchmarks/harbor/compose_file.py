"""Read a task's `environment/docker-compose.yaml`: the agent's machine is its service `main`, the others are services.

Compose reads the file, `compose_rules` decide. What Compose would read in doing so, apart from the file itself, is
refused beforehand, since a task's file comes from strangers and Compose runs on this machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from runner.benchmarks.harbor import compose_rules as rules
from runner.benchmarks.harbor.host_environment import HostEnvironment
from runner.benchmarks.sources.task_files import digest, tree_digest
from runner.benchmarks.sources.task_toml import EnvironmentTable
from runner.errors import TaskError
from runner.records import Environment, Service
from runner.sandbox.docker import compose

FILE = "docker-compose.yaml"
MOST_BYTES = 1 << 18
MOST_VALUES = 10_000
"""Largest number of keys and values of a file. What an alias repeats is counted each time, since a few hundred bytes of
aliases can stand for billions of values. Compose takes two seconds for so many."""
CHARACTERS_A_VALUE = 25
"""A longer text counts as a further value for each so many characters: repeated, it would fill the memory."""
READS_FILES = frozenset({"include", "extends", "env_file", "label_file"})
"""Keys for which Compose reads further files, of this machine or of others."""
BREAKS = frozenset("\x85\u2028\u2029\ufeff")
"""Characters that some YAML parsers take for line breaks and others do not."""
OWN_IMAGE, PREBUILT = "assay-main", "assay-prebuilt"
"""Values of Harbor's variables for the image of main."""
DEFAULT_CPUS, DEFAULT_MEMORY = "1", "2048M"
"""Values of Harbor's variables for limits if the task declares none; they set no limit here."""
LOG_FOLDERS = {"VERIFIER_LOGS": "verifier", "AGENT_LOGS": "agent", "ARTIFACTS": "artifacts"}


class ComposeFile(NamedTuple):
    """Contents of a Compose file that concern a task's machines."""

    image: str | None
    """Image of main, if it is neither built nor the one that the task names."""
    main: dict[str, Any]
    """Fields of main's `Environment` that the file sets."""
    services: tuple[Service, ...]
    variables: tuple[str, ...]
    """Names of the variables of this machine that the file may read."""

    def declared_env(self) -> dict[str, str]:
        """Return the variables of this machine that the file reads, as a task's tables write them."""
        return {name: f"${{{name}}}" for name in self.variables}

    def applied(self, environment: Environment) -> Environment:
        """Return the environment of main with what the file adds. The task's own settings count first."""
        added = dict(self.main)
        env = added.pop("env") | environment.env
        build_args = environment.build_args | added.pop("build_args")
        unset = {key: value for key, value in added.items() if getattr(environment, key) is None}
        update = {"env": env, "build_args": build_args, "services": self.services, **unset}
        return environment.model_copy(update=update)


def read_compose(
    folder: Path, table: EnvironmentTable, build_args: Mapping[str, str], host: HostEnvironment
) -> ComposeFile | None:
    """Return what the Compose file in a folder says; None if there is none. Raises `TaskError`."""
    file = folder / FILE
    if not file.exists():
        return None
    _check_text(file)
    asked = compose.variables_of(file)
    given = _given(folder, table) | host.fill(table.env)
    from_host = host.allowed_among(asked.keys() - given.keys())
    model = compose.normalised(file, given | from_host)
    if not model.get("services"):
        raise TaskError(f"{FILE} has no services: remove it, or add the service main.")
    rules.check_top(model)
    names = frozenset(model["services"])
    for name, service in model["services"].items():
        rules.check_service(name, service, names)
    main = model["services"].get(rules.MAIN) or {}
    others = {name: service for name, service in model["services"].items() if name != rules.MAIN}
    return ComposeFile(
        image=_image(main, folder),
        main=_main(main, folder, table),
        services=tuple(_service(name, service, folder, build_args) for name, service in others.items()),
        variables=tuple(sorted(from_host)),
    )


def _check_text(file: Path) -> None:
    """Raise `TaskError` for a file that Compose must not read: one that names others, or that parsers read unalike."""
    try:
        text = file.read_text("utf-8") if file.stat().st_size <= MOST_BYTES else ""
        if not text or BREAKS & set(text):
            raise TaskError(f"{FILE} is empty, larger than {MOST_BYTES} bytes, or has unusual characters.")
        for event in _bounded(yaml.parse(text, Loader=yaml.SafeLoader)):
            if tag := getattr(event, "tag", None):
                raise TaskError(f"{FILE} has a YAML tag ({tag}), which is not supported: remove it.")
            if isinstance(event, yaml.ScalarEvent) and event.value in READS_FILES:
                raise TaskError(
                    f"{FILE} has the word `{event.value}`: it could read further files. Remove it."
                )
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise TaskError(f"{FILE} is not valid YAML: correct it.") from error


def _bounded(events: Iterable[yaml.Event]) -> Iterator[yaml.Event]:
    """Yield the events of a file. Raises `TaskError` once there are more than `MOST_VALUES`."""
    values, sizes = 0, dict[str, int]()
    began: list[tuple[str | None, int]] = []  # of each collection that is open: anchor, values before it
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise TaskError(f"{FILE}: *{event.anchor} repeats no value that ended before it: remove it.")
            values += sizes[event.anchor]
        elif isinstance(event, yaml.NodeEvent):
            size = 1
            if isinstance(event, yaml.ScalarEvent):
                size += len(event.value) // CHARACTERS_A_VALUE
                sizes[event.anchor or ""] = size
            else:
                began.append((event.anchor, values))
                sizes.pop(event.anchor or "", None)
            values += size
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = began.pop()
            sizes[anchor or ""] = values - before
        if values > MOST_VALUES:
            raise TaskError(
                f"{FILE} has more than {MOST_VALUES} values, counting what aliases repeat: shorten it."
            )
        yield event


def _given(folder: Path, table: EnvironmentTable) -> dict[str, str]:
    """Return the values of the variables that Harbor offers to Compose files."""
    logs = {
        f"{end}_{name}_PATH": f"{start}/{part}"
        for name, part in LOG_FOLDERS.items()
        for end, start in (("HOST", rules.LOGS), ("ENV", "/logs"))
    }
    return {
        **logs,
        "MAIN_IMAGE_NAME": OWN_IMAGE,
        "PREBUILT_IMAGE_NAME": PREBUILT,
        "CONTEXT_DIR": str(folder),
        "CPUS": f"{table.cpus:g}" if table.cpus else DEFAULT_CPUS,
        "MEMORY": f"{table.memory_mb}M" if table.memory_mb else DEFAULT_MEMORY,
    }


def _image(main: rules.Model, folder: Path) -> str | None:
    """Return the image of main if nothing is built: with a Dockerfile, the name is only that of what is built."""
    image = rules.plain(main.get("image") or "")
    return None if image in ("", OWN_IMAGE, PREBUILT) or (folder / "Dockerfile").is_file() else image


def _main(main: rules.Model, folder: Path, table: EnvironmentTable) -> dict[str, Any]:
    """Return the fields of main's environment. Raises `TaskError` for what main cannot have here."""
    rules.check_idle(main)
    rules.logs_only(main)
    build_args: dict[str, str] = {}
    if main.get("build"):
        context, build_args = rules.build_context("main", main["build"], folder)
        if context != folder.resolve():
            raise TaskError(f"{FILE}: main is built in {context.name}/, not in environment/ itself: move it.")
    limits = rules.limits_of(main)
    if not table.cpus and limits.get("cpus") == float(DEFAULT_CPUS):
        del limits["cpus"]
    if not table.memory_mb and limits.get("memory_mb") == int(DEFAULT_MEMORY.rstrip("M")):
        del limits["memory_mb"]
    return {
        "env": {key: rules.plain(value) for key, value in rules.environment_of(main).items()},
        "build_args": build_args,
        "workdir": main.get("working_dir"),
        "healthcheck": rules.healthcheck_of(main),
        **limits,
    }


def _service(name: str, service: rules.Model, folder: Path, build_args: Mapping[str, str]) -> Service:
    """Return one service with its image, limits and harmless settings."""
    own = {key: value for key, value in service.items() if key in rules.PASSED and value is not None}
    networks = service.get("networks") or {}
    aliases = [alias for settings in networks.values() for alias in (settings or {}).get("aliases") or ()]
    settings = {
        **own,
        "environment": rules.environment_of(service),
        "depends_on": service.get("depends_on") or {},
        "volumes": rules.mounts_of(name, service, folder),
        "ulimits": service.get("ulimits") or {},
        "aliases": [*aliases, *filter(None, [service.get("container_name")])],
    }
    context: Path | None = None
    arguments: dict[str, str] = {}
    if service.get("build"):
        context, arguments = rules.build_context(f"service {name}", service["build"], folder)
    image = None if context else rules.plain(service.get("image") or "")
    if not context and not image:
        raise TaskError(f"{FILE}: service {name} has neither an image nor a build.")
    environment = Environment(
        name=f"{folder.parent.name}-{name}",
        context=context,
        image=image,
        build_args={**build_args, **arguments},
        **rules.limits_of(service),
    )
    content = {
        "files": tree_digest(context) if context else "",
        **environment.model_dump(mode="json", exclude={"context"}),
    }
    return Service(
        name=name,
        environment=environment.model_copy(update={"digest": digest(content)}),
        settings=settings,
    )
