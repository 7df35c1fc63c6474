"""What crosses a module border: frozen records, and nothing else.

Imports nothing of ours. Every record rejects unknown fields, so a misspelt field or a record written by another
schema fails loudly. Missing is `None`, never 0. A field's meaning stands beneath it.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

SCHEMA_VERSION: Final = 1
"""Of `TrialRecord` on disk. Raised whenever a field changes its meaning."""


class Record(BaseModel):
    """Base of all records: immutable, no unknown fields, finite or explicitly missing numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Status(StrEnum):
    """How a trial ended. Never mixed with its reward."""

    COMPLETED = "completed"
    """The agent ended by itself with exit code 0."""
    AGENT_ERROR = "agent_error"
    """The agent ended by itself with another exit code, or was ended for what it did (disk, workspace caps)."""
    TIMEOUT = "timeout"
    """The deadline of the task or the budget passed; verified all the same."""
    BUDGET_EXCEEDED = "budget_exceeded"
    """The gateway refused a call because the budget was spent; verified all the same."""
    INFRA_INVALID = "infra_invalid"
    """Our side failed (image, engine, provider, verifier): says nothing about the configuration."""
    CANCELLED = "cancelled"
    """The user stopped the run."""

    @property
    def finished(self) -> bool:
        """Whether the ending is the configuration's own doing; an unfinished trial runs again on resume."""
        return self not in (Status.INFRA_INVALID, Status.CANCELLED)


# --- tasks -----------------------------------------------------------------------------------------------------------


class Environment(Record):
    """What a sandbox of a task is made of (`[environment]` of a Harbor task)."""

    context: Path | None = None
    """Folder with a Dockerfile, the build context. None: `image` must be pulled or be local."""
    image: str | None = None
    """Prebuilt image (`docker_image`). A local image of that tag counts; else it is pulled; else `context` is built."""
    build_args: dict[str, str] = {}
    """Build arguments of the dataset, such as the base image of this machine."""
    build_timeout_seconds: float = 600.0
    cpus: float | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    env: dict[str, str] = {}
    """Environment variables, `${VAR}` and `${VAR:-default}` already resolved from the host."""
    workdir: str | None = None
    """Working directory; None means the image's WORKDIR."""
    network: Literal["public", "no-network", "allowlist"] = "public"
    """What the task declares; `sandbox.network=task` obeys it, the other modes override it."""
    allowed_hosts: tuple[str, ...] = ()
    healthcheck: Healthcheck | None = None
    digest: str = ""
    """Digest of everything above and of every file in `context`: part of a trial's key, known without Docker."""


class Healthcheck(Record):
    """Command that must succeed before the agent starts (`[environment.healthcheck]`)."""

    command: str
    interval_seconds: float = 5.0
    timeout_seconds: float = 30.0
    start_period_seconds: float = 0.0
    retries: int = 3


class VerifierSpec(Record):
    """How a task is judged (`[verifier]` of a Harbor task)."""

    tests: Path | None = None
    """Folder uploaded to `/tests` after the rollout; None when the verifier's image carries its own tests."""
    timeout_seconds: float = 600.0
    env: dict[str, str] = {}
    user: str | None = None
    mode: Literal["shared", "separate"] = "shared"
    """shared: the machine the agent left is judged, from a snapshot. separate: only `artifacts` travel."""
    environment: Environment | None = None
    """Environment of a separate verifier; None means a fresh copy of the task's."""
    collect: tuple[str, ...] = ()
    """Run in the agent's container after the rollout, before anything is taken out (`[[verifier.collect]]`)."""
    keep_processes: bool = False
    """Judge a service that the agent left running, in its live container. Weaker, so flagged on the record."""
    cases: Path | None = None
    """Differential testing: its file of cases, no line of which the candidate ever sees."""
    install: str = ""
    """Differential testing: what a shell runs in a workspace to install the tool in it."""
    reference: dict[str, float] = {}
    """Differential testing: figures of the human-written tool, which the verdict has among its components."""


