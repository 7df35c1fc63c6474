"""Files of Debian's pool, fetched by apt in a container of the base image: it knows a mirror, whatever the host is."""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from runner.errors import FetchError, ImageError
from runner.sandbox.docker import base, engine

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPT = Path(__file__).parent / "scripts" / "pool.sh"
FETCHED = "fetched"
"""What the script calls the file."""


def fetch(path: str, digest: str, into: Path, say: Callable[[str], None]) -> Path:
    """Put the file at `path` below the mirror, `pool/...`, into a folder; `digest` is `sha256:...`. Returns its place.

    Raises `FetchError` with the end of apt's output when apt did not get that file; `EngineError` and `ImageError`
    when there is no container to fetch it in.
    """
    client = engine.connect()
    base.ensure(client, say)
    expected = digest.replace("sha256:", "SHA256:")
    failed = f"{path} could not be fetched"
    try:
        with base.ended(client, base.tag(), SCRIPT, (path, expected), failed) as container:
            stream, _ = container.get_archive(f"{base.BUILD_DIR}/{FETCHED}")
            packed = io.BytesIO(b"".join(stream))
    except ImageError as error:
        raise FetchError(str(error)) from error
    with tarfile.open(fileobj=packed) as tar:
        content = tar.extractfile(FETCHED)
        if content is None:
            raise FetchError(f"{failed}: apt left no regular file.")
        with (into / FETCHED).open("wb") as file:
            shutil.copyfileobj(content, file)
    return into / FETCHED
