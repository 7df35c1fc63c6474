"""Read task folders that tests make, and refuse tasks with the reason."""

from __future__ import annotations

import cProfile
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from runner.benchmarks.harbor.dataset import HarborDataset
from runner.errors import ConfigError
from runner.records import Environment, Healthcheck, Task
from tests.support import tasks_factory

FILES = {
    "task.toml": 'schema_version = "1.4"\n',
    "instruction.md": "Make it work.\n",
    "environment/Dockerfile": "FROM debian:trixie-slim\n",
    "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
    "solution/solve.sh": "true\n",
}
Load = Callable[..., Task]


def write(folder: Path, files: dict[str, str | None]) -> Path:
    """Write a task folder; None leaves a file out."""
    for name, text in {**FILES, **files}.items():
        path = folder / name
        if text is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return folder


def dataset(root: Path, **options: Any) -> HarborDataset:
    return HarborDataset(name="made", root=root, **options)


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Return a function that returns the only task of a dataset, made of these files."""

    def load(files: dict[str, str | None] | None = None, toml: str | None = None, **options: Any) -> Task:
        write(tmp_path / "one", {**(files or {}), **({"task.toml": toml} if toml is not None else {})})
        (task,) = dataset(tmp_path, **options).tasks()
        return task

    return load


def test_a_plain_task_is_complete(load: Load, tmp_path: Path) -> None:
    task = load()
    assert (task.name, task.dataset, task.refused) == ("one", "made", None)
    assert task.instruction == "Make it work.\n"
    assert task.environment.context == tmp_path / "one" / "environment"
    assert task.verifier.tests == tmp_path / "one" / "tests"
    assert task.solution == tmp_path / "one" / "solution"
    assert (task.agent_timeout_seconds, task.verifier.timeout_seconds, task.verifier.mode) == (
        None,
        600,
        "shared",
    )
    assert (task.tier, task.category, task.language) == ("unknown", "unknown", "unknown")


def test_every_key_arrives(load: Load) -> None:
    task = load(
        toml="""
        schema_version = "1.4"
        artifacts = ["/app", { source = "out", destination = "kept" }]
        unheard_of = 1
        [task]
        name = "some-org/one"
        [metadata]
        difficulty = "Hard"
        category = "security"
        tags = ["web", "Rust"]
        [agent]
        timeout_sec = 90
        user = 1000
        [verifier]
        timeout_sec = 30
        user = "root"
        env = { A = "1" }
        environment_mode = "separate"
        [[verifier.collect]]
        command = "pg_dump > /logs/artifacts/db.sql"
        [solution]
        env = { B = "2" }
        [environment]
        build_timeout_sec = 5
        cpus = 1.5
        memory_mb = 512
        storage_mb = 1024
        workdir = "/srv"
        network_mode = "allowlist"
        allowed_hosts = ["Index.Example.", "*.example.org", "10.0.0.0/8", "2001:db8::1"]
        env = { C = "3" }
        gpus = 0
        mcp_servers = []
        [environment.healthcheck]
        command = "true"
        retries = 7
        """
    )
    assert task.refused is None
    assert (task.name, task.tier, task.category, task.language) == (
        "some-org/one",
        "hard",
        "security",
        "rust",
    )
    assert (task.agent_timeout_seconds, task.agent_user, task.artifacts) == (90, "1000", ("/app", "/srv/out"))
    assert task.solution_env == {"B": "2"}
    verifier = task.verifier
    assert (verifier.timeout_seconds, verifier.user, verifier.env, verifier.mode) == (
        30,
        "root",
        {"A": "1"},
        "separate",
    )
    assert verifier.collect == ("pg_dump > /logs/artifacts/db.sql",)
    environment = task.environment
    assert (environment.build_timeout_seconds, environment.cpus) == (5, 1.5)
    assert (environment.memory_mb, environment.storage_mb, environment.workdir) == (512, 1024, "/srv")
    assert (environment.env, environment.network) == ({"C": "3"}, "allowlist")
    assert environment.allowed_hosts == ("index.example", "*.example.org", "10.0.0.0/8", "2001:db8::1")
    assert environment.healthcheck == Healthcheck(command="true", retries=7)


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ('memory = "4G"', {"memory_mb": 4096}),
        ('memory = "512M"\nmemory_mb = 512', {"memory_mb": 512}),
        ('memory = "2048K"', {"memory_mb": 2}),
        ('storage = "10G"', {"storage_mb": 10240}),
        ("allow_internet = false", {"network": "no-network"}),
        ("allow_internet = true", {"network": "public"}),
        ('allow_internet = true\nnetwork_mode = "no-network"', {"network": "no-network"}),
        ('docker_image = "org/image:1"', {"image": "org/image:1"}),
    ],
)
def test_older_names_are_read(load: Load, toml: str, expected: dict[str, object]) -> None:
    environment = load(toml=f'version = "1.0"\n[environment]\n{toml}\n').environment
    assert environment.model_dump(include=set(expected)) == expected


@pytest.mark.parametrize(
    "version", ['version = "1.0"', 'version = "0.0"', 'schema_version = "2.0"', "version = 1.1", ""]
)
def test_tasks_of_every_version_that_harbor_loads_are_read(load: Load, version: str) -> None:
    assert load(toml=version).refused is None


REFUSED_TOML = {
    "malformed": ("[agent", "task.toml is not valid TOML (Expected ']' at the end"),
    "no schema": ("schema_version = []", "task.toml: schema_version: Input should be a valid string"),
    "wrong type": (
        '[environment]\ncpus = "many"',
        "task.toml: environment.cpus: Input should be a valid number",
    ),
    "two sizes": ('[environment]\nmemory = "4G"\nmemory_mb = 1', "memory = '4G' contradicts memory_mb = 1"),
    "no size": ('[environment]\nstorage = "big"', "storage = 'big' is not a size"),
    "no network": (
        '[environment]\nnetwork_mode = "some"',
        "task.toml: environment.network_mode: Input should be",
    ),
    "hosts alone": ('[environment]\nallowed_hosts = ["a"]', 'allowed_hosts needs network_mode = "allowlist"'),
    "host with port": (
        '[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a.org:443"]',
        "task.toml: agent: allowed_hosts takes host names, *.host, addresses and CIDR ranges, not 'a.org:443'.",
    ),
    "wrong name": ('[task]\nname = "one"', "task.toml: task.name: String should match pattern"),
    "gpu": ("[environment]\ngpus = 2", "[environment] asks for 2 GPU(s)"),
    "tpu": ('[environment]\ntpu = { type = "v5e", topology = "2x4" }', "asks for a TPU"),
    "windows": ('[environment]\nos = "windows"', "only Linux containers run here"),
    "tools": ('[[environment.mcp_servers]]\nname = "x"\nurl = "http://x"', "lists mcp_servers"),
    "verifier's gpu": ("[verifier.environment]\ngpus = 1", "[verifier.environment] asks for 1 GPU(s)"),
    "steps": ('[[steps]]\nname = "first"', "steps/first: instruction.md is missing"),
    "two modes": (
        '[verifier]\nenvironment_mode = "shared"\n[verifier.environment]\ncpus = 1',
        '[verifier] has an environment of its own and environment_mode = "shared"',
    ),
    "hook elsewhere": ('[[verifier.collect]]\ncommand = "x"\nservice = "db"', "hook runs in service 'db'"),
    "hook as another": ('[[verifier.collect]]\ncommand = "x"\nuser = "db"', "hook runs as user 'db'"),
    "artifact elsewhere": ('artifacts = [{ source = "/x", service = "db" }]', "'/x' comes from service 'db'"),
    "artifact less some": (
        'artifacts = [{ source = "/x", exclude = ["*.o"] }]',
        "'/x' has `exclude` patterns",
    ),
    "artifact upwards": ('artifacts = ["/x/../etc"]', "must be an absolute path without `..`"),
    "artifact nowhere": ('artifacts = ["x"]', "must be an absolute path"),
    "variable": (
        '[verifier]\nenv = { KEY = "${ASSAY_TEST_UNSET}" }',
        "asks for ASSAY_TEST_UNSET of this machine's environment: if it may have it, add dataset.env=[ASSAY_TEST_UN",
    ),
}


@pytest.mark.parametrize("case", REFUSED_TOML)
def test_what_cannot_be_run_is_refused_with_its_reason(load: Load, case: str) -> None:
    toml, sentence = REFUSED_TOML[case]
    task = load(toml=toml)
    assert task.refused is not None
    assert sentence in task.refused
    assert task.refused.endswith(".")
    assert task.digest


REFUSED_FILES: dict[str, tuple[dict[str, str | None], str]] = {
    "no task.toml": ({"task.toml": None}, "has no task.toml"),
    "no instruction": ({"instruction.md": None}, "instruction.md is missing or empty"),
    "only a canary": ({"instruction.md": "# canary 1\n"}, "instruction.md is missing or empty"),
    "no tests": ({"tests/test.sh": None}, "tests/test.sh is missing"),
    "no environment": ({"environment/Dockerfile": None}, "neither environment/Dockerfile nor a docker_image"),
    "a conversation": ({"trajectory.json": "{}"}, "continues an earlier conversation"),
    "files without a Dockerfile": (
        {
            "task.toml": '[environment]\ndocker_image = "x"',
            "environment/Dockerfile": None,
            "environment/data": "",
        },
        "no Dockerfile that copies them",
    ),
    "several verifier containers": (
        {
            "task.toml": '[verifier]\nenvironment_mode = "separate"',
            "tests/docker-compose.yaml": "services: {}",
        },
        "Its verifier needs several containers",
    ),
}


@pytest.mark.parametrize("case", REFUSED_FILES)
def test_files_that_are_missing_or_too_many_are_refused(load: Load, case: str) -> None:
    files, sentence = REFUSED_FILES[case]
    task = load(files)
    assert task.refused is not None
    assert sentence in task.refused


@pytest.mark.parametrize(
    "name", ["tests/secret", "solution/secret", "environment/secret", "environment/deep/er"]
)
def test_a_link_that_leaves_the_task_is_refused(load: Load, tmp_path: Path, name: str) -> None:
    link = write(tmp_path / "one", {}) / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to("/etc" if name.endswith("er") else "/etc/shadow")
    refused = load().refused
    assert refused == f"{name} is a link that leaves the task's folder: replace it by what it points to."


def test_a_link_within_the_task_is_read(load: Load, tmp_path: Path) -> None:
    (write(tmp_path / "one", {}) / "tests" / "same").symlink_to("../solution/solve.sh")
    assert load().refused is None


def test_a_pipe_is_refused_and_never_opened(load: Load, tmp_path: Path) -> None:
    os.mkfifo(write(tmp_path / "one", {}) / "tests" / "pipe")
    assert load().refused == "tests/pipe is neither a file nor a folder nor a link: remove it."


def test_a_refused_task_keeps_what_it_is_grouped_by(load: Load) -> None:
    task = load(toml='[metadata]\ndifficulty = "easy"\nlanguage = "Go"\n[environment]\ngpus = 1')
    assert (task.tier, task.language) == ("easy", "go")


@pytest.mark.parametrize(
    ("toml", "source"),
    [
        ("", "unknown"),
        ('source = "Terminal-Bench"', "Terminal-Bench"),
        ('[metadata]\nsource = "DA-Code"', "da-code"),
        ('source = "x"\nunheard_of = 1', "DA-Code"),
    ],
)
def test_a_source_is_the_task_s_own_or_that_of_a_mixed_folder(load: Load, toml: str, source: str) -> None:
    mixed = {"DA-Code": ("on?",)} if "unheard_of" in toml else {}
    task = load(toml=toml, sources=mixed)
    assert (task.source, task.digest) == (source, load(toml=toml).digest)


def test_a_source_without_a_task_is_refused(load: Load) -> None:
    with pytest.raises(ConfigError, match="no task is called 'da-\\*'"):
        load(sources={"DA-Code": ("da-*",)})


def test_keys_that_mean_nothing_are_named_and_the_task_runs(tmp_path: Path) -> None:
    """Harbor ignores them silently, and `timeot_sec` gave a task the default limit."""
    toml = """
    version = "0.0"
    artifacts = [{source = "/app", destination = "x", unheard = 1}]
    [metadata]
    anything = "goes"
    [agent]
    timeot_sec = 5
    [environment]
    memory = "2G"
    skills_dir = "/skills"
    [environment.healthcheck]
    command = "true"
    start_interval_sec = 1
    [[verifier.collect]]
    command = "true"
    timeout_sec = 9
    """
    write(tmp_path / "one", {"task.toml": dedent(toml)})
    (task,) = dataset(tmp_path).tasks()
    heard: list[str] = []
    dataset(tmp_path).prepare(heard.append)
    assert task.refused is None
    assert heard == [
        "agent.timeot_sec in the task.toml of one means nothing and is ignored",
        "artifacts.unheard in the task.toml of one means nothing and is ignored",
    ]


@pytest.mark.parametrize(
    ("text", "instruction"),
    [
        ("<!-- some-bench-canary GUID 1 -->\nDo it.\n", "Do it.\n"),
        ("# CANARY string: x\n<!-- canary -->\n\n\nDo it.\n", "Do it.\n"),
        ("\ufeff# canary\nDo it.\n", "Do it.\n"),
        ("# Title\n# canary\nDo it.\n", "# Title\n# canary\nDo it.\n"),
        ("Feed the canary.\n", "Feed the canary.\n"),
    ],
)
def test_canary_lines_are_not_part_of_the_instruction(load: Load, text: str, instruction: str) -> None:
    assert load({"instruction.md": text}).instruction == instruction


def test_variables_come_from_the_host(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_TEST_SET", "there")
    monkeypatch.setenv("ASSAY_TEST_EMPTY", "")
    values = {
        "A": "${ASSAY_TEST_SET}",
        "B": "${ASSAY_TEST_UNSET:-other}/${ASSAY_TEST_SET:-x}",
        "C": "${ASSAY_TEST_UNSET:-}",
        "D": "${ASSAY_TEST_EMPTY}|${ASSAY_TEST_EMPTY:-full}",
        "E": "$HOME costs $5",
    }
    toml = "[environment.env]\n" + "".join(f'{key} = "{value}"\n' for key, value in values.items())
    expected = {"A": "there", "B": "other/there", "C": "", "D": "|full", "E": "$HOME costs $5"}
    load(toml=toml)
    allowed = ("ASSAY_TEST_SET", "ASSAY_TEST_EMPTY", "ASSAY_TEST_UNSET")
    (task,) = dataset(tmp_path, env=allowed).tasks()
    assert task.environment.env == expected
    assert task.host_env == ("ASSAY_TEST_SET",)


SEPARATE = '[verifier]\nenvironment_mode = "separate"\n'


def test_a_separate_verifier_is_a_fresh_copy_by_default(load: Load, tmp_path: Path) -> None:
    verifier = load(toml=SEPARATE).verifier
    assert (verifier.mode, verifier.environment, verifier.tests) == (
        "separate",
        None,
        tmp_path / "one" / "tests",
    )


def test_a_verifier_environment_means_separate(load: Load, tmp_path: Path) -> None:
    toml = '[environment]\ndocker_image = "theirs"\n[verifier.environment]\nmemory_mb = 64\n'
    verifier = load(toml=toml).verifier
    assert verifier.mode == "separate"
    assert verifier.environment is not None
    assert (verifier.environment.image, verifier.environment.memory_mb) == ("theirs", 64)
    assert verifier.environment.context == tmp_path / "one" / "environment"
    assert verifier.tests == tmp_path / "one" / "tests"


def test_a_verifier_image_carries_its_own_tests(load: Load) -> None:
    verifier = load(
        {"tests/test.sh": None}, toml='[verifier.environment]\ndocker_image = "judge:1"\n'
    ).verifier
    assert verifier.tests is None
    assert verifier.environment is not None
    assert (verifier.environment.image, verifier.environment.context) == ("judge:1", None)


@pytest.mark.parametrize("toml", [SEPARATE, "[verifier.environment]\ncpus = 1\n"])
def test_a_dockerfile_beside_the_tests_is_built_and_carries_them(
    load: Load, tmp_path: Path, toml: str
) -> None:
    toml = f'{toml}[environment]\ndocker_image = "theirs"\n'
    verifier = load({"tests/Dockerfile": "FROM x\nCOPY . /tests\n"}, toml=toml).verifier
    assert verifier.tests is None
    assert verifier.environment is not None
    assert (verifier.environment.image, verifier.environment.context) == (None, tmp_path / "one" / "tests")


def test_a_dockerfile_beside_shared_tests_is_only_a_file(load: Load, tmp_path: Path) -> None:
    verifier = load({"tests/Dockerfile": "FROM x\n"}).verifier
    assert (verifier.environment, verifier.tests) == (None, tmp_path / "one" / "tests")


@pytest.mark.parametrize(
    ("toml", "agent", "judge"),
    [
        ('[agent]\nnetwork_mode = "no-network"', "no-network", "public"),
        (
            '[environment]\nnetwork_mode = "no-network"\n[verifier]\nnetwork_mode = "public"',
            "no-network",
            "public",
        ),
        ('[environment]\nnetwork_mode = "no-network"', "no-network", "no-network"),
    ],
)
def test_a_phase_can_have_its_own_network(load: Load, toml: str, agent: str, judge: str) -> None:
    task = load(toml=toml)
    environment: Environment = task.verifier.environment or task.environment
    assert (task.environment.network, environment.network) == (agent, judge)


def test_the_digest_does_not_depend_on_place_time_or_notes(tmp_path: Path) -> None:
    here = write(tmp_path / "here" / "one", {})
    there = Path(shutil.copytree(here, tmp_path / "there" / "one"))
    for path in there.rglob("*"):
        os.utime(path, (1, 1))
    (there / "README.md").write_text("notes")
    (there / ".gitignore").write_text("*.pyc")
    (there / "tests" / "__pycache__").mkdir()
    for name in ("__pycache__/x.pyc", "y.pyc"):
        (there / "tests" / name).write_text("bytecode")
    (first,), (second,) = dataset(here.parent).tasks(), dataset(there.parent).tasks()
    assert (first.digest, first.environment.digest) == (second.digest, second.environment.digest)


@pytest.mark.parametrize(
    "change",
    [
        "tests/test.sh",
        "tests/new",
        "solution/solve.sh",
        "instruction.md",
        "task.toml",
        "environment/README.md",
    ],
)
def test_the_digest_changes_with_content(load: Load, tmp_path: Path, change: str) -> None:
    before = load()
    with (tmp_path / "one" / change).open("a") as file:
        file.write("# changed\n")
    (after,) = dataset(tmp_path).tasks()
    assert after.digest != before.digest
    assert (after.environment.digest != before.environment.digest) == change.startswith("environment/")


def test_the_digest_changes_with_the_executable_bit(load: Load, tmp_path: Path) -> None:
    before = load()
    (tmp_path / "one" / "tests" / "test.sh").chmod(0o755)
    assert dataset(tmp_path).tasks()[0].digest != before.digest


def test_the_digest_changes_with_a_link_s_target(load: Load, tmp_path: Path) -> None:
    link = write(tmp_path / "one", {}) / "tests" / "link"
    link.symlink_to("test.sh")
    before = load()
    link.unlink()
    link.symlink_to("../solution/solve.sh")
    assert dataset(tmp_path).tasks()[0].digest != before.digest


@pytest.mark.parametrize(
    "options",
    [
        {"build_args": {"BASE": "x"}},
        {"pass_threshold": 0.5},
        {"keep_processes": ("one",)},
        {"verifier": {"reward_key": "score"}},
    ],
)
def test_the_digest_changes_with_options_that_change_results(
    load: Load, tmp_path: Path, options: dict[str, Any]
) -> None:
    before = load()
    assert dataset(tmp_path, **options).tasks()[0].digest != before.digest


def test_a_variable_of_the_host_counts_by_its_name_and_not_by_its_value(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finished trials must not run again because an API key was renewed."""
    written = "{ KEY = '${ASSAY_TEST_X:-a}' }"
    before = load(
        toml=f"[verifier]\nenv = {written}\n[environment]\nenv = {written}\n[solution]\nenv = {written}"
    )
    found = [before]
    for value in ("b", "c"):
        monkeypatch.setenv("ASSAY_TEST_X", value)
        found += dataset(tmp_path).tasks()
        found += dataset(tmp_path, env=["ASSAY_TEST_X"]).tasks()
    assert [task.verifier.env["KEY"] for task in found] == ["a", "a", "b", "a", "c"]
    digests = [(task.digest, task.environment.digest) for task in found]
    assert digests[0] == digests[1] == digests[3]
    assert digests[2] == digests[4] != digests[0]