class Task(Record):
    """One problem: instruction, environment, verifier data, strata."""

    name: str
    dataset: str
    directory: Path
    """Where it lies on this machine; no part of its identity."""
    digest: str = ""
    """Of every file of the task that can change a result; part of a trial's key."""
    tier: str = "unknown"
    category: str = "unknown"
    language: str = "unknown"
    instruction: str = ""
    environment: Environment = Environment()
    agent_timeout_seconds: float | None = None
    """The task's own limit on the rollout; the smaller of this and the budget's wall clock holds."""
    agent_user: str | None = None
    """User of the rollout; None means the image's. A non-root user gets no capability at all."""
    verifier: VerifierSpec = VerifierSpec()
    artifacts: tuple[str, ...] = ()
    """Container paths that travel to a separate verifier, each to its own path; `/logs/artifacts` always does."""
    solution: Path | None = None
    """Folder with `solve.sh`; only `oracle` ever gets it."""
    solution_env: dict[str, str] = {}
    refused: str | None = None
    """Why this task cannot be run here (several containers, a GPU, a malformed file). Counted in the plan."""
    flags: tuple[str, ...] = ()
    """What is wrong with it as published and mended here; among the flags of every trial's record."""


# --- configuration that is data --------------------------------------------------------------------------------------


class Rates(Record):
    """USD per **million** tokens. A rate that is None was not published: a cost that needs it is missing, not 0."""

    input: float | None = None
    """Fresh input: X - A - H."""
    output: float | None = None
    cache_creation: float | None = None
    cache_hit: float | None = None


class PriceTier(Rates):
    """What a call costs whose input is longer."""

    above_input_tokens: int
    """Of calls with more input than this (X, caches included), every token is charged at these rates."""


class Prices(Rates):
    """Rates of one model, and those of its long calls."""

    tiers: tuple[PriceTier, ...] = ()
    """Ascending. A rate that a tier lacks is missing there; that of shorter calls does not stand in for it."""
    source: str = ""
    """Where the rates come from."""
    date: str = ""
    """When they were read, ISO date."""

    @field_validator("tiers")
    @classmethod
    def _ascend(cls, tiers: tuple[PriceTier, ...]) -> tuple[PriceTier, ...]:
        bounds = [tier.above_input_tokens for tier in tiers]
        if bounds != sorted(set(bounds)):
            raise ValueError("above_input_tokens must rise from tier to tier")
        return tiers

    @property
    def known(self) -> bool:
        """Whether there is a price for input and for output, whatever a call's length."""
        return all(rates.input is not None and rates.output is not None for rates in (self, *self.tiers))


def name_told(model_id: str) -> str:
    """The last part of a litellm id: what the provider itself calls the model."""
    return model_id.rpartition("/")[2]


BOUNDS: Final = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens", "n"})
"""Parameters by which a model writes more or less."""


