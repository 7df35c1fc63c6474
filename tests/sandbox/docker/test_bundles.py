"""Bundles: identity, building under adversity, and independence of the image into which they are mounted."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Timer
from typing import Literal

import docker
import pytest
from docker.errors import ContainerError
from docker.models.containers import Container

from runner.errors import BundleError, ConfigError, EngineError, ImageError
from runner.records import BundleRecipe, Environment, SandboxSpec
from runner.resources import CONF
from runner.sandbox.docker import base_image, bundles, content, engine
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.inside import PYTHON, SUPERVISOR
from tests.agents.trials import AGENTS, TRIED, shipped

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
CODEX = CONF / "agent" / "locks" / "codex.json"
Change = Callable[[Path], object]
NATIVE = BundleRecipe(name="codex", kind="npm", package="@openai/codex", version="0.169.0", lock=CODEX)


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    client = engine.connect()
    yield client
    client.close()


@pytest.fixture
def recipe(tmp_path: Path, worker_id: str) -> BundleRecipe:
    """Return a small bundle of this test's own. A comment in its lock sets it apart from those of other workers."""
    lock = tmp_path / "small.lock"
    lock.write_text(f"# {worker_id} {tmp_path}\n{LOCK}")
    return BundleRecipe(name="small", kind="pypi", package="six", version="1.17.0", lock=lock)


@pytest.fixture
def built(client: docker.DockerClient, recipe: BundleRecipe) -> Iterator[BundleRecipe]:
    """Return the recipe, and remove whatever became of it afterwards."""
    yield recipe
    if container := find(client, recipe):
        bundles._remove(client, container)


def find(client: docker.DockerClient, recipe: BundleRecipe) -> Container | None:
    return bundles._find(client, bundles._build(recipe))


def volumes(client: docker.DockerClient, recipe: BundleRecipe) -> list[str]:
    return [volume.name for volume in client.volumes.list(filters={"name": bundles.container_name(recipe)})]


def run_in(client: docker.DockerClient, image: str, recipes: list[BundleRecipe], *command: str) -> str:
    """Run a command without network, privileges or a writable root, with the bundles mounted as in a sandbox."""
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
    """Return an image without a single file."""
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


@pytest.mark.parametrize("change", [{"name": "other"}, {"node": True}, {"lock": "of another content"}])
def test_identity_changes_with_the_recipe(change: dict[str, object], tmp_path: Path) -> None:
    if "lock" in change:
        change = {"lock": tmp_path / "lock.json"}
        (tmp_path / "lock.json").write_text(CODEX.read_text() + "\n")
    assert bundles.container_name(NATIVE.model_copy(update=change)) != bundles.container_name(NATIVE)


def test_identity_changes_with_the_base_image(monkeypatch: pytest.MonkeyPatch) -> None:
    before = bundles.container_name(NATIVE)
    bundles._build.cache_clear()
    monkeypatch.setattr(base_image, "tag", lambda: "assay-base:other")
    assert bundles.container_name(NATIVE) != before
    bundles._build.cache_clear()


@pytest.mark.parametrize("kind", ["pypi", "npm"])
def test_bundle_without_a_lock_is_a_configuration_error(kind: Literal["pypi", "npm"]) -> None:
    with pytest.raises(ConfigError, match="bundle small needs `lock`, a file with the hash of everything"):
        bundles.container_name(BundleRecipe(name="small", kind=kind, package="six", version="1.17.0"))


@pytest.mark.parametrize("text", [LOCK, "[]", "{}", '{"packages": {"": {}}}'])
def test_npm_bundle_with_another_kind_of_lock_is_a_configuration_error(tmp_path: Path, text: str) -> None:
    lock = tmp_path / "other.json"
    lock.write_text(text)
    with pytest.raises(
        ConfigError, match=r"bundle codex: .*other\.json is not a package-lock\.json of @openai/codex"
    ):
        bundles.container_name(NATIVE.model_copy(update={"lock": lock}))


UNPINNED: dict[str, dict[str, object]] = {
    "nothing": {"version": "1.2.7"},
    "sha1": {"version": "1.2.7", "integrity": "sha1-mX0w7jC8lbYaYvDrOaWrsxMmtKI="},
    "a link": {"resolved": "../evil", "link": True},
    "an address": {"version": "1.2.7", "resolved": "https://evil.example/minimist.tgz"},
    "a repository": {"version": "git+ssh://git@evil.example/minimist.git#0f"},
    "empty": {"version": "1.2.7", "integrity": ""},
    "no text": {"version": "1.2.7", "integrity": None},
}


