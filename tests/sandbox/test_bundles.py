"""Bundles: identity, building under adversity, and whether they need anything of the image they are mounted into."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Timer

import docker
import pytest
from docker.errors import ContainerError
from docker.models.containers import Container

from runner.errors import ConfigError, EngineError
from runner.records import BundleRecipe
from runner.sandbox import base, bundles, engine
from tests.agents.trials import shipped

LOCK = """six==1.17.0 \\
    --hash=sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274
"""
NPM_LOCK = """{"lockfileVersion": 3, "requires": true, "packages": {
"": {"dependencies": {"json5": "1.0.1"}},
"node_modules/json5": {"version": "1.0.1", "dependencies": {"minimist": "^1.2.0"}, "bin": {"json5": "lib/cli.js"},
 "integrity": "sha512-aKS4WQjPenRxiQsC93MNfjx+nbF4PAdYzmd/1JIj8HYzqfbu86beTuNgXDzPknWk0n0uARlyewZo4s++ES36Ow=="},
"node_modules/minimist": {"version": "1.2.7",
 "integrity": "sha512-bzfL1YUZsP41gmu/qjrEk0Q6i2ix/cVeAhbCbqH9u3zYutS1cLg00qhrD0M2MVdCcx4Sc0UpP2eBWo9rotpq6g=="}}}
"""
NATIVE = BundleRecipe(name="codex", kind="npm", package="@openai/codex", version="0.169.0")


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    client = engine.connect()
    yield client
    client.close()


@pytest.fixture
def recipe(tmp_path: Path, worker_id: str) -> BundleRecipe:
    """A small bundle of this test's own; a comment in the lock sets it apart from those of other workers."""
    lock = tmp_path / "small.lock"
    lock.write_text(f"# {worker_id} {tmp_path}\n{LOCK}")
    return BundleRecipe(name="small", kind="pypi", package="six", version="1.17.0", lock=lock)


@pytest.fixture
def built(client: docker.DockerClient, recipe: BundleRecipe) -> Iterator[BundleRecipe]:
    """The recipe, removed afterwards whatever became of it."""
    yield recipe
    if container := find(client, recipe):
        bundles._remove(client, container)


def find(client: docker.DockerClient, recipe: BundleRecipe) -> Container | None:
    return bundles._find(client, bundles._build(recipe))


def volumes(client: docker.DockerClient, recipe: BundleRecipe) -> list[str]:
    return [volume.name for volume in client.volumes.list(filters={"name": bundles.container_name(recipe)})]


def run_in(client: docker.DockerClient, image: str, recipes: list[BundleRecipe], *command: str) -> str:
    """Run a command without network, privileges or a writable root, with the bundles mounted as a sandbox has them."""
    names = [bundles.runtime_container(), *map(bundles.container_name, recipes)]
    output = client.containers.run(
        image,
        list(command),
        volumes_from=[f"{name}:ro" for name in names],
        network_mode="none",
        user="1000",
        cap_drop=["ALL"],
        read_only=True,
        remove=True,
        stderr=True,
    )
    return str(output.decode())


@pytest.fixture(scope="module")
def empty_image(client: docker.DockerClient) -> Iterator[str]:
    """An image without a single file."""
    buffer = io.BytesIO()
    tarfile.open(fileobj=buffer, mode="w").close()
    answer = client.api.import_image_from_data(buffer.getvalue())
    image = str(json.loads(answer)["status"])
    yield image
    client.images.remove(image, force=True)


# --- identity: pure ---------------------------------------------------------------------------------------------------


def test_identity_is_the_locks_content_and_not_its_place(recipe: BundleRecipe, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.lock"
    assert recipe.lock
    elsewhere.write_text(recipe.lock.read_text())
    moved = recipe.model_copy(update={"lock": elsewhere})
    changed = tmp_path / "changed.lock"
    changed.write_text(recipe.lock.read_text().replace("1.17.0", "1.16.0"))
    assert bundles.container_name(moved) == bundles.container_name(recipe)
    assert bundles.container_name(recipe.model_copy(update={"lock": changed})) != bundles.container_name(
        recipe
    )


@pytest.mark.parametrize(
    "change", [{"name": "other"}, {"version": "0.169.1"}, {"package": "@openai/other"}, {"node": True}]
)
def test_identity_changes_with_the_recipe(change: dict[str, object]) -> None:
    assert bundles.container_name(NATIVE.model_copy(update=change)) != bundles.container_name(NATIVE)


def test_identity_changes_with_the_base_image(monkeypatch: pytest.MonkeyPatch) -> None:
    before = bundles.container_name(NATIVE)
    bundles._build.cache_clear()
    monkeypatch.setattr(base, "tag", lambda: "assay-base:other")
    assert bundles.container_name(NATIVE) != before
    bundles._build.cache_clear()


def test_pypi_bundle_without_a_lock_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="bundle small: kind pypi needs `lock`"):
        bundles.container_name(BundleRecipe(name="small", kind="pypi", package="six", version="1.17.0"))


