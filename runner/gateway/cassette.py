"""Cassettes: the model calls of a run, replayed through real sandboxes at no cost.

A cassette is a folder with one file per trial, its tape: `<cell>/<task>/<attempt>.jsonl`. A tape has the answered calls
of the trial's ledger in their order, and therefore contains no key. `record=DIR` on any run writes one, also for trials
that finished earlier. On replay, each request gets the first unused answer whose request has the same digest, so an
agent's parallel calls may arrive in another order. Agents in the runner's process share the answers to some questions
(`project_setup.agent.guidelines.once`): those calls follow a trial's own, so that each trial can be replayed alone.

Requests are compared as they would be sent on (`Api.outbound`), without the parts that differ from run to run:
`VOLATILE_FIELDS`, and matches of `VOLATILE` in texts. Digests are computed on replay, so that a better normalisation
also serves cassettes that exist already.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from runner.errors import ConfigError
from runner.files import write_atomically
from runner.gateway.api import Api, Json
from runner.gateway.provider import Reply
from runner.gateway.request_shapes import RequestError
from runner.records import CELL_SEPARATOR, ErrorInfo, Model, ModelCall, provider_name
from runner.records.trial_files import LEDGER, SHARED

if TYPE_CHECKING:
    from runner.gateway.transport import Flight

MISMATCH = "CassetteMismatch"
FORBIDDEN = 403
"""Status of a mismatch. No client retries it, and the trial counts as spoiled by the harness."""
VOLATILE_FIELDS = frozenset({"max_output_tokens", "max_tokens", "metadata", "prompt_cache_key", "user"})
"""Top-level fields left out of the comparison: bounds that depend on the budget, and names of the agent's session."""
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_UNIT = r"(?:ns|us|µs|ms|s|sec|secs|seconds?|m|min|minutes?)"
VOLATILE = tuple(
    (re.compile(pattern), name)
    for name, pattern in {
        "[uuid]": r"(?<![0-9a-fA-F])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9a-fA-F])",
        "[key]": r"(?<![\w-])[\w-]{43}(?![\w-])",  # the trial's key, in an agent's environment
        "[hex]": r"(?<![\w-])[0-9a-f]{12,}(?![\w-])",  # host name of a container, digests
        "[date]": rf"(?<!\d)\d{{4}}-\d\d-\d\d(?!\d)|(?:{_DAY},? +)?{_MONTH} +\d\d?(?:,? +\d{{4}})?(?!\d)",
        "[time]": r"[T ]?(?<!\d)\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?: ?(?:Z|UTC|[AP]M|[+-]\d\d:?\d\d))?(?: \d{4})?(?!\d)",
        "[seconds]": rf"(?<![\w.])(?:\d+m)?\d+(?:\.\d+)? ?{_UNIT}(?!\w)",
        "[chunk]": r"(?<=Chunk ID: )\w+",  # of codex's shell
    }.items()
)
"""Pattern of texts that differ from run to run, and the name that replaces them."""
DIGEST = "request_digest"
"""The one field of a request that was recorded as its digest alone."""
DIFF_LINES, DIFF_WIDTH = 40, 160


# --- writing and finding ----------------------------------------------------------------------------------------------


def tape(folder: Path, cell: str, task: str, attempt: int) -> Path:
    """Return the path of a trial's tape, whether it exists or not."""
    return folder / cell / re.sub(r"[^\w.-]", "_", task) / f"{attempt}.jsonl"


def write_tape(folder: Path, path: Path) -> None:
    """Write the tape of a trial's folder: its own answered calls in the order of arrival, then those that it shared.

    Writes nothing if the folder has no calls. Raises `OutputsError`.
    """
    ledgers = [ledger for name in (LEDGER, SHARED) if (ledger := folder / name).exists()]
    calls = [call for ledger in ledgers for call in sorted(_calls(ledger), key=lambda one: one.index)]
    answered = enumerate(call for call in calls if call.response is not None)
    numbered = (call.model_copy(update={"index": number}) for number, call in answered)
    if ledgers:
        lines = (call.model_dump_json(ensure_ascii=True) + "\n" for call in numbered)
        write_atomically(path, "".join(lines).encode())


