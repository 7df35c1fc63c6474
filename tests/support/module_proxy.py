"""A module proxy on this machine, serving Go modules that a test makes: the protocol's files, by a real HTTP server."""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

from tests.support.serving import serving


def publish(root: Path, module: str, version: str, files: Mapping[str, str]) -> str:
    """Put a module into the proxy's folder; returns what its two lines in a `go.sum` are, the module's own first."""
    place = root / module / "@v"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{version}.info").write_text(json.dumps({"Version": version}))
    (place / f"{version}.mod").write_text(files["go.mod"])
    with zipfile.ZipFile(place / f"{version}.zip", "w") as packed:
        for name, text in files.items():
            packed.writestr(f"{module}@{version}/{name}", text)
    whole = {f"{module}@{version}/{name}": text for name, text in files.items()}
    described = hashed({"go.mod": files["go.mod"]})
    return f"{module} {version} {hashed(whole)}\n{module} {version}/go.mod {described}\n"


def hashed(files: Mapping[str, str]) -> str:
    """`h1:`, Go's digest of files by their names: of the list that `sha256sum` would print of them, sorted."""
    lines = [f"{hashlib.sha256(files[name].encode()).hexdigest()}  {name}\n" for name in sorted(files)]
    return f"h1:{base64.b64encode(hashlib.sha256(''.join(lines).encode()).digest()).decode()}"


@contextmanager
def served(root: Path, host: str = "127.0.0.1") -> Iterator[tuple[str, list[str]]]:
    """The folder by HTTP: its address, and the paths that it has been asked for. `host` is one of this machine."""
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            asked.append(self.path)

    with serving(partial(Handler, directory=str(root)), host) as port:
        yield f"http://{host}:{port}", asked
