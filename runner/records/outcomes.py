"""Outcomes: verdicts and trials."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final, Literal

from pydantic import Field

from runner.records.base import ErrorInfo, Record
from runner.records.calls import HelperSpend, OwnUsage, Usage
from runner.records.sandboxes import LentPorts

SCHEMA_VERSION: Final = 1
"""Version of `TrialRecord` on disk, raised whenever a field changes its meaning."""


class Status(StrEnum):
    """Ending of a trial, separate from its reward."""

    COMPLETED = "completed"
    """The agent ended by itself with exit code 0."""
    AGENT_ERROR = "agent_error"
    """The agent ended by itself with another exit code, was ended for what it did (disk), or left a machine on which no
    test can run (workspace caps, a machine that does not start)."""
    TIMEOUT = "timeout"
    """The deadline of the task or the budget passed. The trial is verified all the same."""
    BUDGET_EXCEEDED = "budget_exceeded"
    """The gateway refused a call because the budget was spent. The trial is verified all the same."""
    INFRA_INVALID = "infra_invalid"
    """Our side failed (image, engine, provider, judge model), which says nothing about the configuration."""
    CANCELLED = "cancelled"
    """The user stopped the run."""

    @property
    def finished(self) -> bool:
        """Return whether the configuration itself caused the ending. An unfinished trial runs again on resume."""
        return self not in (Status.INFRA_INVALID, Status.CANCELLED)


class ChangedPrograms(Record):
    """Changes that the agent made to programs and start-up files which the tests of its own machine run or read.

    This is information, not a verdict: the honest installation of a package is listed as well.
    """

    count: int | None
    """Number of such files and folders; None if the engine could not list the changes."""
    paths: tuple[str, ...] = ()
    """The first paths of these files and folders, in alphabetical order."""


class EgressAttempt(Record):
    """A machine's use of the network beyond its model.

    This is a request at the proxy, a lookup of a name, or a number of connections and packets to bare addresses, which
    lead nowhere.
    """

    host: str
    """Name or address as asked for. `(others)` stands for all beyond the first 256, `(unreadable)` for lookups of
    anything that is not a host's name, `(addresses)` for all bare addresses, of which only the number is known."""
    port: int
    """Port; 53 for a lookup, 0 if unknown."""
    way: Literal["proxy", "dns", "direct"] = "proxy"
    """Place where it was noticed: the proxy, a lookup, or packets to bare addresses."""
    allowed: bool
    """True if the proxy may reach it. A lookup is always answered that there is no such name."""
    count: int
    """Requests or questions (one lookup asks two, for both kinds of address). In a flood not all are counted."""


class Verdict(Record):
    """The verifier's judgement of the final workspace."""

    reward: float | None
    """Reward in [0, 1]. None when our side could not judge, and `error` says why. A workspace that the agent left
    impossible to judge is worth 0, and has an `error` too."""
    components: dict[str, float] = {}
    """Every key of the verifier's `reward.json`."""
    exit_code: int | None = None
    """Exit code of the verifier's script. Recorded, but not a part of the reward (Harbor's rule)."""
    mode: Literal["shared", "separate", "beside", "live", "pristine"] = "shared"
    """Machine in which the tests ran. shared: the machine that the agent left. separate: a machine of the task's image
    with the declared artifacts. beside: a copy of the agent's machine, from which services of the running one are
    reached. live: the agent's running machine. pristine: for a second verdict, a machine of the
    task's image with the agent's work laid over it."""
    image: str = ""
    """Id of the image that the judge ran in: the task's, or the snapshot of the agent's machine."""
    output: str = ""
    """End of the verifier's output."""
    error: ErrorInfo | None = None
    """Reason why there is no judgement: a failure of our side, or something that the agent left."""
    seconds: float = 0.0
    """Wall seconds, including those of `again`."""
    flags: tuple[str, ...] = ()
    """Facts that a reader of the verdict must know. They are also among the flags of the trial's record."""
    ports: LentPorts | None = None
    """TCP ports of the agent's machine that the tests could reach; None unless they ran beside it."""
    left_out: tuple[str, ...] = ()
    """Artifacts, or parts of them, that did not travel to a separate verifier: the first 50 paths."""
    programs: ChangedPrograms | None = None
    """Changed programs; None where the tests ran in a machine that the agent never touched."""
    egress: tuple[EgressAttempt, ...] = ()
    """Network use of the installation of the agent's work, where the task allows it hosts."""
    again: Verdict | None = None
    """The second verdict, if one was asked for (`dataset.verifier.again`). Never a part of the reward."""


