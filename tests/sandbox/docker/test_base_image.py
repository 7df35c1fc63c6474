"""The base image: its recipe, its content, its registry, and what must not stay in it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import tarfile
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event
from typing import ClassVar

import docker
import pytest

from runner.sandbox.docker import base_image, engine
from tests.support.serving import serving


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    client = engine.connect()
    yield client
    client.close()


class Registry(BaseHTTPRequestHandler):
    """A minimal registry for one image of one layer. Engines trust any registry on 127.0.0.0/8."""

    blobs: ClassVar[dict[str, tuple[str, bytes]]] = {}
    manifest = b""
    stuck: ClassVar[Event | None] = None

    def do_GET(self) -> None:
        if self.stuck:
            self.stuck.wait(60)
        kind, body = "application/json", b"{}"
        if "/manifests/" in self.path:
            kind, body = "application/vnd.docker.distribution.manifest.v2+json", self.manifest
        elif "/blobs/" in self.path:
            kind, body = self.blobs[self.path.rsplit("/", 1)[1]]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Docker-Content-Digest", digest(body))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

    def log_message(self, *_: object) -> None:
        pass


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Registry]]:
    """Serve a registry on this machine that has what `base.PULLED` then names."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("hello"))
    tarball = buffer.getvalue()
    layer = gzip.compress(tarball)
    config = json.dumps(
        {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [digest(tarball)]}}
    ).encode()
    kinds = (
        "application/vnd.docker.container.image.v1+json",
        "application/vnd.docker.image.rootfs.diff.tar.gzip",
    )
    config_part, layer_part = (
        {"mediaType": kind, "size": len(blob), "digest": digest(blob)}
        for kind, blob in zip(kinds, (config, layer), strict=True)
    )
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": config_part,
        "layers": [layer_part],
    }
    blobs = {digest(blob): ("application/octet-stream", blob) for blob in (config, layer)}
    handler = type(
        "Serving", (Registry,), {"blobs": blobs, "manifest": json.dumps(manifest).encode(), "stuck": None}
    )
    with serving(handler) as port:
        monkeypatch.setattr(base_image, "PULLED", f"127.0.0.1:{port}/debian:trixie-slim")
        yield handler


def inputs(files: dict[str, Path]) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(base_image.build_inputs(files))) as tar:
        return {member.name: part.read() for member in tar if (part := tar.extractfile(member))}


def test_tag_is_a_digest_of_the_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    before = base_image.tag()
    assert before == base_image.tag()
    base_image.tag.cache_clear()
    monkeypatch.setattr(base_image, "PACKAGES", (*base_image.PACKAGES, "sqlite3"))
    assert base_image.tag() != before
    base_image.tag.cache_clear()


def test_build_inputs_carry_proxies_and_certificates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    certificates = tmp_path / "own.pem"
    certificates.write_text("CERTIFICATE")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates))
    monkeypatch.setenv("https_proxy", "http://user:it's@proxy:3128")
    monkeypatch.setenv("SECRET_KEY", "never")
    found = inputs({"script.sh": certificates})
    assert found["tmp/assay-build/ca.crt"] == b"CERTIFICATE"
    assert found["tmp/assay-build/script.sh"] == b"CERTIFICATE"
    assert b"never" not in found["tmp/assay-build/env"]
    (tmp_path / "env").write_bytes(found["tmp/assay-build/env"])
    script = f'. {tmp_path}/env; echo "$https_proxy $PIP_CERT $NODE_EXTRA_CA_CERTS"'
    printed = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed == "http://user:it's@proxy:3128 /tmp/assay-build/ca.crt /tmp/assay-build/ca.crt\n"


def test_host_without_certificates_sets_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "absent"))
    found = inputs({})
    assert "tmp/assay-build/ca.crt" not in found
    assert b"SSL_CERT_FILE" not in found["tmp/assay-build/env"]


@pytest.mark.docker
def test_minimal_debian_is_pulled_where_a_registry_answers(
    client: docker.DockerClient, registry: type[Registry]
) -> None:
    assert registry.blobs
    assert base_image._pull(client, pytest.fail) == base_image.PULLED
    assert client.images.get(base_image.PULLED).id
    client.images.remove(base_image.PULLED)


@pytest.mark.docker
def test_registry_that_hangs_costs_a_bounded_time(
    client: docker.DockerClient, registry: type[Registry], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.stuck = Event()
    monkeypatch.setattr(base_image, "PULL_SECONDS", 1.0)
    messages: list[str] = []
    started = time.monotonic()
    assert base_image._pull(client, messages.append) is None
    assert time.monotonic() - started < 20
    assert messages == [f"{base_image.PULLED} cannot be pulled: not within 1 s"]
    registry.stuck.set()


@pytest.mark.docker
def test_image_is_there_and_made_once(client: docker.DockerClient) -> None:
    image = base_image.ensure(client, pytest.fail)
    assert (image.reference, image.origin) == (base_image.tag(), "local")
    assert client.images.get(base_image.tag()).labels["assay.origin"] in ("pulled", "debootstrap")


@pytest.mark.docker
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python3 -c 'import sys; print(sys.version_info[:2])'", "(3, 13)\n"),
        ("git init -q /tmp/x && git -C /tmp/x status --short", ""),
        ("id agent; stat -c %U /home/agent", "uid=1000(agent) gid=1000(agent) groups=1000(agent)\nagent\n"),
        (". /etc/os-release; echo $VERSION_CODENAME", "trixie\n"),
        ("ls -A /tmp /var/lib/apt/lists /usr/share/man", "/tmp:\n\n/usr/share/man:\n\n/var/lib/apt/lists:\n"),
    ],
)
def test_content(client: docker.DockerClient, command: str, expected: str) -> None:
    printed = client.containers.run(
        base_image.tag(), ["bash", "-c", command], network_mode="none", remove=True
    )
    assert printed.decode() == expected


@pytest.mark.docker
def test_image_trusts_debians_certificates_alone(client: docker.DockerClient) -> None:
    """A build behind a proxy that inspects TLS must not leave the proxy's certificate behind."""
    script = "grep -c BEGIN /etc/ssl/certs/ca-certificates.crt; ls /usr/share/ca-certificates/mozilla/*.crt | wc -l"
    printed = client.containers.run(base_image.tag(), ["sh", "-c", script], network_mode="none", remove=True)
    trusted, shipped = printed.split()
    assert trusted == shipped


@pytest.mark.docker
def test_nothing_of_this_machine_stays_in_it(client: docker.DockerClient) -> None:
    image = client.images.get(base_image.tag())
    variables = image.attrs["Config"]["Env"] or []
    assert all(each.startswith("PATH=") for each in variables), (
        "proxies and certificate paths are not committed"
    )
    container = client.containers.create(base_image.tag())
    try:
        for name in ("etc/resolv.conf", "etc/hostname"):
            stream, _ = container.get_archive(f"/{name}")
            with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as tar:
                assert tar.getmembers()[0].size == 0, name
    finally:
        container.remove()
