"""Every exception of the runner, in one tree.

    AssayError
    ├── ConfigError              what the user typed or configured is wrong; found before anything starts
    │   ├── TaskError            one task on disk cannot be read, or cannot be run here
    │   ├── LabelError           a file of human labels cannot be used
    │   └── OutputsError         `outputs/` is not writable, or another runner holds it
    ├── EngineError              the Docker Engine is absent, gone, or refused something it should do
    │   └── ImageError           an image can neither be pulled nor built
    ├── HealthError              a task's own health check never succeeded
    ├── SpoiledMachine           what an agent did to its machine keeps it from being judged: reward 0
    ├── WorkspaceTooLarge        what the agent left exceeds the caps on size or count
    ├── VerifierError            the verifier ran and gave no usable reward
    │   └── JudgeError           the judge model gave no verdict
    ├── GatewayError             the gateway cannot serve a trial
    ├── Stopped                  a rollout in our process may go no further: budget, deadline or the user's stop
    ├── ModelFailed              the model of a rollout in our process gave no answer
    └── TrackingError            the tracking store did not take the results

A `ConfigError` is the user's to mend and ends the command with exit code 2. Everything that can happen to *one*
trial ends as an `ErrorInfo` on its record and never leaves `trial.run_trial`. Each message is a sentence that
says what to do next.
"""


class AssayError(Exception):
    """Root of the tree; catch it at the command line only."""


class ConfigError(AssayError):
    """The configuration, or an argument, is wrong. Nothing has been started."""


class TaskError(ConfigError):
    """A task directory cannot be read, or asks for what cannot be had here."""


class LabelError(ConfigError):
    """A file of human labels cannot be used; names the row, of which the header is the first."""


class OutputsError(ConfigError):
    """`outputs/` cannot be written, or another runner is using it."""


class EngineError(AssayError):
    """The Docker Engine is absent, went away, or failed at something that is no trial's doing."""


class ImageError(EngineError):
    """An image can neither be pulled nor built; carries the end of the build's output."""


class HealthError(AssayError):
    """The health check of a task never succeeded: its image or its services are sick, and the engine is not."""


class SpoiledMachine(AssayError):  # noqa: N818 - says what happened
    """An agent left its machine so that the engine cannot or may not go on with it.

    It is past its limits on disk or files, or the engine answers, but not for this container. That is the agent's
    doing: else an agent could void a trial that it is about to lose.
    """


class WorkspaceTooLarge(AssayError):  # noqa: N818 - says what happened
    """The agent left more bytes or files than `sandbox.workspace_mb` and `sandbox.workspace_files` allow."""


class VerifierError(AssayError):
    """The verifier ended without a usable reward (none written, not a number, out of [0, 1])."""


class JudgeError(VerifierError):
    """The judge model gave no verdict (provider down, budget spent, no sense): that is never a "no"."""


class GatewayError(AssayError):
    """The gateway could not be started or could not open a trial's socket."""


class Stopped(AssayError):  # noqa: N818 - as above
    """The budget, the deadline or the user ends a rollout that runs in our process (`agents.bench.Bench`)."""


class ModelFailed(AssayError):  # noqa: N818 - as above
    """The model gave no answer to a rollout that runs in our process; says why."""


class TrackingError(AssayError):
    """The tracking store did not take the results. The records are safe: `python -m runner job=track`."""