class PhaseSeconds(Record):
    """Wall seconds of each phase of one trial. `environment` includes waiting for a shared image build."""

    environment: float = 0.0
    """Preparing image and sandbox, until the agent starts."""
    agent: float = 0.0
    """The rollout."""
    waiting: float = 0.0
    """Part of `agent` in which a model call waited for the limits on calls, or for a stalled gateway. The call's
    deadline is later by this time."""
    collect: float = 0.0
    """Taking out the workspace and the artifacts."""
    verify: float = 0.0
    """The verifier."""


class Retry(Record):
    """An earlier try at the same trial that our side spoiled, with its costs."""

    reason: ErrorInfo
    """The failure of our side."""
    usage: Usage = Usage()
    """Tokens of its model calls."""
    cost_usd: float | None = 0.0
    """Cost of its model calls; None when any price is missing."""
    judge_usd: float | None = 0.0
    """Cost of its verifier's judge model; None when any price is missing."""
    turns: int = 0
    """Number of model calls that were answered."""
    lost: int = 0
    """Model and judge calls of unknown cost: those counted by `ModelCall.lost`, and those in progress when its
    runner died."""
    wall_seconds: float = 0.0
    """Wall seconds from its start to its end."""


AXES = ("agent", "model", "dataset", "budget")
"""Names of the four things that make up a cell; everything else belongs to the sweep."""
CELL_SEPARATOR = "·"
"""Separator of the axes in the name of a cell."""


class TrialName(Record):
    """Identity of a trial: its cell, task and attempt, and the properties by which tables group."""

    key: str
    """Digest of everything that can change how the trial ends (`keys.trial_keys`)."""
    agent: str
    model: str
    dataset: str
    budget: str
    task: str
    attempt: int
    """Number of the attempt at the task within the cell, from 1."""
    tier: str
    """Tier, category, language and source are the task's own."""
    category: str
    language: str
    source: str = Field(default="unknown", exclude_if=lambda source: source == "unknown")
    """Source of the task. An unknown one is not written, so that files of earlier versions remain valid."""
    scripted: bool = False
    """True if the model is a script, not a language model."""
    replayed: bool = False
    """True if the model's answers come from an earlier run."""

    @property
    def cell(self) -> str:
        """Name of its cell: `agent·model·dataset·budget`."""
        return CELL_SEPARATOR.join(getattr(self, axis) for axis in AXES)


class PlannedRow(TrialName):
    """One planned trial in `sweep.json`. It counts in the denominator whether it ever ran or not."""

    refused: str | None = None
    """Reason why the task cannot be run here, or not by this agent. Such a trial contributes zero."""
    context_window: int | None = Field(default=None, exclude_if=lambda window: window is None)
    """Context window of the cell's model, in tokens. An unknown one is not written."""