FROM_NPM = [name for name in AGENTS if (bundle := shipped(name).bundle) and bundle.kind == "npm"]


@pytest.mark.parametrize("entry", UNPINNED.values(), ids=UNPINNED)
def test_a_package_that_a_lock_does_not_pin_is_refused(tmp_path: Path, entry: dict[str, object]) -> None:
    packages = json.loads(NPM_LOCK)["packages"] | {"node_modules/minimist": entry}
    lock = tmp_path / "package-lock.json"
    lock.write_text(json.dumps({"packages": packages}))
    recipe = BundleRecipe(name="json5", kind="npm", package="json5", version="1.0.1", lock=lock)
    with pytest.raises(ConfigError, match="has no sha512 of node_modules/minimist"):
        bundles.container_name(recipe)


@pytest.mark.parametrize("name", FROM_NPM)
def test_shipped_npm_locks_are_of_the_shipped_versions_and_no_other_is_taken(name: str) -> None:
    recipe, other = shipped(name).bundle, shipped(name, version="0.0.1").bundle
    assert recipe
    assert other
    assert bundles.container_name(recipe)
    with pytest.raises(
        ConfigError, match=r"is for version \S+, not for 0\.0\.1\. Make a lock of that version"
    ):
        bundles.container_name(other)


@pytest.mark.parametrize("name", ["claude_code", "codex", "kimi_code", "qwen_code"])
def test_shipped_npm_locks_name_packages_for_other_machines_too(name: str) -> None:
    recipe = shipped(name).bundle
    assert recipe
    assert recipe.lock
    packages = json.loads(recipe.lock.read_text())["packages"].values()
    machines = {cpu for about in packages for cpu in about.get("cpu", ())}
    assert {"x64", "arm64"} <= machines


# --- content: pure ----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "content"
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "agent").write_bytes(b"\x7fELF" + bytes(100))
    (place / "bin" / "agent").chmod(0o755)
    (place / "lib.py").write_text("x = 1\n")
    (place / "link").symlink_to("lib.py")
    return place


def symlink(place: Path, target: str) -> Path:
    place.symlink_to(target)
    return place


def rewrite(path: str, content: bytes) -> Change:
    return lambda place: (place / path).write_bytes(content)