@pytest.mark.parametrize("text", [LOCK, "[]", "{}", '{"packages": {"": {}}}'])
def test_npm_bundle_with_another_kind_of_lock_is_a_configuration_error(tmp_path: Path, text: str) -> None:
    lock = tmp_path / "other.json"
    lock.write_text(text)
    with pytest.raises(
        ConfigError, match=r"bundle codex: .*other\.json is no package-lock\.json of @openai/codex"
    ):
        bundles.container_name(NATIVE.model_copy(update={"lock": lock}))


@pytest.mark.parametrize("name", ["kimi_code", "qwen_code"])
def test_shipped_npm_locks_are_of_the_shipped_versions(name: str) -> None:
    recipe, other = shipped(name).bundle, shipped(name, version="0.0.1").bundle
    assert recipe
    assert other
    assert not bundles._build(recipe).floats
    assert bundles._build(other).floats


# --- building: real containers, real registries -----------------------------------------------------------------------


@pytest.mark.bundle
def test_bundle_is_installed_once_and_says_what_is_in_it(
    client: docker.DockerClient, built: BundleRecipe
) -> None:
    bundles.ensure(client, [], print)
    said: list[str] = []
    digests = bundles.ensure(client, [built], said.append)
    assert set(digests) == {"python", "small"}
    assert bundles.container_name(built).endswith(digests["small"][:12])
    assert said[0] == "Installing bundle small"
    assert bundles.ensure(client, [built], pytest.fail) == digests
    shown = run_in(client, base.tag(), [built], "cat", "/opt/assay/small/bundle.json")
    assert json.loads(shown) == {"name": "small", "installed": [{"name": "six", "version": "1.17.0"}]}


@pytest.mark.bundle
def test_nothing_of_this_machine_stays_in_a_bundle(client: docker.DockerClient, built: BundleRecipe) -> None:
    bundles.ensure(client, [built], print)
    container = find(client, built)
    assert container
    changed = {str(change["Path"]) for change in container.diff()}
    assert not {path for path in changed if "assay-build" in path or path.endswith((".crt", ".pem"))}
    variables = container.attrs["Config"]["Env"] or []
    assert all(each.startswith("PATH=") for each in variables), (
        "proxies and certificate paths stay with the build"
    )


@pytest.mark.bundle
def test_package_that_is_not_what_was_locked_is_refused(
    client: docker.DockerClient, built: BundleRecipe
) -> None:
    assert built.lock
    built.lock.write_text(LOCK.replace("4721f391", "00000000"))
    bundles._build.cache_clear()
    with pytest.raises(EngineError, match=r"(?s)bundle small could not be installed:.*[Hh]ash mismatch"):
        bundles.ensure(client, [built], print)
    assert find(client, built) is None
    assert volumes(client, built) == []


@pytest.mark.bundle
def test_two_runners_install_it_once(client: docker.DockerClient, built: BundleRecipe) -> None:
    bundles.ensure(client, [], print)
    said: list[str] = []
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: bundles.ensure(client, [built], said.append), range(4)))
    assert len({result["small"] for result in results}) == 1
    assert said.count("Installing bundle small") == 1


@pytest.mark.bundle
def test_installation_that_another_runner_spoiled_is_done_again(
    client: docker.DockerClient, built: BundleRecipe
) -> None:
    """As after a crash of the machine: the container ended with another code, and half of a volume is there."""
    name = bundles.container_name(built)
    bundles.ensure(client, [], print)
    volume = {name: {"bind": "/opt/assay/small", "mode": "rw"}}
    spoil = ["sh", "-c", "echo half > /opt/assay/small/half; exit 137"]
    client.containers.run(base.tag(), spoil, name=name, volumes=volume, detach=True)
    bundles.ensure(client, [built], print)
    assert "half" not in run_in(client, base.tag(), [built], "ls", "/opt/assay/small")


