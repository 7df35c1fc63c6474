"""Images of tasks: local, pulled or built. Callers that ask for the same image at the same time share one attempt."""

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
from threading import BoundedSemaphore, Lock
from typing import IO, Any, NamedTuple

from docker import APIClient, auth
from docker.errors import ImageNotFound
from docker.utils import parse_repository_tag
from docker.utils.build import tar as pack_context
from requests import Response

from runner.errors import ImageError
from runner.protocols import ImageProgress
from runner.records import Environment, Image
from runner.sandbox.docker import base_image, engine
from runner.sandbox.docker.engine_faults import ENGINE_FAULTS, engine_faults
from runner.sandbox.docker.entrypoint import Entrypoint
from runner.sandbox.docker.shared_images import SharedImages
from runner.terminal.escaping import uncoloured

REPOSITORY = "assay-task"
"""Repository of built images. Their tags consist of the task's name and the environment's digest. The repository also
serves to find them: a label would add a step to every build, and so a container and a layer."""
NAME_LENGTH = 60
"""Longest part of a task's name in a tag; the engine allows 128 characters in all."""
LOCK_LENGTH = 2
"""Number of characters of a digest in the name of the lock that its builds share. With whole digests, the folder of the
locks would hold as many files as there ever were builds."""
BASE_ARGUMENT = "assay-base"
"""Value of a build argument that stands for this machine's base image. `assay-base-bookworm` stands for the one of that
suite of Debian (`base_image.EARLIER`)."""
PULL_SECONDS = 30.0
"""Longest silence of a registry, in seconds, after which the image counts as impossible to pull."""
LONGEST_PULL_SECONDS = 3600.0
"""Longest duration of a pull, in seconds, for a registry that sends a little now and then."""
LOG_LINES = 40
"""Number of lines of a failed build's output in its error."""
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""Build arguments that the engine predefines: they reach a build's commands, but are not stored in the image."""


class ImageConfig(NamedTuple):
    """An image's settings for its containers."""

    user: str
    """User; empty means root."""
    workdir: str
    volumes: Mapping[str, str | None]
    """Path of each declared volume -> its name, known only for snapshots."""
    entrypoint: Entrypoint | None = None
    """ENTRYPOINT; for a snapshot, that of the image from which its machine was started."""