CHANGES: dict[str, Change] = {
    "one byte": rewrite("bin/agent", b"\x7fELF" + bytes(99) + b"\x01"),
    "one byte less": rewrite("bin/agent", b"\x7fELF" + bytes(99)),
    "emptied": rewrite("lib.py", b""),
    "a new file": rewrite("new.py", b""),
    "an empty folder": lambda place: (place / "empty").mkdir(),
    "a file gone": lambda place: (place / "lib.py").unlink(),
    "renamed": lambda place: (place / "lib.py").rename(place / "library.py"),
    "moved": lambda place: (place / "lib.py").rename(place / "bin" / "lib.py"),
    "bytecode": rewrite("evil.pyc", b"\xf3\r\r\n"),
    "a hidden file": rewrite(".hidden", b"x"),
    "executable": lambda place: (place / "lib.py").chmod(0o755),
    "writable": lambda place: (place / "bin" / "agent").chmod(0o757),
    "setuid": lambda place: (place / "bin" / "agent").chmod(0o4755),
    "the folder's mode": lambda place: (place / "bin").chmod(0o777),
    "another target": lambda place: symlink(place / "new", "bin/agent").replace(place / "link"),
    "a file for a link": lambda place: (place / "lib.py").replace(place / "link"),
    "a name with a line end": rewrite("lib.py\n12 x", b""),
    "a pipe": lambda place: os.mkfifo(place / "pipe"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_changes_in_a_bundle_changes_its_digest(folder: Path, change: Change) -> None:
    before = content.digest(str(folder))
    change(folder)
    assert content.digest(str(folder)) != before


def test_times_and_the_order_of_making_do_not(folder: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    for name in ("link", "lib.py", "bin"):
        if (folder / name).is_dir():
            shutil.copytree(folder / name, again / name)
        else:
            shutil.copy(folder / name, again / name, follow_symlinks=False)
    os.utime(again / "lib.py", (1, 1))
    assert content.digest(str(again)) == content.digest(str(folder))


# --- Debian's signature -----------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("debootstrap") is None, reason="only where Debian is bootstrapped")
@pytest.mark.skipif(os.geteuid() != 0, reason="debootstrap needs root")
@pytest.mark.parametrize("with_keyring", [True, False])
def test_an_archive_that_debian_has_not_signed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, with_keyring: bool
) -> None:
    """Without these options, debootstrap only warns that it cannot check the archive, and goes on."""
    release = tmp_path / "mirror" / "dists" / base_image.SUITE
    release.mkdir(parents=True)
    (release / "Release").write_text(
        f"Suite: stable\nCodename: {base_image.SUITE}\nComponents: main\nArchitectures: amd64 arm64\n"
    )
    if not with_keyring:
        monkeypatch.setattr(base_image, "KEYRING", tmp_path / "absent.gpg")
    command = base_image.bootstrap_command(tmp_path / "root", f"file://{tmp_path / 'mirror'}")
    with pytest.raises(ImageError, match=r"(?is)debootstrap.*(release\.gpg|signature|keyring)"):
        base_image._run(command)
    unchecked = [word for word in command if not word.startswith(("--force-check-gpg", "--keyring"))]
    careless = engine.output_of([*unchecked[:1], "--no-check-gpg", *unchecked[1:]], 60)
    assert "Couldn't find these debs" in careless.stdout or "Packages" in careless.stdout, (
        "else the mirror is not refused for its signature"
    )


# --- building: real containers, real registries -----------------------------------------------------------------------


@pytest.mark.bundle
def test_bundle_is_installed_once_and_says_what_is_in_it(
    client: docker.DockerClient, built: BundleRecipe
) -> None:
    bundles.ensure(client, [], print)
    messages: list[str] = []
    installed = bundles.ensure(client, [built], messages.append)
    assert set(installed) == {"python", "small"}
    assert bundles.container_name(built).endswith(installed["small"].recipe[:12])
    assert messages[0] == "Installing bundle small"
    assert bundles.ensure(client, [built], pytest.fail) == installed
    printed = run_in(client, base_image.tag(), [built], "cat", "/opt/assay/small/bundle.json")
    assert json.loads(printed) == {"name": "small", "installed": [{"name": "six", "version": "1.17.0"}]}


@pytest.mark.bundle
def test_two_installations_have_one_content_and_another_version_has_another(
    client: docker.DockerClient, built: BundleRecipe, tmp_path: Path
) -> None:
    """The comment makes it another recipe, so it is installed once more."""
    assert built.lock
    lock = tmp_path / "other.lock"
    lock.write_text(f"# once more\n{built.lock.read_text()}")
    again = built.model_copy(update={"lock": lock})
    try:
        first = bundles.ensure(client, [built], print)["small"]
        second = bundles.ensure(client, [again], print)["small"]
        assert first.recipe != second.recipe
        assert first.content == second.content
        volume = Path(client.volumes.get(bundles.container_name(again)).attrs["Mountpoint"])
        if volume.is_dir():  # otherwise the engine is on another machine
            assert content.digest(str(volume)) == second.content
    finally:
        if container := find(client, again):
            bundles._remove(client, container)


@pytest.mark.bundle
def test_the_runtime_names_the_debian_packages_that_it_is_made_of(client: docker.DockerClient) -> None:
    bundles.ensure(client, [], print)
    printed = run_in(client, base_image.tag(), [], "cat", "/opt/assay/python/debian.packages")
    lines = dict(line.split(" ") for line in printed.splitlines())
    names = {name.partition("=")[0] for name in lines}
    assert {"libc6", "python3.13-minimal", "libssl3t64"} <= names
    assert all(len(digest) == 64 or digest == "unknown" for digest in lines.values())


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
    with pytest.raises(BundleError, match=r"(?s)bundle small could not be installed:.*[Hh]ash mismatch"):
        bundles.ensure(client, [built], print)
    assert find(client, built) is None
    assert volumes(client, built) == []


@pytest.mark.bundle
def test_a_failed_installation_that_a_waiting_runner_removed_first_ended_in_a_traceback(
    client: docker.DockerClient, built: BundleRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other runner sees the same exit code, and removes the container before its output is read."""
    assert built.lock
    built.lock.write_text(LOCK.replace("4721f391", "00000000"))
    bundles._build.cache_clear()
    bundles.ensure(client, [], print)
    ours, theirs = bundles._outcome, list[str]()

    def outcome(container: Container, stop: Event) -> int | None:
        code = ours(container, stop)
        if not theirs:
            theirs.append(str(container.id))
            bundles._remove(client, container)
        return code

    monkeypatch.setattr(bundles, "_outcome", outcome)
    with pytest.raises(BundleError, match=r"(?s)bundle small could not be installed:.*[Hh]ash mismatch"):
        bundles._complete(client, bundles._build(built), print, Event())


@pytest.mark.bundle
def test_two_runners_install_it_once(client: docker.DockerClient, built: BundleRecipe) -> None:
    bundles.ensure(client, [], print)
    messages: list[str] = []
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: bundles.ensure(client, [built], messages.append), range(4)))
    assert len({result["small"] for result in results}) == 1
    assert messages.count("Installing bundle small") == 1
    assert messages.count("Waiting for another command that installs bundle small") == 3


@pytest.mark.bundle
def test_installation_that_another_runner_spoiled_is_done_again(
    client: docker.DockerClient, built: BundleRecipe
) -> None:
    """A crash of the machine leaves a container with another exit code, and a half-full volume."""
    name = bundles.container_name(built)
    bundles.ensure(client, [], print)
    volume = {name: {"bind": "/opt/assay/small", "mode": "rw"}}
    spoil = ["sh", "-c", "echo half > /opt/assay/small/half; exit 137"]
    client.containers.run(base_image.tag(), spoil, name=name, volumes=volume, detach=True)
    bundles.ensure(client, [built], print)
    assert "half" not in run_in(client, base_image.tag(), [built], "ls", "/opt/assay/small")


@pytest.mark.bundle
def test_installation_whose_runner_died_before_its_start_is_done_again(
    client: docker.DockerClient, built: BundleRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that was never started reports exit code 0, like a complete one."""
    bundles.ensure(client, [], print)
    client.containers.create(base_image.tag(), ["true"], name=bundles.container_name(built))
    monkeypatch.setattr(bundles, "_START_SECONDS", 0.5)
    bundles.ensure(client, [built], print)
    assert "bundle.json" in run_in(client, base_image.tag(), [built], "ls", "/opt/assay/small")


@pytest.mark.bundle
@pytest.mark.parametrize("of_agent", [True, False])
def test_a_bundle_that_a_prune_removed_was_the_images_or_the_agents_fault(
    client: docker.DockerClient, built: BundleRecipe, *, of_agent: bool
) -> None:
    """With an `ImageError`, a sweep went on without one valid trial, or judged 0. An `EngineError` ends it."""
    provider = DockerSandboxes()
    provider.prepare([built], print)
    base = provider.image(Environment(image=base_image.tag()))
    spec = SandboxSpec(name="pruned", image=base, environment=Environment(), bundles=(built,))
    with provider.open(SandboxSpec(name="agents", image=base, environment=Environment())) as machine:
        if of_agent:
            spec = spec.model_copy(update={"image": machine.snapshot()})
        client.api.remove_container(bundles.container_name(built))  # a prune leaves the volume
        with pytest.raises(EngineError, match=r"assay-bundle-small.*same command"), provider.open(spec):
            pass
    provider.prepare([built], print)
    with provider.open(spec.model_copy(update={"image": base})):
        pass


@pytest.mark.bundle
def test_stopped_installation_leaves_nothing(client: docker.DockerClient, built: BundleRecipe) -> None:
    bundles.ensure(client, [], print)
    stop = Event()
    Timer(0.4, stop.set).start()
    with pytest.raises(BundleError, match="interrupted"):
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
    printed = run_in(client, empty_image, [], python, "-I", "-c", code)
    assert printed == "/opt/assay/python/bin/python3 1\n"


@pytest.mark.bundle
def test_supervisor_runs_in_an_image_without_a_single_file(
    client: docker.DockerClient, empty_image: str
) -> None:
    bundles.ensure(client, [], print)
    command = (*SUPERVISOR, "--", PYTHON, "-c", "print('in')")
    assert run_in(client, empty_image, [], *command) == "in\n"


@pytest.mark.bundle
def test_runtime_maps_no_library_of_the_image(client: docker.DockerClient) -> None:
    code = "import ssl, sqlite3, ctypes; print(open('/proc/self/maps').read())"
    printed = run_in(client, base_image.tag(), [], "/opt/assay/python/bin/python3", "-I", "-c", code)
    libraries = {line.split()[-1] for line in printed.splitlines() if ".so" in line}
    assert libraries
    assert all(library.startswith("/opt/assay/python/lib/") for library in libraries)


@pytest.mark.bundle
def test_children_of_the_runtime_use_the_images_own_libraries(client: docker.DockerClient) -> None:
    leaked = "sorted(name for name in os.environ if name.startswith('LD_'))"
    code = f"import os, subprocess; print({leaked}); subprocess.run(['git', '--version'])"
    printed = run_in(client, base_image.tag(), [], "/opt/assay/python/bin/python3", "-I", "-u", "-c", code)
    assert printed.startswith("[]\ngit version")


@pytest.mark.bundle
def test_bundle_is_read_only_for_root_too(client: docker.DockerClient) -> None:
    bundles.ensure(client, [], print)
    with pytest.raises(ContainerError, match="Read-only file system"):
        client.containers.run(
            base_image.tag(),
            ["touch", "/opt/assay/python/supervise.py"],
            volumes_from=[f"{bundles.runtime_container()}:ro"],
            network_mode="none",
            remove=True,
        )


@pytest.mark.bundle
def test_node_agents_are_of_their_versions_and_bring_their_own_node(
    client: docker.DockerClient, empty_image: str, tmp_path: Path
) -> None:
    """Their dependencies are those of the lock, although the registry has newer ones."""
    lock = tmp_path / "package-lock.json"
    lock.write_text(NPM_LOCK)
    recipe = shipped(
        "kimi_code", version="1.0.1", bundle={"name": "json5", "package": "json5", "lock": str(lock)}
    ).bundle
    assert recipe
    try:
        bundles.ensure(client, [recipe], print)
        command = ("/opt/assay/json5/bin/node", "/opt/assay/json5/bin/json5", "--version")
        assert run_in(client, empty_image, [recipe], *command) == "1.0.1\n"
        printed = run_in(client, base_image.tag(), [recipe], "cat", "/opt/assay/json5/bundle.json")
        assert {"name": "minimist", "version": "1.2.7"} in json.loads(printed)["installed"]
    finally:
        if container := find(client, recipe):
            bundles._remove(client, container)


@pytest.mark.bundle
@pytest.mark.skipif("opencode" not in TRIED, reason="ASSAY_EVERY_AGENT=1 installs it")
def test_of_several_native_variants_the_one_for_every_machine_is_installed(
    client: docker.DockerClient,
) -> None:
    """There are four, for two C libraries and two kinds of processors, and npm installs all: there was no bundle."""
    recipe = shipped("opencode").bundle
    assert recipe
    bundles.ensure(client, [recipe], print)
    printed = run_in(client, base_image.tag(), [recipe], "cat", "/opt/assay/opencode/bundle.json")
    names = {one["name"] for one in json.loads(printed)["installed"]}
    assert names == {"opencode-ai", "opencode-linux-x64-baseline"}


@pytest.mark.bundle
def test_npm_package_that_is_not_what_was_locked_is_refused(
    client: docker.DockerClient, tmp_path: Path
) -> None:
    lock = tmp_path / "package-lock.json"
    lock.write_text(NPM_LOCK.replace("sha512-bzfL1", "sha512-AAAA1"))
    recipe = BundleRecipe(name="json5", kind="npm", package="json5", version="1.0.1", lock=lock, node=True)
    with pytest.raises(BundleError, match=r"(?s)bundle json5 could not be installed:.*EINTEGRITY"):
        bundles.ensure(client, [recipe], print)
    assert find(client, recipe) is None


@pytest.mark.bundle
def test_npm_package_that_the_lock_does_not_name_is_refused(
    client: docker.DockerClient, tmp_path: Path
) -> None:
    """By default npm fetches what a lock lacks."""
    locked = json.loads(NPM_LOCK)
    del locked["packages"]["node_modules/minimist"]
    lock = tmp_path / "package-lock.json"
    lock.write_text(json.dumps(locked))
    recipe = BundleRecipe(name="json5", kind="npm", package="json5", version="1.0.1", lock=lock, node=True)
    with pytest.raises(BundleError, match="not as in the lock: node_modules/minimist"):
        bundles.ensure(client, [recipe], print)
    assert find(client, recipe) is None


@pytest.mark.bundle
def test_npm_package_without_the_native_program_is_refused(
    client: docker.DockerClient, tmp_path: Path
) -> None:
    lock = tmp_path / "package-lock.json"
    lock.write_text(NPM_LOCK)
    recipe = BundleRecipe(name="json5", kind="npm", package="json5", version="1.0.1", lock=lock)
    with pytest.raises(BundleError, match="expected one native program named json5, found: none"):
        bundles.ensure(client, [recipe], print)
    assert find(client, recipe) is None
