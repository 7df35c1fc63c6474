"""Commands, images, and the machines that run them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from runner.records.base import ErrorInfo, Record
from runner.records.tasks import Environment, Service


class ExecSpec(Record):
    """One command in a sandbox and its inputs. An agent renders to exactly this."""

    argv: tuple[str, ...]
    """Program and arguments, without a shell."""
    env: dict[str, str] = {}
    """Environment variables in addition to the sandbox's."""
    cwd: str | None = None
    """Working directory; None means the sandbox's."""
    user: str | None = None
    """User; None means the sandbox's."""
    files: dict[str, str] = {}
    """Absolute container path -> text. Written before the command, readable by its user."""
    uploads: dict[str, Path] = {}
    """Absolute container folder -> host folder. Copied before the command, owned by root and readable by all."""
    timeout_seconds: float | None = None
    """Wall seconds after which the command is killed; None means no limit."""


class ExecResult(Record):
    """Result of a command in a sandbox."""

    exit_code: int | None
    """Exit code; None when the command did not end by itself."""
    stdout: str
    """Output, decoded with replacement and cut at the sandbox's output cap."""
    stderr: str
    seconds: float
    """Wall seconds that the command took."""
    ended: Literal["exited", "deadline", "disk", "files", "cancelled", "lost"] = "exited"
    """Ending of the command. deadline: killed at the time limit. disk, files: killed for filling its disk, or for its
    number of files. lost: the container died during the command."""
    output_bytes: int = 0
    """Bytes that the command wrote to both streams, including those above the cap."""
    output_cut: bool = False
    """True if output above the cap was dropped."""


class Counted(Record):
    """The kernel's counts for a sandbox. None: unknown."""

    unrouted: int | None = None
    """Attempts to reach an address to which no route leads."""
    memory_kills: int | None = None
    """Processes killed because the sandbox had no memory left."""


class Changes(Record):
    """Absolute paths at which a sandbox's file system differs from the image from which it was started."""

    added: frozenset[str] = frozenset()
    """Paths that the image lacks."""
    changed: frozenset[str] = frozenset()
    """Paths whose content, rights or owner changed, and every folder in which something was added, changed or
    deleted."""
    deleted: frozenset[str] = frozenset()
    """Deleted paths. A deleted folder is listed without its content."""


class Reaped(Record):
    """Result of removing the containers of dead owners."""

    removed: int = 0
    """Number of removed containers."""
    left: tuple[str, ...] = ()
    """Names of those that the engine could not remove in time."""

    @property
    def complaint(self) -> str:
        """Message for the user about containers that are left; empty if there are none."""
        if not self.left:
            return ""
        names = ", ".join(self.left)
        return f"The Docker Engine could not remove {names}. The next command tries again; else restart the engine."


class Image(Record):
    """A usable image and its origin."""

    id: str
    """`sha256:...`, or empty for sandboxes that have no images."""
    reference: str
    """Name by which the engine finds it."""
    digest: str = ""
    """Name and digest by which its registry knows the image, as `NAME@sha256:...`; empty for an image that was built or
    loaded here."""
    origin: Literal["local", "pulled", "built", "none"] = "local"
    """Origin of the image in this call: found on this machine, pulled or built. none: there are no images."""
    note: str = ""
    """Remark for the record, when a declared image could not be pulled and was built instead."""
    seconds: float = 0.0
    """Wall seconds that pulling or building took."""


class BuildSpec(Record):
    """An untrusted image to be built."""

    name: str
    """Name of the build in messages."""
    dockerfile: str
    """Text of the Dockerfile."""
    folders: dict[str, Path] = {}
    """Name in the build context -> host folder. The context holds these and the Dockerfile."""
    environment: Environment = Environment()
    """Limits and build arguments."""
    timeout_seconds: float
    """Wall seconds after which the build is ended."""


class Build(Record):
    """Result of building an untrusted image."""

    image: Image | None = None
    """The image, as long as the build's context is open; None if the build failed."""
    error: ErrorInfo | None = None
    """Reason why there is no image: BuildFailed, deadline, disk or cancelled."""
    output: str = ""
    """End of the build's output."""
    seconds: float = 0.0
    """Wall seconds of the build."""