def test_the_digest_does_not_change_with_what_only_groups(load: Load, tmp_path: Path) -> None:
    before = load()
    assert dataset(tmp_path, tier_from="category").tasks()[0].digest == before.digest


def test_a_child_is_a_task_or_no_task_and_never_a_silent_loss(tmp_path: Path) -> None:
    write(tmp_path / "b", {})
    write(tmp_path / "a", {"task.toml": "broken ["})
    (tmp_path / "c" / "environment").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "README.md").touch()
    tasks = dataset(tmp_path).tasks()
    assert [(task.name, task.refused is None) for task in tasks] == [("a", False), ("b", True), ("c", False)]


def test_a_root_can_be_a_single_task(tmp_path: Path) -> None:
    assert [task.name for task in dataset(write(tmp_path / "one", {})).tasks()] == ["one"]


def test_a_name_that_two_tasks_have_is_refused_the_second_time(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write(tmp_path / folder, {"task.toml": '[task]\nname = "org/same"\n'})
    first, second = dataset(tmp_path).tasks()
    assert (first.name, first.refused) == ("org/same", None)
    assert (second.name, second.refused) == (
        "b",
        "Its name 'org/same' is also that of a/: rename one of them.",
    )


def test_equal_tasks_of_two_names_have_two_digests(tmp_path: Path) -> None:
    """A trial's key is made of digests. With equal ones, two planned trials would share one record."""
    write(tmp_path / "a", {})
    write(tmp_path / "b", {})
    first, second = dataset(tmp_path).tasks()
    assert first.digest != second.digest


def test_globs_select_the_tasks_of_the_dataset(tmp_path: Path) -> None:
    for folder in ("web-a", "web-b", "db-a"):
        write(tmp_path / folder, {})
    chosen = dataset(tmp_path, include=("web-*", "db-a"), exclude=("*-b",), keep_processes=("db-*",)).tasks()
    assert [(task.name, task.verifier.keep_processes) for task in chosen] == [
        ("db-a", True),
        ("web-a", False),
    ]
    assert [task.fresh_dirs for task in chosen] == [("/tests", "/logs/verifier"), ()]


def test_a_glob_may_leave_out_what_stands_before_a_tasks_name(tmp_path: Path) -> None:
    """Tasks of Terminal-Bench 2.1 are called `terminal-bench/NAME`, and people write NAME."""
    for folder in ("web-a", "web-b", "db-a", "db-b"):
        write(tmp_path / folder, {"task.toml": f'[task]\nname = "some-bench/{folder}"\n'})
    globs = {"keep_processes": ("db-a",), "beside": ("web-a",), "sources": {"databases": ("db-*",)}}
    chosen = dataset(tmp_path, include=("web-*", "some-bench/db-*"), exclude=("*-b",), **globs).tasks()
    assert [(task.name, task.source) for task in chosen] == [
        ("some-bench/db-a", "databases"),
        ("some-bench/web-a", "unknown"),
    ]
    assert [(task.verifier.keep_processes, bool(task.verifier.beside)) for task in chosen] == [
        (True, False),
        (False, True),
    ]
    with pytest.raises(ConfigError, match="no task is called 'bench'"):
        dataset(tmp_path, include=("bench",)).tasks()


@pytest.mark.parametrize("option", ["include", "exclude", "keep_processes"])
def test_a_glob_that_matches_nothing_is_an_error(tmp_path: Path, option: str) -> None:
    write(tmp_path / "one", {})
    with pytest.raises(ConfigError, match=r"no task is called 'two'. It has one\."):
        dataset(tmp_path, **{option: ("two",)}).tasks()


def test_a_root_without_tasks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere is not a folder\. Set dataset\.root"):
        dataset(tmp_path / "nowhere").tasks()
    with pytest.raises(ConfigError, match="there is no task in"):
        dataset(tmp_path).tasks()
    write(tmp_path / "tasks" / "one", {})
    with pytest.raises(ConfigError, match=f"Set dataset.root to {tmp_path}/tasks."):
        dataset(tmp_path).tasks()


def test_reading_many_tasks_takes_no_more_work_each_than_reading_few(tmp_path: Path) -> None:
    def calls(folder: Path, count: int) -> int:
        for number in range(count):
            write(folder / f"task-{number}", {f"tests/test_{n}.py": "assert True\n" * 200 for n in range(8)})
        dataset(folder).tasks()  # imports and caches are not work on tasks
        with cProfile.Profile() as profile:
            assert len(dataset(folder).tasks()) == count
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(tmp_path / "many", 90) < 12 * calls(tmp_path / "few", 9)


def test_a_second_verdict_is_another_trial_and_none_is_as_ever(tmp_path: Path) -> None:
    """A finished trial's machine is gone and cannot be judged again. Trials without the setting keep their keys."""
    tasks_factory.make_task(tmp_path, "made")
    plain, none, again = (
        tasks_factory.dataset(tmp_path, verifier=verifier).tasks()[0].digest
        for verifier in ({}, {"again": None}, {"again": "pristine"})
    )
    assert plain == none
    assert plain != again
