"""Images of tasks: local, pulled, or built; once for all who ask at the same time."""

from __future__ import annotations

import json
import os
import re
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from posixpath import normpath
from threading import Lock
from typing import IO, Any, NamedTuple

from docker import APIClient, auth
from docker.errors import ImageNotFound
from docker.utils import parse_repository_tag
from docker.utils.build import tar as pack_context
from requests import Response

from runner.errors import ImageError
from runner.protocols import ImageProgress
from runner.records import Environment, Image
from runner.sandbox.docker import base
from runner.sandbox.docker.entrypoint import Entrypoint
from runner.sandbox.docker.faults import ENGINE_FAULTS, engine_faults
from runner.terminal.escaping import uncoloured

REPOSITORY = "assay-task"
"""Of built images; the tag is the task's name and the environment's digest. It also finds them again: a label would be
one more step of every build, of which the engine makes a container and a layer."""
NAME_LENGTH = 60
"""Longest part of a task's name in a tag; the engine takes 128 characters in all."""
BASE_ARGUMENT = "assay-base"
"""A build argument of this value means the base image of this machine."""
PULL_SECONDS = 30.0
"""Of a registry's silence, after which an image counts as impossible to pull."""
LOG_LINES = 40
"""Of a failed build's output that its error carries."""
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""Build arguments that the engine predefines: they reach a build's commands and stay in no image."""


class ImageConfig(NamedTuple):
    """What an image says of its own containers."""

    user: str
    """Empty means root."""
    workdir: str
    volumes: Mapping[str, str | None]
    """Paths that are volumes; of a snapshot, with the name of the volume that goes with it."""
    entrypoint: Entrypoint | None = None
    """Of a snapshot, that of the image which its machine was started from."""


class Images:
    """Finds, pulls and builds the images of one engine."""

    def __init__(self, api: APIClient) -> None:
        self._api = api
        self._lock = Lock()
        self._found: dict[tuple[str | None, str], Future[Image]] = {}
        self._unpulled: dict[str, str] = {}
        """Image that could not be pulled, in favour of a Dockerfile -> why."""
        self._unbuilt: dict[str, str] = {}
        """Tag of an image whose Dockerfile could not be built -> why."""
        self._pulls: defaultdict[str, Lock] = defaultdict(Lock)
        self._configs: dict[str, ImageConfig] = {}

    def find(self, environment: Environment, progress: ImageProgress = lambda _: nullcontext()) -> Image:
        """See `protocols.SandboxProvider.image`. Those who wait for another's attempt share its outcome."""
        arguments, digest = _recipe(environment)
        key = (environment.image, digest)  # of one name and two Dockerfiles, each may have to be built
        with self._lock:
            future = self._found.get(key)
            if mine := future is None:
                future = self._found[key] = Future()
        if mine:
            try:
                future.set_result(self._obtain(environment, arguments, digest, progress))
            except BaseException as error:  # noqa: BLE001 - not swallowed: handed to all who wait, this call included
                with self._lock:
                    del self._found[key]  # who asks later tries again, but for a build that failed
                future.set_exception(error)
        return future.result()

    def config(self, image: Image) -> ImageConfig:
        """Its user, working directory, volumes and ENTRYPOINT; asked of the engine once."""
        if image.id not in self._configs:
            with engine_faults(f"looking at image {image.reference}"):
                found = self._inspect(image.id)["Config"]
            # As the engine names its mounts.
            volumes = dict.fromkeys(map(normpath, found.get("Volumes") or ()))
            user, workdir, argv = found["User"], found["WorkingDir"] or "/", found.get("Entrypoint")
            entrypoint = Entrypoint(tuple(argv), user, workdir) if argv else None
            self._configs[image.id] = ImageConfig(user, workdir, volumes, entrypoint)
        return self._configs[image.id]

    def remember(self, image: Image, config: ImageConfig) -> None:
        """Spare the engine the question about a snapshot."""
        self._configs[image.id] = config

    def forget(self, image: Image) -> None:
        """The snapshot is gone."""
        del self._configs[image.id]

    def _obtain(
        self, environment: Environment, arguments: dict[str, str], digest: str, progress: ImageProgress
    ) -> Image:
        began, note = time.monotonic(), ""
        context = _buildable(environment)
        if environment.image:
            with self._lock:
                one_at_a_time = self._pulls[environment.image]
            with one_at_a_time:
                if found := self._local(environment.image):
                    return Image(id=found, reference=environment.image)
                if not (reason := self._unpulled.get(environment.image)):
                    with progress("pulling"):
                        reason = self._pull(environment.image)
                if found := self._local(environment.image):
                    seconds = time.monotonic() - began
                    return Image(id=found, reference=environment.image, origin="pulled", seconds=seconds)
                if context:
                    self._unpulled[environment.image] = reason or "its registry did not say why"
            if context is None:
                raise ImageError(
                    f"Image {environment.image} is not on this machine and cannot be pulled ({reason}), and the task "
                    f"has no Dockerfile to build instead. Load it (`docker load`) or log in to its registry."
                )
            note = f"declared image {environment.image} could not be pulled; its Dockerfile was built instead"
        if context is None:
            raise ImageError(f"The task names no image, and there is no Dockerfile in {environment.context}.")
        tag = _tag(environment.name, digest)
        found = self._local(tag) or self._renamed(digest, tag)
        if not found:
            with progress("building"):
                found = self._build(context, environment.build_timeout_seconds, arguments, tag)
        return Image(id=found, reference=tag, origin="built", note=note, seconds=time.monotonic() - began)

    def _inspect(self, reference: str) -> dict[str, Any]:
        return self._api.inspect_image(reference)  # type: ignore[no-untyped-call, no-any-return]

    def _local(self, reference: str) -> str | None:
        with engine_faults(f"looking for image {reference}"), suppress(ImageNotFound):
            return str(self._inspect(reference)["Id"])
        return None

    def _renamed(self, digest: str, tag: str) -> str | None:
        """The image of this digest that was built when tags had no names, under its new tag."""
        found = self._local(_tag("", digest))
        if found:
            with engine_faults(f"naming image {tag}"):
                self._api.tag(found, REPOSITORY, tag.partition(":")[2])
        return found

    def _pull(self, reference: str) -> str:
        """Try to pull; returns why it did not work, if it did not."""
        repository, tag = parse_repository_tag(reference)
        credentials = auth.load_config()
        known = credentials.resolve_authconfig(auth.resolve_repository_name(repository)[0])
        headers = {"X-Registry-Auth": auth.encode_header(known)} if known else {}
        params = {"fromImage": repository, "tag": tag or "latest"}
        try:
            with self._post("/images/create", PULL_SECONDS, params=params, headers=headers) as events:
                return next((event["error"] for event in events if "error" in event), "")
        except ENGINE_FAULTS as error:
            return f"no answer from its registry: {error}"

    def _build(self, context: Path, seconds: float, arguments: dict[str, str], tag: str) -> str:
        """Build with the engine's own builder; returns the image's id.

        `seconds` is looked at whenever the build prints, and a silence may last as long: twice that at the very most.
        Raises `ImageError` with the end of the output. What failed once is not tried again: a task's trials would each
        wait for the same failure.
        """
        if tag in self._unbuilt:
            raise ImageError(f"{self._unbuilt[tag]}\nIt was tried once, for all trials of this run.")
        params = {
            "t": tag,
            "rm": True,
            "forcerm": True,
            "networkmode": "host",
            "buildargs": json.dumps({**_proxies(), **arguments}),
        }
        log: deque[str] = deque(maxlen=LOG_LINES)
        deadline = time.monotonic() + seconds
        failed: str | None = None
        with engine_faults(f"building {context}"), _packed(context) as data:
            try:
                request = {"params": params, "data": data, "headers": _build_headers()}
                with self._post("/build", seconds, **request) as events:
                    failed = _failure(events, log, deadline)
            except ENGINE_FAULTS:
                if time.monotonic() < deadline:
                    raise
                failed = "it printed nothing any more"
        found = None if failed else self._local(tag)
        if found is None:
            late = f" within its limit of {seconds:g} s" if time.monotonic() > deadline else ""
            reason = uncoloured(f"{context} could not be built{late}: {failed}\n" + "\n".join(log))
            self._unbuilt[tag] = reason
            raise ImageError(reason)
        return found

    @contextmanager
    def _post(self, path: str, silence: float, **request: Any) -> Iterator[Iterator[dict[str, Any]]]:
        """The engine's events while it pulls or builds; leaving the context early makes it stop.

        The client's own `pull` has no time limit, and its streams cannot be closed.
        """
        url = f"{self._api.base_url}/v{self._api.api_version}{path}"
        with self._api.post(url, stream=True, timeout=silence, **request) as response:
            yield events_of(response)