class Model(Record):
    """An LLM endpoint with prices. Holds the *name* of the variable with the key, never the key."""

    name: str
    """The word typed on the command line; what leaderboards show."""
    backend: Literal["provider", "scripted", "cassette", "none"] = "provider"
    """provider: litellm. scripted: a deterministic policy, no language model. cassette: a recorded run, replayed.
    none: for agents that use no model."""
    id: str = ""
    """litellm model id, `provider/model`."""
    api_key_env: str | None = None
    api_base: str | None = None
    policy: Path | None = None
    """Scripted only: YAML file of turns per task."""
    path: Path | None = None
    """Cassette only: folder that a run with `record=` wrote."""
    mismatch: Literal["fail", "nearest"] = "fail"
    """Cassette only: what a request gets that was not recorded: an error, or the answer to the most similar one."""
    recording: str = ""
    """Cassette only: digest of all below `path`, filled in at the door, so that another recording is another trial."""
    context_window: int | None = None
    """Tokens; told to the agent so that it compacts at the right time."""
    max_output_tokens: int | None = None
    stream: Literal["collect", "through"] = "collect"
    """What becomes of a call that its agent wants streamed. collect: the provider is asked for the whole answer, and a
    failure on its way is tried again. through: the provider streams, and its events reach the agent as they come, where
    both speak the same API; any other call is collected, and says `stream` in `dropped`."""
    params: dict[str, Any] = {}
    """Sent with each call as it is (temperature, reasoning effort, ...); no bounds on output, which the gateway
    sets by what a budget has left."""
    prices: Prices = Prices()

    @field_validator("params")
    @classmethod
    def _leave_the_bounds(cls, params: dict[str, Any]) -> dict[str, Any]:
        if named := sorted(params.keys() & BOUNDS):
            raise ValueError(
                f"{', '.join(named)} would undo what a budget allows; set model.max_output_tokens"
            )
        return params

    @property
    def scripted(self) -> bool:
        """Whether this is no language model at all; shown wherever the model is shown."""
        return self.backend == "scripted"

    @property
    def replayed(self) -> bool:
        """Whether its answers are those of an earlier run; shown wherever the model is shown."""
        return self.backend == "cassette"

    @property
    def told(self) -> str:
        """What agents are told it is called: its provider's word, from which they know its window and its tools."""
        return name_told(self.id)


class SpendLimits(Record):
    """What may be spent. None means no limit of that kind."""

    usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    turns: int | None = None
    """Model calls that are answered."""
    wall_seconds: float | None = None
    """Of a trial's rollout, or since a sweep began."""


class Budget(SpendLimits):
    """What one trial may spend."""

    name: str = "default"


class Judge(Record):
    """A language model that verifiers ask what no rule can say, and what its answers may cost."""

    model: Model
    usd: float = Field(gt=0)
    """USD that the questions of one trial may cost; apart from the agent's budget."""
    at_once: int = Field(default=4, ge=1)
    """Questions of one trial under way at once."""

    @field_validator("model")
    @classmethod
    def _is_a_language_model(cls, model: Model) -> Model:
        if model.backend != "provider":
            raise ValueError("a judge is a provider's model: no script, no recording, not none")
        return model


class CallLimit(Record):
    """How fast a provider may be called; a call waits for its turn. None means no limit."""

    concurrency: int | None = Field(default=None, ge=1)
    """Calls at a provider at once; one that waits before its next try is not there."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Requests begun in any 60 s, repetitions included."""


class CallLimits(CallLimit):
    """Limits of the calls of all trials of a run together, and of each provider's."""

    providers: dict[str, CallLimit] = {}
    """First part of a model's id (`openai`, `zai`) -> limit of all models of that provider."""


class Endpoint(Record):
    """What an agent is told about its model, as seen from inside its sandbox."""

    base_url: str
    """Origin without `/v1`."""
    key: str
    """The trial's own key: opens nothing but this trial, and is dead when it ends."""
    model: str
    context_window: int | None = None
    max_output_tokens: int | None = None


class TierScoring(Record):
    """What AMS needs of one tier (AgentMeter Table 1)."""

    budgets: tuple[float, ...] = Field(min_length=1)
    """B_g: USD per trial, ascending."""
    tau: float = Field(ge=0)
    """τ_g: USD above which a failure counts as expensive."""
    weight: float = Field(default=1.0, ge=0)
    """0 leaves the tier out of AMS."""

    @field_validator("budgets")
    @classmethod
    def _rising(cls, budgets: tuple[float, ...]) -> tuple[float, ...]:
        if list(budgets) != sorted(budgets) or budgets[0] < 0:
            raise ValueError("budgets rise, from 0 on")
        return budgets


