"""Files of Debian's pool, fetched by apt in a container of the base image, which knows a mirror on any host."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from runner.archives import unpack
from runner.errors import FetchError, ImageError
from runner.sandbox import tar_streams
from runner.sandbox.docker import base_image, engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

SCRIPT = Path(__file__).parent / "scripts" / "pool.sh"
SOURCE_SCRIPT = Path(__file__).parent / "scripts" / "source.sh"
LIST_SCRIPT = Path(__file__).parent / "scripts" / "sources_list.sh"
FETCHED = "fetched"
"""Beginning of the names that the script gives to the files. The number of the file follows."""


def fetch_source(name: str, version: str, into: Path, say: Callable[[str], None]) -> None:
    """Fetch a source package and the libraries in Go that it may need into a new folder.

    The folder gets the source's files, `libraries/*.deb`, and what apt says about them: `sources` and `packages`.
    Raises as `fetch` does.
    """
    failure = f"the Debian source {name} {version} could not be fetched"
    with _run(SOURCE_SCRIPT, (name, version), failure, say) as file:
        content = file("found.tar")
    into.mkdir()
    (packed := into.with_name(f"{into.name}.tar")).write_bytes(content or b"")
    unpack(packed, into)


def describe_sources(names: Iterable[str], say: Callable[[str], None]) -> str:
    """Return what apt says about source packages: a paragraph for each version. Unknown names have none.

    Raises as `fetch` does.
    """
    failure = "Debian's list of source packages could not be read"
    with _run(LIST_SCRIPT, list(names), failure, say) as file:
        return (file("sources") or b"").decode("utf-8", "replace")


def fetch(path: str, digest: str, into: Path, say: Callable[[str], None]) -> Path:
    """Fetch the file at `path` below the mirror (`pool/...`) into a folder and return its path.

    `digest` is `sha256:...`. Raises `FetchError` with the end of apt's output if apt does not get that file, and
    `EngineError` and `ImageError` when there is no container to fetch it in.
    """
    (file,) = fetch_all([(path, digest)], into, say)
    return file


def fetch_all(files: Iterable[tuple[str, str]], into: Path, say: Callable[[str], None]) -> list[Path]:
    """Fetch files, each given by a path and a digest, as `fetch` does, but all in one container."""
    wanted = list(files)
    if not wanted:
        return []
    arguments = [part for path, digest in wanted for part in (path, digest.replace("sha256:", "SHA256:"))]
    failure = f"{wanted[0][0]}{' and others' if wanted[1:] else ''} could not be fetched"
    fetched = []
    with _run(SCRIPT, arguments, failure, say) as file:
        for number in range(1, len(wanted) + 1):
            content = file(f"{FETCHED}-{number}")
            if content is None:
                raise FetchError(f"{failure}: apt left no regular file.")
            fetched.append(into / f"{FETCHED}-{number}")
            fetched[-1].write_bytes(content)
    return fetched


@contextmanager
def _run(
    script: Path, arguments: Sequence[str], failure: str, say: Callable[[str], None]
) -> Iterator[Callable[[str], bytes | None]]:
    """Run a script in a container of the base image; yield a function that reads a file that it left, by its name.

    The function returns None for what is no regular file. Raises `FetchError` that begins with `failure` if the script
    fails, and `EngineError`.
    """
    client = engine.connect()
    base_image.ensure(client, say)
    try:
        with base_image.run_script(client, base_image.tag(), script, arguments, failure) as container:
            yield lambda name: tar_streams.read_file(
                container.get_archive(f"{base_image.BUILD_DIR}/{name}")[0]
            )
    except ImageError as error:
        raise FetchError(str(error)) from error
