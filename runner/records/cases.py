"""The records of differential testing: a case, its limits, and its result on one side.

Imports nothing of ours but the base of all records. `runner.sandbox.cases.box` turns a `Case` into a `CaseResult`.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import ConfigDict, Field, field_validator

from runner.records import Image, Record

FILES_ROOT: Final = "/test_data"
"""Folder of a case's files. Commands start there unless told otherwise (CLI-Tool-Bench's own path)."""
How = Literal["overlay", "copy"]
"""Isolation of a case. overlay: a fresh root for each case. copy: no mounts are permitted; only the folders that the
case's user may write to are watched and restored."""
MOST_BYTES: Final = 1 << 63
"""The largest file that a kernel knows, in bytes. No stream is longer."""
SHA256: Final = r"^[0-9a-f]{64}$"
MOST_SECONDS: Final = 1e6
"""Longest time of a case, in seconds, whatever its supervisor says."""
LONGEST_NAME: Final = 255
"""Longest name in a path, in bytes, as the kernel has it."""


class Case(Record):
    """One command on one clean machine. A line of `cases.jsonl` is exactly this."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    command_class: str = Field(alias="class", min_length=1)
    """Class over which the metrics average (`class` in the file). It does not affect the run."""
    command: str = Field(min_length=1)
    """Script for `sh -c`."""
    files: dict[str, str] = {}
    """Path below `FILES_ROOT` -> text. Files have mode 0644, their folders 0755, and the case's user owns both."""
    prep: str = ""
    """Script for `sh -c`, run after the files are written. `changes` refers to the state after it."""
    env: dict[str, str] = {}
    """Environment variables in addition to the side's own."""
    start: Literal["/"] | None = None
    """Folder in which prep and command start. None: the side's `workdir`. `/`: as in the authors' containers; the
    case's user can add entries there, unless `CaseResult.how` is `copy`."""
    negative: bool = False
    """True if the reference is meant to refuse it."""

    @field_validator("command", "prep")
    @classmethod
    def _no_nul(cls, script: str) -> str:
        script.encode()  # raises ValueError for a lone surrogate
        if "\0" in script:
            raise ValueError("a NUL byte cannot be given to a shell")
        return script

    @field_validator("env")
    @classmethod
    def _plain_env(cls, env: dict[str, str]) -> dict[str, str]:
        for name, value in env.items():
            (name + value).encode()
            if not name or "=" in name or "\0" in name + value:
                raise ValueError(f"{name!r} is not an environment variable")
        return env

    @field_validator("files")
    @classmethod
    def _stay_inside(cls, files: dict[str, str]) -> dict[str, str]:
        # As `PurePosixPath` reads them, which would take half of the time of reading a dataset.
        paths = {name: tuple(part for part in name.split("/") if part not in ("", ".")) for name in files}
        for name, parts in paths.items():
            (name + files[name]).encode()
            if "\0" in name:
                raise ValueError(f"file {name!r} holds a NUL byte")
            if name.startswith("/") or ".." in parts or not parts or name.endswith("/"):
                raise ValueError(f"file {name!r} is not a path below {FILES_ROOT}")
            if any(len(part.encode()) > LONGEST_NAME for part in parts):
                raise ValueError(f"file {name[:40]!r}... has a name of more than {LONGEST_NAME} bytes")
        if len(set(paths.values())) < len(paths):
            raise ValueError("two files have the same path")
        folders = {parts[:depth] for parts in paths.values() for depth in range(len(parts))}
        if both := folders & set(paths.values()):
            raise ValueError(f"{sorted(map('/'.join, both))} are files and folders at once")
        return files


class CaseLimits(Record):
    """Limits on what one case may use, and on what is stored of its effects."""

    seconds: float = Field(default=10.0, gt=0)
    """Wall seconds for the command, and as many again for its prep."""
    memory_mb: int = Field(default=512, ge=16)
    """MiB of memory for all processes of the case and for everything that it writes."""
    pids: int = Field(default=64, ge=4)
    """Largest number of processes and threads of the case."""
    disk_mb: int = Field(default=64, ge=1)
    """MiB that the case may write, including its files and the effects of its prep."""
    inodes: int = Field(default=20_000, ge=100)
    """Files, directories and links that the case may make, including its own files and those of its prep."""
    output_bytes: int = Field(default=1 << 20, ge=1)
    """Bytes stored of each of stdout and stderr. The rest is read, counted and digested until it counts as a flood
    (`CaseResult.ended`)."""
    diff_entries: int = Field(default=2_000, ge=1)
    """Number of changes that are stored: the first ones, folder by folder."""
    diff_seconds: float = Field(default=5.0, gt=0)
    """Time limit for finding changes, in wall seconds."""
    text_bytes: int = Field(default=2_000, ge=0)
    """Bytes stored of each new or changed file's content, to show a difference. Equality is decided by the digest."""


