"""Every exception of the runner, in one tree.

Each class has one meaning. The last column is what a trial becomes when the exception reaches its boundary
(`trials.run`). *Invalid* is the status `infra_invalid`; such a trial is repeated unless the table says otherwise.

    class                    meaning                                                   what a trial becomes
    -----------------------  --------------------------------------------------------  ---------------------------
    AssayError               the root; caught at the command line only                 -
    ├── ConfigError          the user typed or configured something wrong              invalid, not repeated
    │   ├── TaskError        a task cannot be read, or cannot be run here              invalid, not repeated
    │   ├── FetchError       a package that a task names cannot be fetched             - (before any trial)
    │   ├── LabelError       a file of human labels cannot be used                     - (before any trial)
    │   └── OutputsError     `outputs/` is not writable, or another runner uses it     no record; the sweep ends
    ├── MachineError         a machine cannot be had or used; never raised itself      see below
    │   ├── EngineError      the Docker Engine is absent, gone, or failed at its work  invalid
    │   ├── ImageError       an image cannot be had, built, started or used            invalid, not repeated
    │   ├── ProgramError     our program inside a sandbox failed; the engine did not   invalid
    │   └── SpoiledMachine   an agent left its machine so that it cannot be judged     reward 0 once the agent began
    ├── BundleError          an agent's bundle, or our runtime, cannot be installed    - (before any trial)
    ├── ReleasedError        this process is ending and starts no more sandboxes       no record; runs again
    ├── HealthError          a task's own health check never succeeded                 invalid
    ├── WorkspaceTooLarge    what the agent left exceeds the caps on size or count     a flag, or reward 0
    ├── VerifierError        the verifier ran and gave no usable reward                invalid; in Harbor reward 0
    │   └── JudgeError       the judge model gave no verdict                           invalid, not repeated
    ├── GatewayError         the gateway cannot serve a trial                          invalid
    ├── Stopped              budget, deadline or user end a rollout in our process     the status that says which
    ├── ModelFailed          the model gave no answer to a rollout in our process      the rollout's exit code
    │   └── RequestRefused   the provider refuses the request itself, also if too long the rollout's exit code
    └── TrackingError        the tracking store did not take the results               - (after the last trial)

A verifier may turn a `MachineError` into reward 0 where the task's own image shows that the agent caused it. Any other
exception is a bug or a broken task: the trial is invalid, and its record keeps the traceback. Exceptions that never
leave their own package are defined there and do not appear here.

A command that ends with a `ConfigError` has exit code 2, with any other `AssayError` exit code 3. Everything that
happens to *one* trial ends as an `ErrorInfo` on its record, which holds the class's name. Each message is a sentence
that says what to do next.
"""


class AssayError(Exception):
    """Root of the tree; catch it at the command line only."""


class ConfigError(AssayError):
    """The configuration, or an argument, is wrong."""


class TaskError(ConfigError):
    """A task directory cannot be read, or asks for something that cannot be had here."""


class FetchError(ConfigError):
    """A package that a task names cannot be fetched, or is not the one that the task pins by digest.

    A package client's failure carries the end of its output.
    """


class LabelError(ConfigError):
    """A file of human labels cannot be used; names the row, counted from 1 for the header."""


class OutputsError(ConfigError):
    """`outputs/` cannot be written, or another runner is using it."""


class MachineError(AssayError):
    """A machine cannot be had or used. Raise a subclass; catch this where the cause is found out afterwards."""


class EngineError(MachineError):
    """The Docker Engine is absent, went away, or failed at something that no trial caused."""


class ImageError(MachineError):
    """An image cannot be pulled, built, started or used; carries the end of the build's output."""


class ProgramError(MachineError):
    """A program of ours inside a sandbox gave no usable answer although the engine did its work."""


class SpoiledMachine(MachineError):  # noqa: N818 - says what happened
    """An agent left its machine so that the engine cannot or may not go on with it.

    The machine is past its limits on disk or files, or the engine answers, but not for this container. The agent is
    to blame: otherwise an agent could void a trial that it is about to lose.
    """


class BundleError(AssayError):
    """An agent's bundle, or our own runtime, cannot be installed; carries the end of the installation's output."""


class ReleasedError(AssayError):
    """This process is ending: its sandboxes were removed, and it starts no more."""


class HealthError(AssayError):
    """A task's own health check never succeeded: its image or services are broken, and the engine is not."""


class WorkspaceTooLarge(AssayError):  # noqa: N818 - says what happened
    """The agent left more bytes or files than `sandbox.workspace_mb` and `sandbox.workspace_files` allow."""


class VerifierError(AssayError):
    """The verifier ended without a usable reward (none written, not a number, outside [0, 1])."""


class JudgeError(VerifierError):
    """The judge model gave no verdict (provider down, budget spent, nonsense), which never counts as a "no"."""


class GatewayError(AssayError):
    """The gateway could not be started or could not open a trial's socket."""


class Stopped(AssayError):  # noqa: N818 - says what happened
    """The budget, the deadline or the user ends a rollout that runs in our process (`protocols.Bench`)."""


class ModelFailed(AssayError):  # noqa: N818 - says what happened
    """The model gave no answer to a rollout that runs in our process; the message says why."""


class RequestRefused(ModelFailed):
    """The provider refuses a request of a rollout in our process. Another request may be answered."""

    def __init__(self, message: str, *, too_long: bool = False) -> None:
        """`too_long` says that the request does not fit into the model's context window."""
        super().__init__(message)
        self.too_long = too_long


class TrackingError(AssayError):
    """The tracking store did not take the results. The records are safe: `python -m runner job=track`."""
