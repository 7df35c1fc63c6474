"""Files of Debian's pool, fetched by apt in a container of the base image, which knows a mirror on any host."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.errors import FetchError, ImageError
from runner.sandbox import tar_streams
from runner.sandbox.docker import base_image, engine

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPT = Path(__file__).parent / "scripts" / "pool.sh"
FETCHED = "fetched"
"""Name that the script gives the file."""


def fetch(path: str, digest: str, into: Path, say: Callable[[str], None]) -> Path:
    """Fetch the file at `path` below the mirror (`pool/...`) into a folder and return its path.

    `digest` is `sha256:...`. Raises `FetchError` with the end of apt's output if apt does not get that file, and
    `EngineError` and `ImageError` when there is no container to fetch it in.
    """
    client = engine.connect()
    base_image.ensure(client, say)
    expected = digest.replace("sha256:", "SHA256:")
    failure = f"{path} could not be fetched"
    try:
        with base_image.run_script(client, base_image.tag(), SCRIPT, (path, expected), failure) as container:
            stream, _ = container.get_archive(f"{base_image.BUILD_DIR}/{FETCHED}")
            content = tar_streams.read_file(stream)
    except ImageError as error:
        raise FetchError(str(error)) from error
    if content is None:
        raise FetchError(f"{failure}: apt left no regular file.")
    (into / FETCHED).write_bytes(content)
    return into / FETCHED
