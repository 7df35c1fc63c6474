"""Composed configurations become frozen cells and settings."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from omegaconf import DictConfig, OmegaConf
from pydantic import ValidationError

from runner.__main__ import main
from runner.cli import arguments, former_names
from runner.cli.compose import compose
from runner.cli.config import build, load, to_yaml
from runner.errors import ConfigError
from runner.records import AXES, Budget, BundleRecipe, Prices, Record
from runner.resources import ROOT
from runner.sweeps.cells import NO_MODEL, Sweep
from runner.sweeps.plan import make_plan

OutputOf = Callable[..., str]

PLAIN = ("agent=oracle", "dry_run=true")
NEEDED = {
    ("dataset", "harbor"): "dataset.root=tasks",
    ("dataset", "skillsbench"): "dataset.root=tasks",
    ("dataset", "skillsbench_without_skills"): "dataset.root=tasks",
    ("dataset", "terminal_bench_2"): "dataset.root=tasks",
    ("dataset", "nl2repo"): "dataset.root=tasks",
    ("dataset", "nl2repo_revealed"): "dataset.root=tasks",
    ("dataset", "nl2repo_paper"): "dataset.root=tasks",
    ("job", "environment"): "job.project={folder}",
    ("job", "make_nl2repo_task"): "job.package=x job.version=1.0.0",
    ("job", "spec_coverage"): "job.path={folder} job.document={folder}/1.jsonl",
    ("job", "spec_inventory"): "job.path={folder}",
    ("model", "cassette"): "model.path={folder}",
    ("model", "openrouter"): "agent=codex ++model.prices.input=3 ++model.prices.output=15",
    ("model", "openai_compatible"): (
        "agent=codex model.base_url=http://127.0.0.1:9 model.id=openai_compatible ++model.prices=free "
        "model.context_window=32000"
    ),
    ("job", "import_cli_tool_bench"): "job.root={folder} job.references={folder} job.path={folder}",
    ("job", "import_terminal_bench"): "job.root={folder} job.path={folder}",
    ("job", "import_da_code"): "job.root={folder} job.path={folder}",
    ("job", "make_cli_task"): "job.path={folder}",
    ("job", "curate_cli_tools"): "job.path={folder}",
}
"""Option -> the values that its user must give; `folder` holds a recording."""
OWN_TESTS = {
    *("agentmeter_alpha", "agentmeter_benchmark90", "agentmeter_core30"),
    *("nl2repo", "nl2repo_reveal", "nl2repo_rounds"),
}
"""Presets that need a sweep or tasks of the user's: tests/cli/test_presets.py and test_scorings.py."""