@pytest.mark.bundle
def test_installation_whose_runner_died_before_its_start_is_done_again(
    client: docker.DockerClient, built: BundleRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that was never started reports exit code 0, like a complete one."""
    bundles.ensure(client, [], print)
    client.containers.create(base.tag(), ["true"], name=bundles.container_name(built))
    monkeypatch.setattr(bundles, "_START_SECONDS", 0.5)
    bundles.ensure(client, [built], print)
    assert "bundle.json" in run_in(client, base.tag(), [built], "ls", "/opt/assay/small")


@pytest.mark.bundle
def test_stopped_installation_leaves_nothing(client: docker.DockerClient, built: BundleRecipe) -> None:
    bundles.ensure(client, [], print)
    stop = Event()
    Timer(0.4, stop.set).start()
    with pytest.raises(EngineError, match="interrupted"):
        bundles._complete(client, bundles._build(built), print, stop)
    assert find(client, built) is None
    assert volumes(client, built) == []


# --- independence of the image ----------------------------------------------------------------------------------------


@pytest.mark.bundle
def test_runtime_starts_in_an_image_without_a_single_file(
    client: docker.DockerClient, empty_image: str
) -> None:
    modules = "ssl, sqlite3, ctypes, zlib, bz2, lzma, uuid, hashlib, readline, curses, decimal"
    code = f"import {modules}, sys; print(sys.executable, sys.flags.isolated)"
    python = "/opt/assay/python/bin/python3"
    shown = run_in(client, empty_image, [], python, "-I", "-c", code)
    assert shown == "/opt/assay/python/bin/python3 1\n"


@pytest.mark.bundle
def test_supervisor_runs_in_an_image_without_a_single_file(
    client: docker.DockerClient, empty_image: str
) -> None:
    bundles.ensure(client, [], print)
    python = "/opt/assay/python/bin/python3"
    command = (python, "-I", "-S", "/opt/assay/python/supervise.py", "--", python, "-I", "-c", "print('in')")
    assert run_in(client, empty_image, [], *command) == "in\n"


@pytest.mark.bundle
def test_runtime_maps_no_library_of_the_image(client: docker.DockerClient) -> None:
    code = "import ssl, sqlite3, ctypes; print(open('/proc/self/maps').read())"
    shown = run_in(client, base.tag(), [], "/opt/assay/python/bin/python3", "-I", "-c", code)
    libraries = {line.split()[-1] for line in shown.splitlines() if ".so" in line}
    assert libraries
    assert all(library.startswith("/opt/assay/python/lib/") for library in libraries)


@pytest.mark.bundle
def test_children_of_the_runtime_use_the_images_own_libraries(client: docker.DockerClient) -> None:
    leaked = "sorted(name for name in os.environ if name.startswith('LD_'))"
    code = f"import os, subprocess; print({leaked}); subprocess.run(['git', '--version'])"
    shown = run_in(client, base.tag(), [], "/opt/assay/python/bin/python3", "-I", "-u", "-c", code)
    assert shown.startswith("[]\ngit version")


@pytest.mark.bundle
def test_bundle_is_read_only_for_root_too(client: docker.DockerClient) -> None:
    bundles.ensure(client, [], print)
    with pytest.raises(ContainerError, match="Read-only file system"):
        client.containers.run(
            base.tag(),
            ["touch", "/opt/assay/python/supervise.py"],
            volumes_from=[f"{bundles.runtime_container()}:ro"],
            network_mode="none",
            remove=True,
        )


@pytest.mark.bundle
def test_node_agents_are_of_their_versions_and_bring_their_own_node(
    client: docker.DockerClient, empty_image: str, tmp_path: Path
) -> None:
    """Beneath the one that a lock is of is what it names, though the registry has newer; the other says so."""
    lock = tmp_path / "package-lock.json"
    lock.write_text(NPM_LOCK)
    bundle = {"name": "json5", "package": "json5", "lock": str(lock)}
    agents = {version: shipped("kimi_code", version=version, bundle=bundle) for version in ("1.0.1", "1.0.2")}
    recipes = {version: agent.bundle for version, agent in agents.items() if agent.bundle}
    heard: list[str] = []
    try:
        bundles.ensure(client, recipes.values(), heard.append)
        assert sum("another version" in said for said in heard) == 1
        for version, recipe in recipes.items():
            command = ("/opt/assay/json5/bin/node", "/opt/assay/json5/bin/json5", "--version")
            assert run_in(client, empty_image, [recipe], *command) == f"{version}\n"
        shown = run_in(client, base.tag(), [recipes["1.0.1"]], "cat", "/opt/assay/json5/bundle.json")
        assert {"name": "minimist", "version": "1.2.7"} in json.loads(shown)["installed"]
    finally:
        for container in filter(None, (find(client, recipe) for recipe in recipes.values())):
            bundles._remove(client, container)


@pytest.mark.bundle
def test_npm_package_without_the_native_program_is_refused(client: docker.DockerClient) -> None:
    recipe = BundleRecipe(name="semver", kind="npm", package="semver", version="7.7.3")
    with pytest.raises(EngineError, match="expected one native program named semver, found: none"):
        bundles.ensure(client, [recipe], print)
    assert find(client, recipe) is None