def events_of(response: Response) -> Iterator[dict[str, Any]]:
    """What the engine says while it pulls or builds; a refusal is an `error`, too."""
    if not response.ok:
        yield {"error": response.json()["message"]}
        return
    for line in response.iter_lines():
        if line:  # a chunk's border between \r and \n makes an empty one
            yield json.loads(line)


def _failure(events: Iterator[dict[str, Any]], log: deque[str], deadline: float) -> str | None:
    """Follow a build to its end; returns what went wrong with it, if anything did."""
    for event in events:
        log.extend(str(event.get("stream", "")).splitlines())
        if "error" in event:
            return str(event["error"])
        if time.monotonic() > deadline:
            return "it was stopped"
    return None


def _buildable(environment: Environment) -> Path | None:
    """The build context, if there is a Dockerfile in it."""
    context = environment.context
    return context if context and (context / "Dockerfile").is_file() else None


@contextmanager
def _packed(context: Path) -> Iterator[IO[bytes]]:
    """The build context as a tar, less what `.dockerignore` excludes."""
    ignore = context / ".dockerignore"
    lines = ignore.read_text().splitlines() if ignore.is_file() else []
    exclude = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    data: Any = pack_context(str(context), exclude=exclude, dockerfile=("Dockerfile", None))  # type: ignore[arg-type]
    with data:
        yield data


def _build_headers() -> dict[str, str | bytes]:
    headers: dict[str, str | bytes] = {"Content-Type": "application/tar"}
    if credentials := auth.load_config().get_all_credentials():  # type: ignore[no-untyped-call]
        headers["X-Registry-Config"] = auth.encode_header(credentials)
    return headers


def _recipe(environment: Environment) -> tuple[dict[str, str], str]:
    """Build arguments, and the end of the tag that a build of exactly this has on exactly this base image."""
    arguments = arguments_of(environment)
    on_base = f"-{base.tag().rpartition(':')[2]}" if arguments != environment.build_args else ""
    return arguments, f"{environment.digest.removeprefix('sha256:')[:24]}{on_base}"


def _tag(name: str, digest: str) -> str:
    """The tag of a build. Images with different digests have different tags, whatever tasks are called."""
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:NAME_LENGTH]
    return f"{REPOSITORY}:{readable}-{digest}" if readable else f"{REPOSITORY}:{digest}"


def arguments_of(environment: Environment) -> dict[str, str]:
    """Build arguments, this machine's base image among them."""
    return {
        name: base.tag() if value == BASE_ARGUMENT else value
        for name, value in environment.build_args.items()
    }


def _proxies() -> dict[str, str]:
    return {name: os.environ[name] for name in PROXIES if os.environ.get(name)}