class Images:
    """The images of one engine: finds, pulls and builds them."""

    def __init__(self, api: APIClient, registry: str | None, pulls: int) -> None:
        """Share the images that are built through a registry, if one is named, and pull at most `pulls` at once."""
        self._api = api
        self.shared = SharedImages(api, registry, self._pull) if registry else None
        self._lock = Lock()
        self._found: dict[tuple[str | None, str], Future[Image]] = {}
        self._unpulled: dict[str, str] = {}
        """Reference of an image that could not be pulled and is built instead -> why."""
        self._unbuilt: dict[str, str] = {}
        """Tag of an image whose Dockerfile could not be built -> why."""
        self._pulls: defaultdict[str, Lock] = defaultdict(Lock)
        self._pulling = BoundedSemaphore(pulls)
        self._configs: dict[str, ImageConfig] = {}

    def find(self, environment: Environment, progress: ImageProgress = lambda _: nullcontext()) -> Image:
        """Return a usable image; see `protocols.SandboxProvider.image`.

        Concurrent callers for the same image share one attempt and its outcome. An image that was found before and has
        vanished since, as by a scheduled `docker system prune`, is obtained again.
        """
        arguments, digest = _recipe(environment)
        key = (environment.image, digest)  # one name with two Dockerfiles may need two builds
        with self._lock:
            future = self._found.get(key)
            if mine := future is None:
                future = self._found[key] = Future()
        if mine:
            try:
                future.set_result(self._obtain(environment, arguments, digest, progress))
            except BaseException as error:  # noqa: BLE001 - handed to all who wait, this call included
                with self._lock:
                    del self._found[key]  # a later call tries again, except for a failed build
                future.set_exception(error)
        found = future.result()
        if mine or self._local(found.id):
            return found
        with self._lock:
            if self._found.get(key) is future:
                del self._found[key]
        return self.find(environment, progress)

    def config(self, image: Image) -> ImageConfig:
        """Return the image's settings, asking the engine once per image."""
        if image.id not in self._configs:
            with engine_faults(f"looking at image {image.reference}"):
                found = self._inspect(image.id)["Config"]
            # normalised as in the engine's list of mounts
            volumes = dict.fromkeys(map(normpath, found.get("Volumes") or ()))
            user, workdir, argv = found["User"], found["WorkingDir"] or "/", found.get("Entrypoint")
            entrypoint = Entrypoint(tuple(argv), user, workdir) if argv else None
            self._configs[image.id] = ImageConfig(user, workdir, volumes, entrypoint)
        return self._configs[image.id]

    def remember(self, image: Image, config: ImageConfig) -> None:
        """Store the settings of a snapshot, so that the engine need not be asked."""
        self._configs[image.id] = config

    def forget(self, image: Image) -> None:
        """Drop the settings of a removed snapshot."""
        del self._configs[image.id]

    def _obtain(
        self, environment: Environment, arguments: dict[str, str], digest: str, progress: ImageProgress
    ) -> Image:
        began, note = time.monotonic(), ""
        context = _buildable(environment)
        if environment.image:
            found = self._declared(environment.image, progress, once=context is not None)
            if isinstance(found, Image):
                return found
            if context is None:
                raise ImageError(
                    f"Image {environment.image} is not on this machine and cannot be pulled ({found}), and the task "
                    f"has no Dockerfile to build instead. Load it (`docker load`) or log in to its registry."
                )
            note = f"declared image {environment.image} could not be pulled; its Dockerfile was built instead"
        if context is None:
            raise ImageError(f"The task names no image, and there is no Dockerfile in {environment.context}.")
        tag = _tag(environment.name, digest)

        def make() -> str:
            if found := self._local(tag):
                return found
            _make_bases(environment, progress)
            with progress("building"), engine.exclusive(f"build-{digest[:LOCK_LENGTH]}"):
                built = self._local(tag)  # perhaps by another run, meanwhile
                return built or self._build(context, environment.build_timeout_seconds, arguments, tag)

        built = self.shared.obtain(tag, make, progress) if self.shared else make()
        return Image(id=built, reference=tag, origin="built", note=note, seconds=time.monotonic() - began)

    def _declared(self, reference: str, progress: ImageProgress, *, once: bool) -> Image | str:
        """Return the image that a task declares, pulled if need be, or why it cannot be pulled.

        After a failure under `once`, no later call pulls the image.
        """
        began = time.monotonic()
        with self._lock:
            one_at_a_time = self._pulls[reference]
        with one_at_a_time:
            if found := self._local(reference):
                return Image(id=found, reference=reference, digest=self._digest(reference))
            if not (reason := self._unpulled.get(reference)):
                reason = self._pull(reference, progress)
            if found := self._local(reference):
                return Image(
                    id=found,
                    reference=reference,
                    digest=self._digest(reference),
                    origin="pulled",
                    seconds=time.monotonic() - began,
                )
            if once:
                self._unpulled[reference] = reason or "its registry did not say why"
            return reason

    def _inspect(self, reference: str) -> dict[str, Any]:
        return self._api.inspect_image(reference)  # type: ignore[no-untyped-call, no-any-return]

    def _local(self, reference: str) -> str | None:
        with engine_faults(f"looking for image {reference}"), suppress(ImageNotFound):
            return str(self._inspect(reference)["Id"])
        return None

    def _digest(self, reference: str) -> str:
        """Return the name and digest by which the registry of this reference knows a local image."""
        name = parse_repository_tag(reference)[0]
        with engine_faults(f"looking at image {reference}"):
            known = self._inspect(reference).get("RepoDigests") or ()
        return next((each for each in known if each.partition("@")[0] == name), next(iter(known), ""))

    def _pull(self, reference: str, progress: ImageProgress) -> str:
        """Try to pull once it is this image's turn. Return why it failed, or "".

        The credentials are those of this user's Docker configuration.
        """
        repository, tag = parse_repository_tag(reference)
        credentials = auth.load_config()
        known = credentials.resolve_authconfig(auth.resolve_repository_name(repository)[0])
        headers = {"X-Registry-Auth": auth.encode_header(known)} if known else {}
        params = {"fromImage": repository, "tag": tag or "latest"}
        with self._pulling, progress("pulling"):
            try:
                with self._post("/images/create", PULL_SECONDS, params=params, headers=headers) as events:
                    return _pull_failure(events, time.monotonic() + LONGEST_PULL_SECONDS)
            except ENGINE_FAULTS as error:
                return f"no answer from its registry: {error}"

    def _build(self, context: Path, seconds: float, arguments: dict[str, str], tag: str) -> str:
        """Build with the engine's own builder and return the image's id.

        The limit is checked whenever the build prints, and a silence may last as long: the worst case is twice
        `seconds`. Raises `ImageError` with the end of the output. A failed build is not repeated, or every trial of a
        task would wait for the same failure.
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
        with engine_faults(f"building {context}"), _pack(context) as data:
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
        """Yield the engine's events while it pulls or builds; leaving the context early stops it.

        The client's own `pull` has no time limit, and its streams cannot be closed.
        """
        with self._api.post(engine.url(self._api, path), stream=True, timeout=silence, **request) as response:
            yield events_of(response)


def events_of(response: Response) -> Iterator[dict[str, Any]]:
    """Yield the engine's events while it pulls or builds. A refusal is an `error` event, too."""
    if not response.ok:
        yield {"error": response.json()["message"]}
        return
    for line in response.iter_lines():
        if line:  # a chunk border between \r and \n makes an empty line
            yield json.loads(line)


