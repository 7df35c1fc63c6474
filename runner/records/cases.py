"""The records of differential testing: a case, what may be used for it, and what came of it on one side.

Imports nothing of ours but the base of all records. The engine that turns a `Case` into a `CaseResult` is
`runner.sandbox.cases.box`.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final, Literal

from pydantic import ConfigDict, Field, field_validator

from runner.records import Image, Record

FILES_ROOT: Final = "/test_data"
"""Where a case's files lie, and where its commands start unless told otherwise (CLI-Tool-Bench's own path)."""
How = Literal["overlay", "copy"]
"""overlay: a fresh root for each case. copy: no mounts permitted; only what the case's user may write is watched and
put back."""
MOST_BYTES: Final = 1 << 63
"""The largest file that a kernel knows; no stream is longer."""
SHA256: Final = r"^[0-9a-f]{64}$"
MOST_SECONDS: Final = 1e6
"""No case takes longer, whatever its supervisor says."""
LONGEST_NAME: Final = 255
"""Bytes of one name in a path, as the kernel has it."""


class Case(Record):
    """One command on one clean machine. A line of `cases.jsonl` is exactly this."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    command_class: str = Field(alias="class", min_length=1)
    """`class` in the file: what the metrics average over; no part of what is run."""
    command: str = Field(min_length=1)
    """Given to `sh -c`."""
    files: dict[str, str] = {}
    """Path below `FILES_ROOT` -> text; written as 0644, their folders as 0755, owned by the case's user."""
    prep: str = ""
    """Given to `sh -c` after the files are there and before the state is taken that `changes` refer to."""
    env: dict[str, str] = {}
    """On top of the side's own."""
    start: Literal["/"] | None = None
    """Folder in which prep and command start. None: the side's `workdir`. `/`: as in the authors' containers; the
    case's user can add entries there, unless `CaseResult.how` is `copy`."""
    negative: bool = False
    """Whether the reference is meant to refuse it."""

    @field_validator("command", "prep")
    @classmethod
    def _no_nul(cls, script: str) -> str:
        script.encode()  # a lone surrogate is a ValueError
        if "\0" in script:
            raise ValueError("a NUL byte cannot be given to a shell")
        return script

    @field_validator("env")
    @classmethod
    def _plain_env(cls, env: dict[str, str]) -> dict[str, str]:
        for name, value in env.items():
            (name + value).encode()
            if not name or "=" in name or "\0" in name + value:
                raise ValueError(f"{name!r} is no environment variable")
        return env

    @field_validator("files")
    @classmethod
    def _stay_inside(cls, files: dict[str, str]) -> dict[str, str]:
        paths = {name: PurePosixPath(name) for name in files}
        for name, path in paths.items():
            (name + files[name]).encode()
            if "\0" in name:
                raise ValueError(f"file {name!r} holds a NUL byte")
            if path.is_absolute() or ".." in path.parts or not path.parts or name.endswith("/"):
                raise ValueError(f"file {name!r} is no path below {FILES_ROOT}")
            if any(len(part.encode()) > LONGEST_NAME for part in path.parts):
                raise ValueError(f"file {name[:40]!r}... has a name of more than {LONGEST_NAME} bytes")
        if len(set(paths.values())) < len(paths):
            raise ValueError("two files have the same path")
        folders = {parent for path in paths.values() for parent in path.parents}
        if both := folders & set(paths.values()):
            raise ValueError(f"{sorted(map(str, both))} are files and folders at once")
        return files


class CaseLimits(Record):
    """What one case may use, and how much of what it did is kept."""

    seconds: float = Field(default=10.0, gt=0)
    """Wall seconds of the command, and as many again of its prep."""
    memory_mb: int = Field(default=512, ge=16)
    """MiB of all its processes and of what it writes."""
    pids: int = Field(default=64, ge=4)
    """Processes and threads."""
    disk_mb: int = Field(default=64, ge=1)
    """MiB that it may write, files and prep included."""
    inodes: int = Field(default=20_000, ge=100)
    """Files, directories and links that it may make, its own files and those of prep included."""
    output_bytes: int = Field(default=1 << 20, ge=1)
    """Kept of each of stdout and stderr; the rest is read, counted and digested, up to a flood (`CaseResult.ended`)."""
    diff_entries: int = Field(default=2_000, ge=1)
    """Kept changes: the first, folder by folder."""
    diff_seconds: float = Field(default=5.0, gt=0)
    """Wall seconds that looking for changes may take."""
    text_bytes: int = Field(default=2_000, ge=0)
    """Kept of each new or changed file's content, to show a difference; equality is the digest's."""