@pytest.fixture
def output_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> OutputOf:
    """Run `python -m runner WORD...` in an empty folder and return its output."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> str:
        code = main(list(words))
        out, err = capsys.readouterr()
        assert code == 0, err
        return out

    return run


@cache
def composed(*overrides: str) -> DictConfig:
    """One job, as Hydra hands it over; `load` only reads it."""
    (config,) = compose(overrides)
    return config


def loaded(*jobs: tuple[str, ...]) -> Sweep:
    return load([composed(*job) for job in jobs])


@pytest.mark.parametrize(
    ("group", "option"),
    [
        (group, option)
        for group in arguments.groups()
        if group not in ("experiment", "agent_model")
        for option in arguments.options(group)
    ],
)
def test_every_option_composes_and_validates(group: str, option: str, tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").touch()
    needed = NEEDED.get((group, option), "fresh=false").format(folder=tmp_path)
    keyless = "fresh=false" if group == "job" else "dry_run=true"
    sweep = loaded((f"{group}={option}", keyless, *needed.split()))
    part = getattr(sweep.cells[0] if group in AXES else sweep.settings, group)
    named = getattr(part, "name", option)
    assert named in (option, NO_MODEL.name)


def numbers(kind: Any) -> Iterator[tuple[type[Record], str]]:
    """Every number that can be configured in `kind`, or in what its fields hold."""
    for part in (kind, *get_args(kind)):
        if part is not kind:
            yield from numbers(part)
        elif isinstance(part, type) and issubclass(part, Record):
            for name, field in part.model_fields.items():
                if {int, float} & {field.annotation, *get_args(field.annotation)}:
                    yield part, name
                yield from numbers(field.annotation)


def configurable() -> set[tuple[type[Record], str]]:
    """Return each class that a file in `conf/` names, and those of the keys beside the groups, with its keys."""
    files = [file for group in arguments.groups() for file in arguments.options(group).values()]
    named = {name for file in files for name in re.findall(r"_target_: (\S+)", file.read_text())}
    kinds = [
        arguments.target(name, "conf")
        for name in {*named, *arguments.DATA.values(), *arguments.NODES.values()}
    ]
    return {found for kind in kinds for found in numbers(kind)}


@pytest.mark.parametrize(("kind", "name"), sorted(configurable(), key=str))
def test_a_number_below_what_it_can_be_is_refused_where_it_is_typed(kind: type[Record], name: str) -> None:
    """`executor.workers=-1` was a trace after the sandboxes were made, and `budget.usd=-1` a plan of -9 USD."""
    with pytest.raises(ValidationError) as refused:
        kind.model_validate({name: -1})
    assert (name,) in [fault["loc"][:1] for fault in refused.value.errors()]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("name='a b'", r"name: it takes letters, digits and \. _ \+ -, .* \(got 'a b'\)\."),
        ("scoring.attempts=best", r"scoring\.attempts: must be latest_completed, mean, or pass@k"),
        (
            "dataset.include=logs-to-csv",
            r"dataset\.include: a list is needed: dataset\.include=\[logs-to-csv\]",
        ),
        ("sandbox.allowed_hosts=[a.example]", r"^sandbox: allowed_hosts needs network=allowlist\.$"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_in_words_of_ours(word: str, message: str) -> None:
    """Earlier messages held patterns, Python types and the whole content of the group."""
    with pytest.raises(ConfigError, match=message):
        loaded(("agent=oracle", word))


@pytest.mark.parametrize("job", ["clean", "setup", "track"])
def test_a_dry_run_of_a_job_that_has_no_plan_is_refused(tmp_path: Path, job: str) -> None:
    """`job=clean dry_run=true` removed containers."""
    with pytest.raises(ConfigError, match="leave it out"):
        loaded((f"job={job}", "dry_run=true", f"outputs={tmp_path}"))


@pytest.mark.parametrize("job", sorted(arguments.options("job")))
def test_every_job_says_what_must_be_known_of_it_beforehand(job: str) -> None:
    """Two jobs that take no scoring used to end in a traceback when they were given two."""
    kind = arguments.target(
        arguments.options("job")[job].read_text().split("_target_: ")[1].split()[0], "job"
    )
    assert {type(getattr(kind, name)) for name in ("needs_keys", "several_scorings", "plans")} == {bool}


@pytest.mark.parametrize("experiment", sorted(arguments.options("experiment").keys() - OWN_TESTS))
def test_every_preset_plans(output_of: OutputOf, experiment: str) -> None:
    assert "trials planned" in output_of(f"experiment={experiment}", "dry_run=true", "outputs=outputs")


def test_a_cell_holds_what_was_chosen() -> None:
    (cell,) = loaded(("agent=codex", "model=scripted_hasty", "budget=tight", "attempts=3")).cells
    assert cell.name == "codex·scripted_hasty·quickstart·tight"
    assert (cell.budget.usd, cell.attempts, cell.model.scripted) == (0.25, 3, True)


def test_agents_without_a_model_do_not_multiply_with_models() -> None:
    agents, models = ("oracle", "codex"), ("scripted_careful", "scripted_hasty")
    sweep = loaded(*((f"agent={agent}", f"model={model}") for agent in agents for model in models))
    assert [cell.name.split("·")[:2] for cell in sweep.cells] == [
        ["oracle", "none"],
        ["codex", "scripted_careful"],
        ["codex", "scripted_hasty"],
    ]
    assert sweep.cells[0].model == NO_MODEL
    assert len(sweep.composed) == 4


def test_long_names_cut_off_made_one_sweep_of_two() -> None:
    """The plan of the second replaced that of the first."""
    names = {
        loaded(("agent=oracle", f"++dataset.name={'d' * 130}", f"budget={budget}")).settings.name
        for budget in ("tight", "unlimited")
    }
    assert sorted(map(len, names)) == [120, 120]


def test_equal_parts_are_one_object() -> None:
    """So that a dataset shared by fifty cells is read once."""
    first, second = loaded(("agent=oracle",), ("agent=nop",)).cells
    assert first.dataset is second.dataset


@pytest.mark.parametrize("key", ["fresh=true", "tracker.experiment=x", "executor.retries=0"])
def test_what_the_whole_sweep_shares_cannot_be_swept(key: str) -> None:
    with pytest.raises(
        ConfigError, match=f"{key.partition('=')[0]} differs between cells.* agent, model, dataset"
    ):
        loaded(PLAIN, (*PLAIN, key))


def test_cells_that_differ_in_scoring_alone_are_one_cell_with_several_scorings() -> None:
    jobs = [("agent=oracle", f"scoring.alpha={alpha}") for alpha in (0.6, 0.8, 0.6)]
    with pytest.raises(ConfigError, match=r"2 scorings were given, and this job takes one.* job=sensitivity"):
        loaded(*jobs)
    sweep = loaded(*((*job, "job=sensitivity") for job in jobs))
    assert [scoring.alpha for scoring in sweep.scorings] == [0.6, 0.8]
    assert len(sweep.cells) == 1


@pytest.mark.parametrize(
    ("typed", "asked"), [("++scoring.alpha=0.6", 1), ("scoring=agentmeter", 1), ("name=x", 0)]
)
def test_a_scoring_was_asked_for_only_if_it_was_typed(typed: str, asked: int) -> None:
    assert len(load([composed(*PLAIN)], [typed]).scorings) == asked


def test_two_different_cells_of_one_name_are_refused() -> None:
    """Their records could not be told apart."""
    with pytest.raises(ConfigError, match="two different cells are called oracle·none·quickstart·default"):
        loaded((*PLAIN, "attempts=1"), (*PLAIN, "attempts=2"))


def test_limits_that_are_swept_are_part_of_their_budgets_names() -> None:
    """`-m budget.turns=50,100`: cells that a leaderboard tells apart, called the same whichever others there are."""
    jobs = [(*PLAIN, f"budget.turns={turns}") for turns in (50, 100, "null", 50)]
    assert [cell.budget.name for cell in loaded(*jobs).cells] == [
        *("default_turns_50", "default_turns_100", "default_turns_none")
    ]
    assert [cell.budget.name for cell in loaded(*jobs[:2]).cells] == ["default_turns_50", "default_turns_100"]
    several = loaded(
        (*PLAIN, "budget.turns=5", "budget.usd=0.5"), (*PLAIN, "budget.turns=6"), (*PLAIN, "budget=tight")
    )
    names = ["default_usd_0.5_turns_5", "default_usd_2.0_turns_6", "tight"]
    assert sorted(cell.budget.name for cell in several.cells) == sorted(names)
    assert loaded(jobs[0]).cells[0].budget.name == "default"


def test_the_name_of_a_sweep_follows_from_its_cells() -> None:
    jobs = [(f"agent={agent}", "model=scripted_hasty", "budget=tight") for agent in ("oracle", "codex")]
    assert loaded(*jobs).settings.name == "oracle+codex__scripted_hasty__quickstart__tight"
    assert loaded((*PLAIN, "name=mine")).settings.name == "mine"
    for name in ("../x", "a/b", ".x", "-x", "x" * 121):
        with pytest.raises(ConfigError, match="name: "):
            loaded((*PLAIN, f"name={name}"))


def test_shipped_paths_start_at_the_shipped_data_and_typed_ones_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = loaded(PLAIN)
    assert plain.settings.outputs == tmp_path / "outputs"
    assert plain.cells[0].dataset.model_dump()["root"] == ROOT / "tasks/quickstart"
    typed = loaded((*PLAIN, "outputs=out", "dataset=harbor", "dataset.root=tasks"))
    assert typed.settings.outputs == tmp_path / "out"
    assert typed.cells[0].dataset.model_dump()["root"] == tmp_path / "tasks"


def test_a_missing_key_is_named_with_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    job = ("agent=codex", "++model.api_key_env=SOME_KEY", "model.name=m")
    with pytest.raises(ConfigError, match="model m needs its API key: export SOME_KEY="):
        loaded(job)
    assert loaded((*job, "dry_run=true")).settings.dry_run
    assert loaded((*job, "agent=oracle")).cells[0].model == NO_MODEL
    monkeypatch.setenv("SOME_KEY", "x")
    assert loaded(job).cells


def test_no_secret_reaches_what_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE", "sqlite://user:geheim@host")
    sweep = loaded((*PLAIN, "++agent.name=${oc.env:STORE}"))
    assert sweep.cells[0].agent.name == "sqlite://user:geheim@host"
    assert "geheim" not in to_yaml(sweep.composed)
    assert list(yaml.safe_load_all(to_yaml(sweep.composed))) == list(sweep.composed)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("dataset=harbor", r"dataset.root: it has no default. Add dataset.root=\.\.\."),
        ("name=${nothing}", "name: Interpolation key 'nothing' not found"),
        ("name=${oc.env:NOT_SET_ANYWHERE}", "name: .*NOT_SET_ANYWHERE"),
        ("~budget", "budget: nothing was chosen"),
        ("~tracker", "tracker: missing"),
        ("+experiment.seed=1", "chosen experiment has no effect.*@package _global_"),
        ("+agent_model.x=1", "chosen agent_model has no effect.*@package _global_"),
        ("+fooo=1", "fooo: unknown key"),
        ("attempts=0", "attempts: Input should be greater than or equal to 1"),
        ("attempts=null", "attempts: Input should be a valid integer"),
    ],
)
def test_what_cannot_be_resolved_is_named(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        loaded(("model=scripted_careful", "dry_run=true", override))


class Nested(Record):
    """A class with everything that YAML can describe."""

    lock: Path | None = None
    env: dict[str, str] = {}
    bundle: BundleRecipe | None = None
    prices: dict[str, Prices] = {}
    part: Budget = Budget()


def test_a_class_is_found_by_the_earlier_name_of_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Configuration of users names classes, and modules move."""
    monkeypatch.setattr(former_names, "MOVED", {"runner.earlier": "runner.records"})
    assert build({"_target_": "runner.earlier.Budget"}, "it") == Budget()


