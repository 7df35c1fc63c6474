"""ATIF 1.8 as strict models, which reject everything that the format does not allow."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Json = dict[str, Any]


class Strict(BaseModel):
    """A model that allows no unknown key, no coercion, and no null in place of an absent key."""

    model_config = ConfigDict(extra="forbid", strict=True)
    extra: Json = {}


class Source(Strict):
    media_type: str
    path: str
    duration_sec: float = 0.0


class Part(Strict):
    type: Literal["text", "image", "audio"]
    text: str = ""
    source: Source = Field(default=Source(media_type="", path=""))


class SubagentReference(Strict):
    trajectory_id: str = ""
    trajectory_path: str = ""
    session_id: str = ""


class ToolCall(Strict):
    tool_call_id: str
    function_name: str
    arguments: Json


class Result(Strict):
    source_call_id: str = ""
    content: str | list[Part] = ""
    subagent_trajectory_ref: list[SubagentReference] = []


class Observation(Strict):
    results: list[Result]


class Metrics(Strict):
    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)
    cached_tokens: int = Field(default=0, ge=0)
    cost_usd: float = Field(default=0.0, ge=0)
    prompt_token_ids: list[int] = []
    completion_token_ids: list[int] = []
    logprobs: list[float] = []

    @model_validator(mode="after")
    def _cached_are_part_of_the_prompt(self) -> Self:
        assert self.cached_tokens <= self.prompt_tokens
        return self


class Step(Strict):
    step_id: int
    timestamp: str = "2026-01-01T00:00:00Z"
    source: Literal["system", "user", "agent"]
    message: str | list[Part]
    model_name: str = ""
    reasoning_effort: str | float = ""
    reasoning_content: str = ""
    tool_calls: list[ToolCall] = []
    metrics: Metrics = Metrics()
    observation: Observation = Observation(results=[])
    is_copied_context: bool = False
    llm_call_count: int = Field(default=1, ge=0)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        assert datetime.fromisoformat(self.timestamp).tzinfo
        agents = {"model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics"}
        assert self.source == "agent" or not agents & self.model_fields_set
        assert self.llm_call_count or not {"metrics", "reasoning_content"} & self.model_fields_set
        ids = [call.tool_call_id for call in self.tool_calls]
        assert len(ids) == len(set(ids))
        assert {result.source_call_id for result in self.observation.results} <= {*ids, ""}
        return self


class Agent(Strict):
    name: str
    version: str
    model_name: str = ""
    tool_definitions: list[Json] = []


class FinalMetrics(Strict):
    total_prompt_tokens: int = Field(default=0, ge=0)
    total_completion_tokens: int = Field(default=0, ge=0)
    total_cached_tokens: int = Field(default=0, ge=0)
    total_cost_usd: float = Field(default=0.0, ge=0)
    total_steps: int


class Trajectory(Strict):
    """The whole document."""

    schema_version: Literal["ATIF-v1.8"]
    session_id: str = ""
    trajectory_id: str = ""
    agent: Agent
    steps: list[Step] = Field(min_length=1)
    notes: str = ""
    final_metrics: FinalMetrics
    continued_trajectory_ref: str = ""
    subagent_trajectories: list[Trajectory] = []

    @model_validator(mode="after")
    def _counted(self) -> Self:
        assert [step.step_id for step in self.steps] == list(range(1, len(self.steps) + 1))
        assert self.final_metrics.total_steps == len(self.steps)
        assert self.final_metrics.total_prompt_tokens == sum(
            step.metrics.prompt_tokens for step in self.steps
        )
        return self
