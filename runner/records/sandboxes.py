"""Commands, images and the machines that they are for."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from runner.records.base import ErrorInfo, Record
from runner.records.tasks import Environment


class ExecSpec(Record):
    """One command in a sandbox, with what it needs. An agent renders to exactly this."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    cwd: str | None = None
    """None means the sandbox's working directory."""
    user: str | None = None
    """None means the sandbox's user."""
    files: dict[str, str] = {}
    """Absolute container path -> text, written before the command, readable by its user."""
    uploads: dict[str, Path] = {}
    """Absolute container folder -> host folder, copied (root-owned, world-readable) before the command."""
    timeout_seconds: float | None = None


class ExecResult(Record):
    """How a command in a sandbox ended."""

    exit_code: int | None
    """None when it did not end by itself."""
    stdout: str
    """Decoded with replacement, cut at the sandbox's output cap."""
    stderr: str
    seconds: float
    ended: Literal["exited", "deadline", "disk", "files", "cancelled", "lost"] = "exited"
    """deadline: killed at the time limit. disk, files: killed for filling its disk, or for its number of files.
    lost: the container died under it."""
    output_bytes: int = 0
    """What it really wrote to both streams, cap or no cap."""
    output_cut: bool = False
    """Whether some of that was above the cap, and dropped."""


class Counted(Record):
    """What the kernel counted of a sandbox. None: nobody can tell."""

    unrouted: int | None = None
    """How often a command turned to an address that no way leads to."""
    memory_kills: int | None = None
    """Processes that were ended because the sandbox had no memory left."""


class Changes(Record):
    """Absolute paths at which a sandbox's file system differs from the image that it was started from."""

    added: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    """Content, rights or owner; also every folder in which something was added, changed or deleted."""
    deleted: frozenset[str] = frozenset()
    """Of a folder that is gone, its own path alone."""


class Reaped(Record):
    """What became of the containers of dead owners."""

    removed: int = 0
    left: tuple[str, ...] = ()
    """Names of those that the engine could not remove in time."""

    @property
    def complaint(self) -> str:
        """What to tell the user of those that are left; empty if there are none."""
        if not self.left:
            return ""
        names = ", ".join(self.left)
        return f"The Docker Engine could not remove {names}. The next command tries again; else restart the engine."


class Image(Record):
    """A usable image and how it came to be."""

    id: str
    """`sha256:...`, or empty for sandboxes that have no images."""
    reference: str
    origin: Literal["local", "pulled", "built", "none"] = "local"
    note: str = ""
    """Said on the record when a declared image could not be pulled and was built instead."""
    seconds: float = 0.0


class BuildSpec(Record):
    """An image to be built of what nobody vouches for."""

    name: str
    """What it is for, in messages."""
    dockerfile: str
    folders: dict[str, Path] = {}
    """Name in the build context -> host folder: everything in it but the Dockerfile."""
    environment: Environment = Environment()
    """Its limits and build arguments."""
    timeout_seconds: float


class Build(Record):
    """How such a build ended."""

    image: Image | None = None
    error: ErrorInfo | None = None
    """Why there is no image: BuildFailed, deadline, disk or cancelled."""
    output: str = ""
    """End of what it printed."""
    seconds: float = 0.0


class BundleRecipe(Record):
    """How an agent is installed, once, into `/opt/assay/<name>`, mounted read-only into every sandbox that uses it."""

    name: str
    kind: Literal["pypi", "npm"]
    package: str
    version: str
    lock: Path | None = None
    """Pins the package and all beneath it by hash. pypi: a requirements file. npm: a `package-lock.json`. A bundle
    without one is refused when it is needed."""
    node: bool = False
    """npm: whether the agent needs the node runtime at run time (a native binary does not)."""


class InstalledBundle(Record):
    """A bundle that is there, as a trial's record names it."""

    recipe: str
    """SHA-256 of everything that it is made by."""
    content: str
    """SHA-256 of what it holds: paths, permissions and contents."""


class UsageReport(Record):
    """Where an agent says how many tokens it used, as data.

    The root of the expressions (JMESPath) is the list of all JSON values found there, one after another. An expression
    gives a number or a list of numbers to be summed; without one the agent does not say this count.
    """

    files: str | None = None
    """Glob of files in the agent's own folder, `{agent_dir}`; None means its standard output."""
    input_tokens: str
    """X: all input, so an agent that leaves cached tokens out of its count has them added here."""
    output_tokens: str
    cache_creation_tokens: str | None = None
    cache_hit_tokens: str | None = None


class SandboxSpec(Record):
    """What to start. Limits and network mode that are None fall back to the provider's configuration."""

    name: str
    """Readable part of the container's name: task and role, `[a-z0-9_.-]`."""
    image: Image
    environment: Environment = Environment()
    user: str | None = None
    gateway_dir: Path | None = None
    """Host folder with `gateway.sock`, mounted read-only at `/run/assay/gateway`; None: no model traffic."""
    bundles: tuple[BundleRecipe, ...] = ()
    """Mounted read-only below `/opt/assay`; the `python` runtime with the supervisor always is."""
    fresh_dirs: tuple[str, ...] = ()
    """Paths that are new, empty and root-only (0700) whatever the image holds there: `/tests`, `/logs/verifier`."""
    open_dirs: tuple[str, ...] = ()
    """Paths that are made where the image has none, and that everybody may write to: `/logs/agent`, `/logs/artifacts`.
    """
    entrypoint: bool = False
    """Run the image's ENTRYPOINT, if it has one, before the first command. See `runner.sandbox.docker.entrypoint`."""
    entrypoint_user: str | None = None
    """Who runs it; None means the image's user."""
    runtime: bool = False
    """Mount the `python` runtime although no agent runs in it. Nothing else of the image's runs before the first
    command, or is loaded into it by itself."""
    least_memory_mb: int | None = None
    """MiB that it has at least, whatever the task's limit; None leaves that as it is."""
    network: Literal["none", "open"] = "none"
    labels: dict[str, str] = {}