def nested(**values: object) -> dict[str, object]:
    return {"_target_": f"{__name__}.Nested", **values}


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (
            nested(locck=1),
            "it.locck: unknown key. Did you mean 'lock'? Valid: bundle, env, lock, part, prices",
        ),
        (nested(prices={"a": {"inpt": 1}}), "it.prices.a.inpt: unknown key. Did you mean 'input'?"),
        (nested(bundle={"name": "x"}), "it.bundle.kind: missing."),
        (nested(env={"A": [1]}), "it.env.A: Input should be a valid string (got [1])."),
        (nested(part={"_target_": "runner.records.Budget", "uds": 1}), "it.part.uds: unknown key."),
        ({"lock": "x"}, "it: `_target_` is missing"),
        ({"_target_": "runner.records.Nothing"}, "it._target_: cannot import 'runner.records.Nothing'"),
        ({"_target_": "nowhere.at.all"}, "it._target_: cannot import 'nowhere.at.all'"),
        ({"_target_": "Nested"}, "it._target_: cannot import 'Nested'"),
        ([1], "it: a mapping is needed, not [1]."),
    ],
)
def test_a_fault_is_reported_with_its_key(node: object, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        build(node, "it")
    assert message in str(refused.value)


def test_every_fault_of_a_node_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        build({"usd": "much", "turns": 1.5}, "budget", Budget)
    assert [line.split(":")[0] for line in str(refused.value).splitlines()] == ["budget.usd", "budget.turns"]


def test_build_fits_values_to_their_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    part = {"_target_": "runner.records.Budget", "usd": 1}
    built = build(nested(lock="x.lock", env={"A": 1, "B": "b"}, part=part), "it")
    assert (built.lock, built.env, built.part.usd) == (tmp_path / "x.lock", {"A": "1", "B": "b"}, 1.0)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A configuration folder of one's own, with the quirk of a pair and a preset that chooses the pair."""
    files = {
        "agent_model/codex_scripted_hasty.yaml": "# @package _global_\nagent:\n  env: {QUIRK: '1'}\n",
        "experiment/pair.yaml": (
            "# @package _global_\ndefaults:\n  - override /agent: codex\n  - override /model: scripted_hasty\n"
            "attempts: 7\n"
        ),
        "experiment/grid.yaml": (
            "# @package _global_\nname: grid\nhydra:\n  mode: MULTIRUN\n  sweeper:\n    params:\n"
            "      agent: codex,oracle\n      model: scripted_careful,scripted_hasty\n"
        ),
    }
    for name, text in files.items():
        (tmp_path / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / name).write_text(text)
    return tmp_path / "own"


@pytest.mark.parametrize(
    ("words", "quirk"),
    [
        (("agent=codex", "model=scripted_hasty"), True),
        (("experiment=pair",), True),
        (("experiment=pair", "model=scripted_careful"), False),
        (("agent=codex", "model=scripted_careful"), False),
    ],
)
def test_a_pairs_quirk_is_laid_over_that_pair_alone(
    output_of: OutputOf, own: Path, words: tuple[str, ...], *, quirk: bool
) -> None:
    config = OmegaConf.create(output_of("--config-dir", str(own), "--cfg", "job", *words))
    assert ("QUIRK" in config.agent.get("env", {})) is quirk
    assert config.attempts == (7 if "experiment=pair" in words else 1)


@pytest.mark.parametrize(
    ("words", "cells"), [((), 3), (("model=scripted_hasty",), 2), (("-m", "budget=tight,default"), 6)]
)
def test_a_preset_sweeps_and_the_command_line_wins(
    output_of: OutputOf, own: Path, tmp_path: Path, words: tuple[str, ...], cells: int
) -> None:
    plan = output_of("--config-dir", str(own), "experiment=grid", "dry_run=true", "outputs=outputs", *words)
    tasks = len(list((ROOT / "tasks/quickstart").glob("*/task.toml")))
    assert f"{cells} cells, {cells * tasks} trials planned" in plan
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own"], "a dry run leaves nothing behind"


def test_composed_configuration_is_plain_data() -> None:
    assert json.dumps(loaded(PLAIN).composed)


JUDGED = "dataset=cli_tool_bench_judged"


def test_a_judge_is_priced_by_the_snapshot_and_its_budget_is_in_the_plan() -> None:
    sweep = loaded((JUDGED, "dry_run=true", "dataset.verifier.judge.usd=0.25"))
    judge = sweep.cells[0].dataset.verifier.judge
    assert judge
    assert (judge.model.name, judge.usd, judge.model.prices.known) == ("gpt", 0.25, True)
    plan = make_plan(sweep.cells, sweep.settings.sandbox, lambda _: ())
    assert plan.most_usd(nominal=False) == 0.25 * len(plan.todo) > 0


@pytest.mark.parametrize("agent", ["kimi_cli", "openhands"])
def test_a_model_without_a_context_window_is_refused_by_an_agent_that_cannot_work_without_one(
    agent: str,
) -> None:
    """Its configuration file was left out without a word, and every trial counted as the agent's failure."""
    words = (f"agent={agent}", "model=gpt", "model.context_window=null", "dry_run=true")
    with pytest.raises(
        ConfigError, match=f"{agent} needs to know the context_window of its model, and model gpt"
    ):
        loaded(words)
    assert loaded((*words, "model.context_window=64000")).cells


def test_a_judge_needs_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="model gpt needs its API key: export OPENAI_API_KEY"):
        loaded((JUDGED,))