def _pull_failure(events: Iterator[dict[str, Any]], deadline: float) -> str:
    """Follow a pull to its end and return what went wrong, or ""."""
    for event in events:
        if "error" in event:
            return str(event["error"])
        if time.monotonic() > deadline:
            return f"it took longer than {LONGEST_PULL_SECONDS:g} s"
    return ""


def _failure(events: Iterator[dict[str, Any]], log: deque[str], deadline: float) -> str | None:
    """Follow a build to its end and return what went wrong, or None."""
    for event in events:
        log.extend(str(event.get("stream", "")).splitlines())
        if "error" in event:
            return str(event["error"])
        if time.monotonic() > deadline:
            return "it was stopped"
    return None


def _buildable(environment: Environment) -> Path | None:
    """Return the build context if it has a Dockerfile."""
    context = environment.context
    return context if context and (context / "Dockerfile").is_file() else None


@contextmanager
def _pack(context: Path) -> Iterator[IO[bytes]]:
    """Yield the build context as a tar, without the files that `.dockerignore` excludes."""
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
    """Return the build arguments, and the end of the tag of this exact build on these exact base images."""
    usual = [base_image.tag()] if BASE_ARGUMENT in environment.build_args.values() else []
    bases = [*usual, *map(base_image.tag, _suites(environment))]
    on_bases = "".join(f"-{base.rpartition(':')[2]}" for base in bases)
    return arguments_of(environment), f"{environment.digest.removeprefix('sha256:')[:24]}{on_bases}"


def _tag(name: str, digest: str) -> str:
    """Return the tag of a build. Different digests give different tags, whatever the tasks are called."""
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:NAME_LENGTH]
    return f"{REPOSITORY}:{readable}-{digest}" if readable else f"{REPOSITORY}:{digest}"


def arguments_of(environment: Environment) -> dict[str, str]:
    """Return the build arguments with the references of this machine's base images filled in."""
    bases = {f"{BASE_ARGUMENT}-{suite}": base_image.tag(suite) for suite in _suites(environment)}
    bases[BASE_ARGUMENT] = base_image.tag()
    return {name: bases.get(value, value) for name, value in environment.build_args.items()}


def _make_bases(environment: Environment, progress: ImageProgress) -> None:
    """Make the base images of earlier suites of Debian on which an environment is built."""
    for suite in _suites(environment):
        with progress(f"making the base image of {suite} for"):
            base_image.ensure(engine.connect(), lambda _: None, suite)


def _suites(environment: Environment) -> list[str]:
    """Return the earlier suites of Debian on whose base images an environment is built."""
    values = environment.build_args.values()
    return [suite for suite in base_image.EARLIER if f"{BASE_ARGUMENT}-{suite}" in values]


def _proxies() -> dict[str, str]:
    return {name: os.environ[name] for name in PROXIES if os.environ.get(name)}