class Scoring(Record):
    """How records become scores. No part of a trial's key: changing it never re-runs a trial."""

    name: str
    alpha: float = Field(default=0.6, ge=0, le=1)
    tiers: dict[str, TierScoring]
    labels: dict[str, str] = {}
    """Task -> tier, which a tiers file fixed (`job=calibrate`); empty: each task's own tier."""
    calibrated: str = ""
    """Tiers file that `tiers` and `labels` are from, `name@digest`; empty when there is none."""
    attempts: str = Field(default="latest_completed", pattern=r"^(latest_completed|mean|pass@[1-9][0-9]*)$")
    """Which attempts of one (cell, task) count (AgentMeter section 3.5): the latest valid one, all of them equally, or
    `pass@k`: the best of k, at the price of k."""
    resamples: int = Field(default=2000, ge=1)
    """Bootstrap resamples over tasks."""
    confidence: float = Field(default=0.95, gt=0, lt=1)
    seed: int = Field(default=0, ge=0)

    @property
    def title(self) -> str:
        """Its name, with the tiers file if there is one."""
        file, _, digest = self.calibrated.partition("@")
        return f"{self.name} {file}@{digest[:8]}" if file else self.name

    @field_validator("tiers")
    @classmethod
    def _some_tier_counts(cls, tiers: dict[str, TierScoring]) -> dict[str, TierScoring]:
        if not any(tier.weight for tier in tiers.values()):
            raise ValueError("no tier has a weight above 0, so there would be no score")
        return tiers


# --- sandboxes -------------------------------------------------------------------------------------------------------


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
    ended: Literal["exited", "deadline", "disk", "cancelled", "lost"] = "exited"
    """deadline: killed at the time limit. disk: killed for filling its disk. lost: the container died under it."""
    output_bytes: int = 0
    """What it really wrote to both streams, cap or no cap."""


class Counted(Record):
    """What the kernel counted of a sandbox. None: nobody can tell."""

    unrouted: int | None = None
    """How often a command turned to an address that no way leads to."""
    memory_kills: int | None = None
    """Processes that were ended because the sandbox had no memory left."""


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
    """pypi: requirements file with hashes that pins the package and all beneath it. npm: `package-lock.json` that does;
    without one, or with one of another version, what the registry has that day lies beneath the package."""
    node: bool = False
    """npm: whether the agent needs the node runtime at run time (a native binary does not)."""


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
    runtime: bool = False
    """Mount the `python` runtime although no agent runs in it."""
    network: Literal["none", "open"] = "none"
    labels: dict[str, str] = {}


# --- what happened ---------------------------------------------------------------------------------------------------