def keep_digests(path: Path, api: Api, params: Json) -> None:
    """Replace each request on a tape by its digest, since a request may quote texts that must not be passed on.

    `params` are those of the model that will replay the tape. Raises `ConfigError` if it is not a tape.
    """
    calls = _calls(path)
    asked = (digest(lines(_sent_on(api, call.request, params))) for call in calls)
    kept = (
        call.model_copy(update={"request": {DIGEST: one}}) for call, one in zip(calls, asked, strict=True)
    )
    text = "".join(call.model_dump_json(ensure_ascii=True) + "\n" for call in kept)
    write_atomically(path, text.encode())


def find(model: Model, agent: str, dataset: str, task: str, attempt: int) -> Path:
    """Return the tape that a trial of this cassette model replays.

    Raises `ConfigError` unless exactly one cell in the cassette has one.
    """
    folder = _folder(model)
    tapes = (tape(place.parent, place.name, task, attempt) for place in (folder, *sorted(folder.iterdir())))
    found = [path for path in tapes if path.is_file() and _is_alike(path.parents[1].name, agent, dataset)]
    if not found:
        raise ConfigError(f"{folder} has no recording of {agent} on {task}, attempt {attempt}.")
    if len(found) > 1:
        names = ", ".join(path.parents[1].name for path in found)
        raise ConfigError(f"{folder} has recordings of several cells ({names}): let model.path end in one.")
    return found[0]


def recorded_model(path: Path) -> str:
    """Return the id of the model that a tape recorded. Raises `ConfigError` if the tape holds no call."""
    calls = _calls(path)
    if not calls:
        raise ConfigError(f"{path} is an empty recording.")
    return calls[0].model


def sealed(model: Model) -> Model:
    """Return the model with the digest of its cassette. Raises `ConfigError` if the cassette is empty."""
    folder = _folder(model)
    files = sorted(folder.rglob("*.jsonl"))
    if not files:
        raise ConfigError(
            f"model.path: there is no recording in {folder}; a run with record={folder} writes some."
        )
    content = "".join(
        f"{file.relative_to(folder)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n" for file in files
    )
    return model.model_copy(update={"recording": hashlib.sha256(content.encode()).hexdigest()})


def _folder(model: Model) -> Path:
    if model.path is None or not model.path.is_dir():
        raise ConfigError(f"model.path: {model.path} is not a folder; a run with record=DIR writes one.")
    return model.path


def _is_alike(cell: str, agent: str, dataset: str) -> bool:
    """Return whether a cell's name has this agent and dataset, with any model and budget."""
    found = [*cell.split(CELL_SEPARATOR), "", "", ""]
    return (found[0], found[2]) == (agent, dataset)


def _calls(path: Path) -> tuple[ModelCall, ...]:
    """Read the calls on a tape or ledger. Raises `ConfigError` if a line is not a call."""
    try:
        return tuple(map(ModelCall.model_validate_json, path.read_bytes().splitlines()))
    except ValidationError as error:
        raise ConfigError(f"{path} is not a recording: {error.errors()[0]['msg']}.") from error


# --- playing ----------------------------------------------------------------------------------------------------------