class CaseSide(Record):
    """One side of a comparison: an image in which its tool is installed, and how its cases are run there."""

    name: str
    """Readable part of the container's name, `[a-z0-9_.-]`. Nothing inside can see it."""
    image: Image
    env: dict[str, str] = {}
    """Environment of every command, in addition to PATH (the image's own, else a usual one), HOME, USER and LANG."""
    workdir: str = FILES_ROOT
    """Folder in which commands start. A missing folder is made."""
    hostname: str = ""
    """Host name of the side's machine; if empty, the same as for all sides."""
    limits: CaseLimits = CaseLimits()
    lanes: int = Field(default=1, ge=1)
    """Number of cases that the side can run at once."""
    how: How | Literal["auto"] = "auto"
    """Isolation; auto: overlay where the engine permits mounts in a container, else copy."""


class Change(Record):
    """One entry of ΔS: one path that a command added, changed or deleted. Times and owners do not count."""

    path: str
    r"""Absolute path. Backslashes are doubled and bytes that are not UTF-8 are written `\xNN`, so no two paths look
    alike."""
    change: Literal["added", "changed", "deleted"]
    """Effect of the command on the path."""
    kind: Literal["file", "directory", "symlink", "other"]
    """Kind of entry that the path has now; for a deleted path, the kind that it had. other: a pipe or socket."""
    mode: int | None = Field(default=None, ge=0, le=0o7777)
    """Permission bits with setuid, setgid and sticky. None for a deleted path, and for links, which have none."""
    size: int | None = Field(default=None, ge=0, le=MOST_BYTES)
    """Size of a file, in bytes."""
    was: Literal["file", "directory", "symlink", "other"] | None = None
    """Kind of entry that the path had before; None for an added path."""
    mode_only: bool = False
    """True if kind and content are unchanged, so that only the permission bits differ."""
    digest: str | None = None
    """SHA-256 of a file's content or of a link's target, 64 hex digits. None for other kinds, for a deleted path, and
    if the time for looking ran out (`truncated`)."""
    text: str | None = None
    r"""Beginning of a file's content, or a link's target. Bytes that are not UTF-8 are written `\xNN`."""
    head_digest: str | None = Field(default=None, pattern=SHA256)
    """Digest of a file's first 2,000 characters, with bytes that are not UTF-8 replaced, and of whether there are more:
    what `semantics=artifact` compares. None for other kinds, and for a file that could not be read."""


class CaseResult(Record):
    """Result of one case on one side. A failure is a value, never an exception."""

    exit_code: int | None = Field(ge=0, le=255)
    """The shell's exit code: 127 for a missing command, 128 + n when signal n ended it. None unless `exited`."""
    ended: Literal["exited", "deadline", "flood", "prep", "lost"] = "exited"
    """Ending of the case. deadline: killed at `limits.seconds`. flood: killed after 64 MiB of stdout or of stderr.
    prep: the files or the prep script failed, so the command was not run, and stdout and stderr are the script's. lost:
    its supervisor died with it twice in a row; stderr is then the supervisor's."""
    stdout: str = ""
    """Beginning of the command's stdout, at most `limits.output_bytes`; see `binary`."""
    stderr: str = ""
    binary: tuple[Literal["stdout", "stderr"], ...] = ()
    r"""Streams that are not UTF-8. In these such bytes are written `\xNN` and backslashes are doubled, so no two
    outputs look alike."""
    stdout_bytes: int = Field(default=0, ge=0, le=MOST_BYTES)
    """Number of bytes that the command wrote, including those that are not stored."""
    stderr_bytes: int = Field(default=0, ge=0, le=MOST_BYTES)
    stdout_digest: str | None = Field(default=None, pattern=SHA256)
    """SHA-256 of everything that the command wrote, stored or not. None in records of earlier versions."""
    stderr_digest: str | None = Field(default=None, pattern=SHA256)
    changes: tuple[Change, ...] = ()
    """ΔS of the command alone, sorted by path. Files and prep come before it."""
    truncated: tuple[Literal["stdout", "stderr", "entries", "diff_seconds"], ...] = ()
    """Parts that a limit cut. A result that is cut never equals one that is not; two cut ones are compared as far as
    stored."""
    seconds: float = Field(default=0.0, ge=0, le=MOST_SECONDS)
    """Wall seconds from the command's start to its end."""
    cpu_seconds: float = Field(default=0.0, ge=0, le=MOST_SECONDS)
    """User and system time of the command and of those children that it, or the process that inherited them, waited
    for."""
    how: How
