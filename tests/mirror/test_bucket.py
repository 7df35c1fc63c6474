"""Objects are created once, and whoever may not use a store is told why."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.support.object_store import ObjectServer

pytest.importorskip("obstore")

from runner.mirror.bucket import Bucket, StoreError, Taken

WRITERS, RACES = 16, 20


def _race(write: Callable[[int], str]) -> list[int]:
    """Let all writers write at once. Return those that succeeded."""
    begin = threading.Barrier(WRITERS)

    def attempt(writer: int) -> bool:
        begin.wait()
        try:
            return bool(write(writer))
        except Taken:
            return False

    with ThreadPoolExecutor(WRITERS) as pool:
        return [writer for writer, won in enumerate(pool.map(attempt, range(WRITERS))) if won]


def test_of_sixteen_writers_at_once_one_creates_an_object_and_one_replaces_it(address: str) -> None:
    buckets = [Bucket(address) for _ in range(WRITERS)]

    def create(writer: int, name: str) -> str:
        return buckets[writer].create(name, b"by %d" % writer)

    def replace(writer: int, name: str, etag: str) -> str:
        return buckets[writer].replace(name, b"anew by %d" % writer, etag)

    for race in range(RACES):
        name = f"object-{race}"
        (winner,) = _race(partial(create, name=name))
        content, etag, _ = buckets[0].get(name) or (b"", "", None)
        assert content == b"by %d" % winner
        (winner,) = _race(partial(replace, name=name, etag=etag))
        assert (buckets[0].get(name) or (b"",))[0] == b"anew by %d" % winner


def test_a_request_that_was_carried_out_twice_has_not_lost_to_itself(address: str) -> None:
    bucket = Bucket(address)
    first = bucket.create("x", b"mine")
    assert bucket.create("x", b"mine") == first


def test_a_large_file_travels_in_parts_and_is_compared(address: str, tmp_path: Path) -> None:
    content = bytes(range(256)) * (20 << 12)  # 20 MiB
    digest = hashlib.sha256(content).hexdigest()
    bucket = Bucket(address)
    (tmp_path / "large").write_bytes(content)
    bucket.send("large", tmp_path / "large")
    bucket.fetch("large", tmp_path / "back" / "again", len(content), digest)
    assert (tmp_path / "back" / "again").read_bytes() == content

    bucket.put("large", content[:-1] + b"!")
    with pytest.raises(StoreError, match="large is not what was sent: its digest differs"):
        bucket.fetch("large", tmp_path / "changed", len(content), digest)
    with pytest.raises(StoreError, match="nothing is gone from the store"):
        bucket.fetch("nothing", tmp_path / "changed", 1, digest)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "large"]


def test_what_is_wrong_with_a_store_is_a_sentence_without_a_secret(
    server: ObjectServer, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreError, match=r"no-such-bucket/x: there is no such bucket. Create it"):
        Bucket("s3://no-such-bucket/x").put("x", b"")
    with (
        server.authenticating(),
        pytest.raises(StoreError, match=r"refused \(InvalidAccessKeyId\)") as refused,
    ):
        Bucket(address).put("x", b"")
    assert "an-account" not in str(refused.value)
    monkeypatch.setenv("AWS_ENDPOINT", "http://someone:secret@127.0.0.1:1")
    with pytest.raises(StoreError, match="cannot be reached") as away:
        Bucket(address, 1).put("x", b"")
    assert "secret" not in str(away.value)
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    with pytest.raises(StoreError, match="AWS_ALLOW_HTTP=true"):
        Bucket(address).put("x", b"")


MEASURED = """
import resource, sys
from pathlib import Path
from runner.mirror.bucket import Bucket
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
bucket, file = Bucket(sys.argv[1]), Path(sys.argv[2])
bucket.put("warm", b"")
before = peak()
bucket.send("large", file)
bucket.fetch("large", file.with_name("back"), file.stat().st_size, sys.argv[3])
print(peak() - before)
"""


def test_memory_is_bounded_whatever_the_size_of_a_file(address: str, tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(256 << 20)
    with large.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    command = [sys.executable, "-c", MEASURED, address, str(large), digest]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(ended.stdout) < 128, f"{ended.stdout} MiB"