class CaseSide(Record):
    """One side of a comparison: an image in which its tool is installed, and how its cases are run there."""

    name: str
    """Readable part of the container's name, `[a-z0-9_.-]`. Nothing inside can see it."""
    image: Image
    env: dict[str, str] = {}
    """Environment of every command, beside PATH (the image's own, else a usual one), HOME, USER and LANG."""
    workdir: str = FILES_ROOT
    """Where commands start; made if it is not there."""
    limits: CaseLimits = CaseLimits()
    lanes: int = Field(default=1, ge=1)
    """Cases that it can run at once."""
    how: How | Literal["auto"] = "auto"
    """auto: overlay where the engine permits mounts in a container, else copy."""


class Change(Record):
    """One entry of ΔS: one path that a command added, changed or deleted. Times and owners do not count."""

    path: str
    """Absolute. Backslashes are doubled and bytes that are no UTF-8 written `\\xNN`, so no two paths look alike."""
    change: Literal["added", "changed", "deleted"]
    kind: Literal["file", "directory", "symlink", "other"]
    """Of what is there now; of a deleted path, of what was there. other: pipe, socket."""
    mode: int | None = Field(default=None, ge=0, le=0o7777)
    """Permission bits with setuid, setgid and sticky; None for what is deleted, and for links, which have none."""
    size: int | None = Field(default=None, ge=0, le=MOST_BYTES)
    """Bytes of a file."""
    was: Literal["file", "directory", "symlink", "other"] | None = None
    """Kind of what was there before; None for an added path."""
    mode_only: bool = False
    """Whether kind and content are as before, so that only the permission bits differ."""
    digest: str | None = None
    """Of a file's content, or of a link's target: 64 hex digits of SHA-256. None for the rest, for what is deleted,
    and where the time for looking had passed (`truncated`)."""
    text: str | None = None
    """Beginning of a file's content, or a link's target; bytes that are no UTF-8 written `\\xNN`."""
    head_digest: str | None = Field(default=None, pattern=SHA256)
    """Digest of a file's first 2,000 characters, bytes that are not UTF-8 replaced, and of whether there are more: what
    `semantics=artifact` compares. None for the rest, and for a file that could not be read."""


class CaseResult(Record):
    """What one case did on one side. That it failed is a value, never an exception."""

    exit_code: int | None = Field(ge=0, le=255)
    """The shell's own: 127 for a command that is not there, 128 + n when signal n ended it. None unless `exited`."""
    ended: Literal["exited", "deadline", "flood", "prep", "lost"] = "exited"
    """deadline: killed at `limits.seconds`. flood: killed after 64 MiB of stdout or of stderr. prep: the files or the
    prep script failed, so the command was never run, and stdout and stderr are the script's. lost: twice in a row its
    supervisor died with it; stderr is then its own."""
    stdout: str = ""
    """At most `limits.output_bytes` of it; see `binary`."""
    stderr: str = ""
    binary: tuple[Literal["stdout", "stderr"], ...] = ()
    """What is no UTF-8: there such bytes are written `\\xNN`, and backslashes doubled, so no two outputs look alike."""
    stdout_bytes: int = Field(default=0, ge=0, le=MOST_BYTES)
    """What it really wrote."""
    stderr_bytes: int = Field(default=0, ge=0, le=MOST_BYTES)
    stdout_digest: str | None = Field(default=None, pattern=SHA256)
    """SHA-256 of everything that it wrote, also of what is not kept. None on a record from before."""
    stderr_digest: str | None = Field(default=None, pattern=SHA256)
    changes: tuple[Change, ...] = ()
    """ΔS of the command alone, in the order of paths: files and prep are before it."""
    truncated: tuple[Literal["stdout", "stderr", "entries", "diff_seconds"], ...] = ()
    """What a cap cut: a result that is cut equals none that is not; two are compared as far as they are kept."""
    seconds: float = Field(default=0.0, ge=0, le=MOST_SECONDS)
    """Wall seconds from the command's start to its end."""
    cpu_seconds: float = Field(default=0.0, ge=0, le=MOST_SECONDS)
    """User and system time of the command and of those children that it, or who inherited them, waited for."""
    how: How
