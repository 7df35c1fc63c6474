"""Objects in S3, or in a store with its protocol, below one prefix. Only this module knows obstore.

Credentials and the endpoint come from the usual variables of the environment (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT`, …).
No message quotes an address or a header that could hold them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import S3Store

from runner.errors import OutputsError
from runner.files import no_room

REQUEST_SECONDS = 30.0
"""Longest time for one request, and for which a failed one is repeated."""
PART_BYTES, PARTS = 8 << 20, 4
"""Size of a part of a large file, and parts under way at once: the memory that one upload takes at most."""
CLOCK = "clock"
"""Object that is written to learn what time it is at the store."""

_CODE = re.compile(r"<Code>(\w+)</Code>")
_REFUSALS = ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken")
_METADATA_SERVICE = "169.254."
"""Beginning of the addresses at which a cloud's machines find credentials; asked when the environment has none."""


class StoreError(OutputsError):
    """Raised when the object store cannot be used. The message says why, and what to do."""


class Taken(Exception):  # noqa: N818 - says what happened
    """Raised when somebody else has created the object, or changed it since it was read. Ends in this package."""


class Listed(NamedTuple):
    """An object in a listing."""

    name: str
    etag: str


class Bucket:
    """The objects below the prefix of an address. Safe to use from many threads."""

    def __init__(
        self, address: str, patience: float = REQUEST_SECONDS, seconds: float = REQUEST_SECONDS
    ) -> None:
        """`patience` is the time for which a failed request is repeated, and `seconds` that of one request."""
        self.address = address
        bucket, _, prefix = address.removeprefix("s3://").partition("/")
        allow_http = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("true", "1")
        try:
            self._store = S3Store(
                bucket,
                prefix=prefix or None,
                client_options={
                    "allow_http": allow_http,
                    "connect_timeout": timedelta(seconds=min(5.0, seconds)),
                    "timeout": timedelta(seconds=seconds),
                },
                retry_config={"max_retries": 10, "retry_timeout": timedelta(seconds=patience)},
            )
        except BaseError as error:
            raise self._failure(error) from None

    def create(self, name: str, content: bytes) -> str:
        """Create an object and return its ETag. Raises `Taken` if there is one with other content, and `StoreError`."""
        return self._put_if(lambda: obstore.put(self._store, name, content, mode="create"), name, content)

    def replace(self, name: str, content: bytes, etag: str) -> str:
        """Replace the object of this ETag and return the new one. Raises `Taken` and `StoreError`."""
        return self._put_if(
            lambda: obstore.put(self._store, name, content, mode={"e_tag": etag}), name, content
        )

    def put(self, name: str, content: bytes) -> str:
        """Write an object, in place of any other, and return its ETag. Raises `StoreError`."""
        with self._failing():
            return obstore.put(self._store, name, content)["e_tag"] or ""

    def send(self, name: str, file: Path) -> None:
        """Write an object from a file, in parts. Raises `StoreError`, and `OSError` for an unreadable file."""
        with file.open("rb") as stream, self._failing():
            obstore.put(self._store, name, stream, chunk_size=PART_BYTES, max_concurrency=PARTS)

    def get(self, name: str) -> tuple[bytes, str, datetime] | None:
        """Return content, ETag and time of an object; None if there is none. Raises `StoreError`."""
        with self._failing():
            try:
                found = obstore.get(self._store, name)
                meta = found.meta
                return bytes(found.bytes()), meta["e_tag"] or "", meta["last_modified"]
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
                return None

    def fetch(self, name: str, target: Path, size: int, digest: str) -> None:
        """Write an object into a file, in parts. Raises `StoreError`, also for other content than was sent."""
        beside = target.with_name(f".fetched.{os.getpid()}.{digest[:16]}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with self._failing(), beside.open("wb") as file:
                hashed, read = hashlib.sha256(), 0
                # Not as one stream: a request has a time limit, whatever its size.
                while read < size:
                    end = min(read + PART_BYTES, size)
                    part = bytes(obstore.get_range(self._store, name, start=read, end=end))
                    if not part:
                        break
                    read += len(part)
                    hashed.update(part)
                    file.write(part)
            if read != size or hashed.hexdigest() != digest:
                raise StoreError(f"{self.address}/{name} is not what was sent: its digest differs. {_MEND}")
            beside.replace(target)
        except FileNotFoundError:
            raise StoreError(f"{self.address}/{name} is gone from the store. {_MEND}") from None
        except OSError as error:
            raise no_room(target, error) from error
        finally:
            with suppress(OSError):
                beside.unlink()

    def listing(self, prefix: str) -> Iterator[Listed]:
        """Yield the objects below a prefix. Raises `StoreError`."""
        with self._failing():
            for batch in obstore.list(self._store, prefix):
                for found in batch:
                    yield Listed(found["path"], found["e_tag"] or "")

    def now(self) -> datetime:
        """Return the time at the store, which all drivers share. Writes an object. Raises `StoreError`."""
        with self._failing():
            obstore.put(self._store, CLOCK, b"")
            return obstore.head(self._store, CLOCK)["last_modified"]

    def _put_if(self, put: Callable[[], obstore.PutResult], name: str, content: bytes) -> str:
        """Write under a condition. If it does not hold, our own request may have been carried out and repeated."""
        with self._failing():
            try:
                return put()["e_tag"] or ""
            except (AlreadyExistsError, PreconditionError, FileNotFoundError) as error:
                if "NoSuchBucket" in str(error):
                    raise
        found = self.get(name)
        if found is None or found[0] != content:
            raise Taken
        return found[1]

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Raise every failure of the store as a `StoreError`, in a sentence."""
        try:
            yield
        except BaseError as error:
            raise self._failure(error) from None
        except FileNotFoundError as error:
            if "NoSuchBucket" not in str(error):
                raise
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> StoreError:
        text = str(error)
        code = found[1] if (found := _CODE.search(text)) else ""
        if code == "NoSuchBucket":
            return StoreError(f"{self.address}: there is no such bucket. Create it, or correct outputs=.")
        if _METADATA_SERVICE in text:
            return StoreError(f"{self.address}: the environment has no credentials. {_CREDENTIALS}")
        if isinstance(error, PermissionDeniedError | UnauthenticatedError) or code in _REFUSALS:
            return StoreError(
                f"{self.address}: access is refused ({code or 'no reason given'}). {_CREDENTIALS}"
            )
        if "BadScheme" in text:
            return StoreError(
                f"{self.address}: its endpoint is not encrypted (http). Use https, or allow it: "
                "export AWS_ALLOW_HTTP=true"
            )
        reason = code or text.split("\n", 1)[0].rpartition(" - ")[2][:200]
        return StoreError(
            f"{self.address} cannot be reached ({reason}). Look at the network, the bucket and AWS_ENDPOINT."
        )


_CREDENTIALS = (
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of an account that may list, read and write there."
)
_MEND = "Restore it, as from an earlier version in the bucket, or delete its trial's record to run the trial again."