class Usage(Record):
    """Token counts of one or more model calls (AgentMeter section 3.2). A count that a response lacks is 0."""

    input_tokens: int = 0
    """X: all input, caches included."""
    cache_creation_tokens: int = 0
    """A: part of X."""
    cache_hit_tokens: int = 0
    """H: part of X."""
    output_tokens: int = 0
    """Y: reasoning included."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cache_creation_tokens=self.cache_creation_tokens + other.cache_creation_tokens,
            cache_hit_tokens=self.cache_hit_tokens + other.cache_hit_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


class OwnUsage(Record):
    """Token counts as an agent gives them, or a difference between such counts; None is what it does not say."""

    input_tokens: int | None = None
    cache_creation_tokens: int | None = None
    cache_hit_tokens: int | None = None
    output_tokens: int | None = None

    def beyond(self, counted: Usage) -> OwnUsage:
        """Count by count what it says beyond `counted`; negative where it says less."""
        return OwnUsage(
            **{name: said - getattr(counted, name) for name, said in self if said is not None},
        )


class ErrorInfo(Record):
    """A failure as a value."""

    type: str
    """Class name of the exception, or a short kind such as `disk`."""
    message: str
    cause: str | None = None
    """The exception beneath, as `Type: message`."""
    phase: str = ""
    """environment, agent, collect, verify, gateway."""

    @classmethod
    def of(cls, error: BaseException, phase: str = "") -> ErrorInfo:
        """The record of an exception; long messages keep their end, where builds say what went wrong."""
        beneath = error.__cause__ or error.__context__
        return cls(
            type=type(error).__name__,
            message=str(error)[-4000:],
            cause=f"{type(beneath).__name__}: {beneath}"[:1000] if beneath else None,
            phase=phase,
        )


HUNG_UP = 499
"""Status on the ledger of a call whose agent did not wait for the answer."""


class ModelCall(Record):
    """One line of the ledger: one call that the agent made, answered or not."""

    index: int
    """0, 1, 2.. in the order in which calls arrived at the trial's socket."""
    api: Literal["chat", "responses", "messages"]
    model: str
    """What was asked of the provider (litellm id), not what the agent named."""
    scripted: bool = False
    replayed: bool = False
    started_at: datetime
    latency_seconds: float
    """From the request's arrival to the finished answer, retries and waits included."""
    waited_seconds: float = 0.0
    """Of the latency, what it waited for the limits on calls."""
    streamed: bool = False
    """Whether the agent asked for SSE."""
    attempts: int = 1
    """Requests to the provider, those that failed and those that litellm repeats unseen included."""
    lost: int = 0
    """Of these, how many were sent and have no whole answer, cut off by the provider, the agent or the deadline: they
    may have been charged, which nobody knows. The caps count the most that it can be."""
    request: dict[str, Any]
    """The agent's body as it came."""
    dropped: tuple[str, ...] = ()
    """Fields and tools (`tools:<type>`) of it that were not sent on; also marks on its parts (`is_error`) and earlier
    thoughts (`reasoning items`) that the provider's own API has no place for; and `stream` for an answer that was to
    pass through and was collected."""
    response: dict[str, Any] | None = None
    """The finished object as it was answered; None if there was none, or not to its end."""
    status_code: int
    """What the agent got."""
    usage: Usage | None = None
    """Of an answer that broke off on its way to the agent: what the provider had counted until then."""
    cost_usd: float | None = None
    """Of `usage`; None when the model has no price or there is no usage."""
    refused: str | None = None
    """Budget that refused it: usd, input_tokens, output_tokens, turns, deadline."""
    error: ErrorInfo | None = None

    @property
    def cut(self) -> bool:
        """Whether some of it may have been charged that is not in `cost_usd`."""
        return self.lost > 0


class ToolCall(Record):
    """A tool call that the model made, read from an answered call."""

    id: str
    name: str
    arguments: str
    """As the model wrote them: JSON text, or free text for freeform tools."""
    result: str | None = None
    """What it gave back, where an agent in our process says so; else a later request repeats it."""


class Verdict(Record):
    """What the verifier said of the final workspace."""

    reward: float | None
    """In [0, 1]; None when it could not judge, and `error` says why."""
    components: dict[str, float] = {}
    """Every key of the verifier's `reward.json`."""
    exit_code: int | None = None
    """Of the verifier's script; recorded, and no part of the reward (Harbor's rule)."""
    mode: Literal["shared", "separate", "live"] = "shared"
    image: str = ""
    """Id of the image that the judge ran in: the task's, or the snapshot of the agent's machine."""
    output: str = ""
    """End of what the verifier printed."""
    error: ErrorInfo | None = None
    seconds: float = 0.0


class PhaseSeconds(Record):
    """Wall seconds of each phase of one trial; `environment` includes waiting for a shared image build."""

    environment: float = 0.0
    agent: float = 0.0
    waiting: float = 0.0
    """Of `agent`, what a model call waited for the limits on calls; its deadline is that much later."""
    collect: float = 0.0
    verify: float = 0.0


class Retry(Record):
    """An earlier try at the same trial that our side spoiled, with what it spent."""

    reason: ErrorInfo
    usage: Usage = Usage()
    cost_usd: float | None = 0.0
    judge_usd: float | None = 0.0
    turns: int = 0
    lost: int = 0
    """Of its calls and its judge's, as `ModelCall.lost`: what they cost is not known."""
    wall_seconds: float = 0.0