class Cassette:
    """The player of one trial's tape, in the place of a `Provider`."""

    def __init__(self, path: Path, model: Model, beside: Cassette | None = None) -> None:
        """Read the tape, or share that of a player `beside` this one, which plays for another model of the trial.

        Raises `ConfigError`.
        """
        self._model = model
        self.left: list[ModelCall] = beside.left if beside else list(_calls(path))
        """Recorded calls that were not played."""
        self._lines_of_call: dict[int, list[str]] = {}
        self.model_name = provider_name(self.left[0].model) if self.left else model.provider_name
        """Name of the model that the recorded agent was given, since agents make different requests for different
        models."""

    async def close(self) -> None:
        """Do nothing: there are no clients to close."""

    async def call(self, api: Api, fields: Json, flight: Flight) -> Reply:
        """Return the recorded answer. `model.mismatch` decides for a request without one: fail, or play the nearest.

        The reply's error is then the difference between the two requests.
        """
        await flight.turn()
        asked = lines(fields)
        of_api = [call for call in self.left if call.api == api.name]
        same = next((call for call in of_api if self._digest(api, call) == digest(asked)), None)
        if same is not None:
            return self._play(same)
        if not of_api:
            return _refused(f"No recorded call to {api.path} is left for this request.")
        if self._model.mismatch == "fail":
            return _refused(_difference(of_api[0].index, self._lines(api, of_api[0]), asked))
        nearest = max(of_api, key=lambda call: _similarity(self._lines(api, call), asked))
        error = _mismatch(_difference(nearest.index, self._lines(api, nearest), asked))
        return self._play(nearest).model_copy(update={"error": error})

    def _play(self, call: ModelCall) -> Reply:
        self.left.remove(call)
        return Reply(response=call.response)

    def _digest(self, api: Api, call: ModelCall) -> str:
        return call.request.get(DIGEST) or digest(self._lines(api, call))

    def _lines(self, api: Api, call: ModelCall) -> list[str]:
        if DIGEST in call.request:
            return ["(recorded as a digest alone)"]
        if call.index not in self._lines_of_call:
            self._lines_of_call[call.index] = lines(_sent_on(api, call.request, self._model.params))
        return self._lines_of_call[call.index]


def _sent_on(api: Api, request: Json, params: Json) -> Json:
    """Return the fields of a recorded request that would be sent on; none if the request would be refused now."""
    try:
        return api.outbound(api.accept(request), params, None).fields
    except RequestError:
        return {}


def lines(fields: Json) -> list[str]:
    """Return a request without volatile parts, as lines of canonical JSON. Each line of a text is a line of its own."""
    stable = {name: _normalised(value) for name, value in fields.items() if name not in VOLATILE_FIELDS}
    return json.dumps(stable, indent=1, sort_keys=True, ensure_ascii=False).splitlines()


def digest(request: Sequence[str]) -> str:
    """Return the digest of a request's `lines`."""
    return hashlib.sha256("\n".join(request).encode(errors="replace")).hexdigest()


def _normalised(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _normalised(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_normalised(inner) for inner in value]
    if not isinstance(value, str):
        return value
    for pattern, name in VOLATILE:
        value = pattern.sub(name, value)
    rows = value.replace("\\n", "\n").split("\n")  # a text may hold JSON, whose newlines are escaped
    return rows if len(rows) > 1 else value


def _similarity(one: Sequence[str], other: Sequence[str]) -> float:
    from rapidfuzz.distance import Indel  # noqa: PLC0415 - only a mismatch needs it

    return Indel.normalized_similarity(one, other)


def _difference(index: int, recorded: Sequence[str], asked: Sequence[str]) -> str:
    """Describe the difference between a request and the recorded one for a person."""
    names = (f"recorded call {index} ({digest(recorded)[:12]})", f"this request ({digest(asked)[:12]})")
    changes = list(difflib.unified_diff(recorded, asked, *names, lineterm="", n=1))
    first = [line[:DIFF_WIDTH] for line in changes[:DIFF_LINES]]
    more = [f"({len(changes) - DIFF_LINES} more lines)"] if len(changes) > DIFF_LINES else []
    return "\n".join(["The request is not the recorded one:", *first, *more])


def _mismatch(message: str) -> ErrorInfo:
    return ErrorInfo(type=MISMATCH, message=message, phase="gateway")


def _refused(message: str) -> Reply:
    return Reply(status_code=FORBIDDEN, error=_mismatch(message))