class TrialRecord(TrialName):
    """One trial: one (cell, task, attempt). Written once, atomically. Everything else is derived from these records."""

    schema_version: Literal[1] = SCHEMA_VERSION
    status: Status
    """Ending of the trial."""
    reward: float | None = None
    """The verdict's reward."""
    passed: bool | None = None
    """True if reward >= the dataset's `pass_threshold`; None when there is no reward."""
    verdict: Verdict | None = None
    """The verifier's judgement; None if it did not judge."""
    error: ErrorInfo | None = None
    """Reason for the ending, unless the agent ended by itself with exit code 0."""
    warnings: tuple[ErrorInfo, ...] = ()
    """Failures that did not end the trial. They explain the flag `calls_undescribed`."""
    flags: tuple[str, ...] = ()
    """Facts that a reader of the record must know, among them:

    * agent_usage_differs, agent_usage_unreadable: see `agent_usage`.
    * answer_in_reach: the agent could have copied the answer out of its own installation.
    * artifacts_left_out: see `Verdict.left_out`.
    * artifacts_not_kept: the trial's folder lacks the content of `/logs/artifacts`, or part of it.
    * calls_cut: what some calls cost is unknown.
    * calls_undescribed: a call's content could not be read, so no tool calls are counted.
    * collect_unfinished: the task's own collecting hit its time limit.
    * commands_cut: some commands are longer than what is read of them, so `programs` may be incomplete.
    * empty_rollout: the agent used no tool, or changed nothing and said nothing.
    * entrypoint_ended: the image's ENTRYPOINT did not start again where the tests ran.
    * forged_results: a hidden suite's judge was tampered with.
    * image_built_instead_of_pulled: see `Image.note`.
    * install_egress_refused: see `Verdict.egress`.
    * memory_raised: the task allows less than its agent needs, and the rollout had `memory_mb`.
    * no_model_call: the agent never called its model.
    * no_verdict: tests ended without a usable reward, which counts as failed.
    * online_profile: installations could reach a package index (`dataset.profile=online`).
    * out_of_memory: the kernel killed a process of the rollout for lack of memory.
    * params_dropped: a parameter of the model (`model.params`) did not reach the provider; see `ModelCall.dropped`.
    * programs_changed, programs_unknown: see `Verdict.programs`.
    * ports_unlisted: the tests could reach every port of the agent's machine, not only those of the task's services.
    * skills_unsupported: the task's image brings skills, and the agent reads none; a CLI's instruction lists them.
    * solution_fails: the task's own solution fails here, or an untouched machine passes.
    * time_limit_cut: the budget's wall clock is shorter than the task's own limit.
    * verdicts_differ: see `Verdict.again`.
    * verified_live: see `Verdict.mode`.
    """
    agent_setting: str = Field(default="", exclude_if=lambda setting: not setting)
    """Way in which the agent worked, if it has several: `paper`, `ours`, or one of them with the values that differ.
    An empty one is not written, so that files of earlier versions hold."""
    agent_exit_code: int | None = None
    """Exit code of the agent; None when it did not end by itself."""
    memory_mb: int | None = None
    """MiB that the rollout's sandbox could use; None without a limit, and in records of earlier versions."""

    usage: Usage = Usage()
    """Tokens of all model calls, including those of retries."""
    agent_usage: OwnUsage | None = None
    """Tokens that the agent itself reports for the last try; None if it reports nothing readable."""
    usage_difference: OwnUsage | None = None
    """`agent_usage` less the gateway's counts of the same try, which are the truth; 0 where both agree."""
    cost_usd: float | None = None
    """Cost of all model calls, including those of retries; None when any price is missing."""
    judge_usd: float | None = 0.0
    """Cost of the verifier's judge model, including retries. Not a part of `cost_usd`; None when any price is
    missing."""
    turns: int = 0
    """U: model calls that were answered."""
    helper: HelperSpend | None = Field(default=None, exclude_if=lambda helper: helper is None)
    """Part of the last try's tokens, cost and turns that its helper model took; None for agents without one."""
    cached_calls: int | None = None
    """Answers of the last try of whose input the provider read a part from its cache; None without a model, and in
    records of earlier versions."""
    interactions: int = 0
    """I: tool calls that the model made."""
    tool_calls: dict[str, int] = {}
    """Tool name -> number of calls."""
    tool_names: tuple[str, ...] | None = None
    """Name of each tool call in order; None in records of earlier versions."""
    tool_kinds: tuple[str, ...] = ()
    """Kind of each tool call in order, by the agent's own table (`agent.tools`)."""
    actions: tuple[str, ...] | None = None
    """Actions of the calls, in order (`metrics.actions`); one call may have done several things, or none. None without
    a model, where the calls could not be read, and in records of earlier versions."""
    tool_phases: tuple[str, ...] = ()
    """Phase of each tool call in order (`metrics.terminal.phase`)."""
    programs: tuple[str, ...] = ()
    """Programs that the model's terminal commands ran, in order (`metrics.terminal.programs`)."""
    file_reads: int | None = None
    """Number of file reads, by a tool or in a terminal; None without a model, where the calls could not be read, and in
    records of earlier versions. See `runner.trials.behaviour`."""
    repeated_reads: int | None = None
    """Number of these reads that repeat an earlier one; None likewise."""
    own_finish: bool | None = None
    """True if the agent ended its work itself; None without a model. See `runner.trials.behaviour`."""

    started_at: datetime
    """Time at which the last try began (UTC)."""
    finished_at: datetime
    wall_seconds: float
    """Wall seconds of the last try."""
    seconds: PhaseSeconds = PhaseSeconds()
    """Wall seconds of the last try's phases."""
    retries: tuple[Retry, ...] = ()
    """Earlier tries that our side spoiled."""
    egress: tuple[EgressAttempt, ...] = ()
    """Network use of the last try. Also empty if the sandbox had no proxy (`sandbox.network=open`, agents without a
    model)."""
    workspace_files: int | None = None
    """Files in the final workspace; None if unknown."""
    workspace_lines: int | None = None
    """Lines of text in the final workspace; None if unknown."""
    skills: tuple[str, ...] | None = None
    """Names of the skills that the task's image showed to the agent; None for a task without skills, and in records of
    earlier versions."""
    host_env: tuple[str, ...] = ()
    """Names of this machine's environment variables that the task could read, as `dataset.env` allows. Never their
    values."""
    digests: dict[str, str] = {}
    """Identities of what ran: task, image, verifier_image, bundle:<name> (its recipe), bundle_content:<name> (the
    installed files), agent, model, prices, budget, assay."""

    @property
    def judged(self) -> bool:
        """Return whether the configuration caused the ending and there is a reward, so that the trial counts."""
        return self.status.finished and self.reward is not None