class BundleRecipe(Record):
    """Recipe of an agent's installation, made once and mounted read-only at `/opt/assay/<name>` in every sandbox that
    uses it.
    """

    name: str
    """Name of the bundle, and of its folder below `/opt/assay`."""
    kind: Literal["pypi", "npm"]
    """Registry that the package comes from."""
    package: str
    version: str
    lock: Path | None = None
    """File that pins the package and its dependencies by hash. pypi: a requirements file. npm: a `package-lock.json`. A
    bundle without a lock is refused when it is needed."""
    node: bool = False
    """npm: whether the agent needs the node runtime when it runs (a native binary does not)."""


class InstalledBundle(Record):
    """An existing bundle, as a trial's record names it."""

    recipe: str
    """SHA-256 of everything that it is made from."""
    content: str
    """SHA-256 of its content: paths, permissions and files."""


class LentPorts(Record):
    """TCP ports of one sandbox that another one reaches as its own."""

    lent: tuple[int, ...] = ()
    busy: tuple[int, ...] = ()
    """Ports that were not lent because something of the borrower's own listens there."""
    left_out: tuple[int, ...] = ()
    """Ports on which something of the lender's listens but that were not to be lent: the first 100."""


class UsageReport(Record):
    """Location of the token counts that an agent reports.

    The expressions are JMESPath. Their root is the list of all JSON values found there, one after another. An
    expression gives a number, or a list of numbers to be summed. Without an expression the agent does not report that
    count.
    """

    files: str | None = None
    """Glob of files in the agent's own folder, `{agent_dir}`; None means its standard output."""
    input_tokens: str
    """Expression for X, all input. If an agent leaves cached tokens out of its count, the expression adds them."""
    output_tokens: str
    """Expression for Y; the fields below hold those for A and H. See `Usage`."""
    cache_creation_tokens: str | None = None
    cache_hit_tokens: str | None = None


class SandboxSpec(Record):
    """A sandbox to start. Limits that its environment leaves None come from the provider's configuration."""

    name: str
    """Readable part of the container's name: task and role, `[a-z0-9_.-]`."""
    image: Image
    """Image to start from: a task's, or a snapshot."""
    environment: Environment = Environment()
    """Limits, variables and working directory."""
    user: str | None = None
    """User of its commands; None means the image's."""
    gateway_dir: Path | None = None
    """Host folder with `gateway.sock`, mounted read-only at `/run/assay/gateway`. None: no model traffic."""
    bundles: tuple[BundleRecipe, ...] = ()
    """Bundles, mounted read-only below `/opt/assay`. The `python` runtime with the supervisor always comes
    with them."""
    fresh_dirs: tuple[str, ...] = ()
    """Paths that are new, empty and open to root only (0700), whatever the image has there: `/tests`,
    `/logs/verifier`."""
    open_dirs: tuple[str, ...] = ()
    """Paths that are made if the image lacks them, and that everybody may write to: `/logs/agent`,
    `/logs/artifacts`."""
    uploads: tuple[tuple[str, Path], ...] = ()
    """Container folders, each with the host folder whose content is in it, root-owned, before the first process starts.
    A later pair replaces files of an earlier one."""
    entrypoint: bool = False
    """True to run the image's ENTRYPOINT, if it has one, before the first command. See
    `runner.sandbox.docker.entrypoint`."""
    entrypoint_user: str | None = None
    """User who runs the ENTRYPOINT; None means the image's user."""
    runtime: bool = False
    """True to mount the `python` runtime although no agent runs. Then nothing of the image runs before the first
    command or is preloaded into it."""
    least_memory_mb: int | None = None
    """Minimum memory in MiB, whatever the task's limit; None leaves the task's limit unchanged."""
    network: Literal["none", "open"] = "none"
    """Network of the sandbox. none: only its own loopback. open: the engine's network, without restriction."""
    services: str | None = None
    """Network of the trial's services, which the sandbox joins as `main`. Its way out is that of `network`."""
    labels: dict[str, str] = {}
    """Labels of the container, in addition to its owner's."""


class ServicesSpec(Record):
    """The further containers of a trial."""

    name: str
    """Name of the task, for messages."""
    services: tuple[Service, ...]
    network: Literal["none", "open"] = "none"
    """none: they reach each other and the sandbox, and nothing else. open: the engine's network as well."""
    labels: dict[str, str] = {}
    """Labels of all that belongs to them, in addition to its owner's."""