class EgressAttempt(Record):
    """What a rollout asked of the network beyond its model: a request at the proxy, a lookup of a name, or connections
    and packets to bare addresses, which lead nowhere.
    """

    host: str
    """Name or address as asked for; `(others)` stands for all beyond the first 256, `(unreadable)` for lookups of what
    is no host's name, `(addresses)` for all bare addresses, of which only the number is known."""
    port: int
    """53 of a lookup, 0 of what is not known."""
    way: Literal["proxy", "dns", "direct"] = "proxy"
    allowed: bool
    """Whether it may be reached through the proxy; a lookup is told in any case that there is no such name."""
    count: int
    """Requests, or questions (one lookup asks two, for both kinds of address); fewer than there were in a flood."""


class TrialName(Record):
    """Which trial it is: its cell, task and attempt, and what tables group by."""

    key: str
    agent: str
    model: str
    dataset: str
    budget: str
    task: str
    attempt: int
    tier: str
    category: str
    language: str
    scripted: bool = False
    """The model is a script, not a language model."""
    replayed: bool = False
    """The model's answers are those of an earlier run."""


class PlannedRow(TrialName):
    """One planned trial in `sweep.json`: the denominator, whether it ever ran or not."""

    refused: str | None = None
    """Why its task cannot be run here; such a trial has no record and contributes zero."""


class TrialRecord(TrialName):
    """One trial: one (cell, task, attempt). Written once, atomically; the truth that everything else projects."""

    schema_version: Literal[1] = SCHEMA_VERSION
    status: Status
    reward: float | None = None
    passed: bool | None = None
    """reward >= the dataset's `pass_threshold`; None when there is no reward."""
    verdict: Verdict | None = None
    error: ErrorInfo | None = None
    flags: tuple[str, ...] = ()
    """What a reader must know: no_model_call, empty_rollout (it used no tool, or changed nothing and said nothing),
    agent_usage_differs, agent_usage_unreadable, image_built_instead_of_pulled, verified_live, forged_results (a hidden
    suite's judge was tampered with), out_of_memory (the kernel ended a process of the rollout's for want of it), ..."""
    agent_exit_code: int | None = None

    usage: Usage = Usage()
    """All model calls made for it, those of retries included."""
    agent_usage: OwnUsage | None = None
    """What the agent itself says of its tokens in the last try; None if it says nothing, or nothing readable."""
    usage_difference: OwnUsage | None = None
    """`agent_usage` less what the gateway counted in the same try, which is the truth: 0 where both agree."""
    cost_usd: float | None = None
    """All model calls made for it, retries included; None when any price is missing."""
    judge_usd: float | None = 0.0
    """What the verifier's judge model cost, retries included: no part of `cost_usd`. None as there."""
    turns: int = 0
    """U: model calls that answered."""
    interactions: int = 0
    """I: tool calls the model made."""
    tool_calls: dict[str, int] = {}
    """Tool name -> calls."""
    tool_kinds: tuple[str, ...] = ()
    """Kind of each tool call in their order, by the agent's own table (`agent.tools`)."""
    tool_phases: tuple[str, ...] = ()
    """Phase of each tool call in their order (`metrics.terminal.phase`)."""
    programs: tuple[str, ...] = ()
    """What the commands ran that the model gave to a terminal, in their order (`metrics.terminal.programs`)."""
    own_finish: bool | None = None
    """Whether the agent ended its work itself; None without a model. See `runner.behaviour`."""

    started_at: datetime
    finished_at: datetime
    wall_seconds: float
    seconds: PhaseSeconds = PhaseSeconds()
    retries: tuple[Retry, ...] = ()
    egress: tuple[EgressAttempt, ...] = ()
    """Of the last try; empty also where the sandbox had no proxy (`sandbox.network=open`, agents without a model)."""
    workspace_files: int | None = None
    workspace_lines: int | None = None
    digests: dict[str, str] = {}
    """What ran: task, image, verifier_image, bundle:<name>, agent, model, prices, budget, assay."""


Environment.model_rebuild()
Build.model_rebuild()