def test_a_judge_without_a_price_is_refused() -> None:
    words = (JUDGED, "dry_run=true", "dataset.verifier.judge.model.id=openai/unheard-of")
    with pytest.raises(ConfigError, match=r"gpt \(openai/unheard-of\) has no price"):
        loaded(words)


def test_a_semantic_reward_needs_a_judge() -> None:
    with pytest.raises(ConfigError, match="reward=semantic_match needs a judge"):
        loaded(("dataset=cli_tool_bench", "dataset.verifier.reward=semantic_match"))


def test_a_judge_is_part_of_a_trials_key_only_where_its_word_is_the_reward() -> None:
    def digests(*words: str) -> list[str]:
        sweep = loaded((*words, "dataset.include=[hunkr,rankline]", "dry_run=true"))
        return [task.digest for task in sweep.cells[0].dataset.tasks()]

    other, dearer = "model@dataset.verifier.judge.model=deepseek", "dataset.verifier.judge.usd=9"
    semantic = "dataset.verifier.reward=semantic_match"
    assert digests(JUDGED) == digests("dataset=cli_tool_bench")
    assert digests(JUDGED, semantic) == digests(JUDGED, semantic, dearer)
    assert set(digests(JUDGED, semantic)).isdisjoint(digests(JUDGED, semantic, other))


@pytest.mark.parametrize("name", sorted(former_names.MOVED))
def test_a_former_name_leads_to_something(name: str) -> None:
    present = former_names.MOVED[name]
    if present.rpartition(".")[2][0].isupper():
        arguments.target(present, "conf")
    else:
        importlib.import_module(present)
