"""Attacks by an image on the interpreters that judge inside it.

The image is full of traps: each place and variable that a loader, a C library, OpenSSL or a Python reads names a file
that is visible once it is loaded. The agents' interpreter behaves like any other and loads these files, which proves
that each trap works.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from docker import APIClient
from docker.models.containers import Container

from runner.benchmarks.project_setup import watch_inside
from runner.benchmarks.project_setup.rerun import CODE, PLACE, watch_command
from runner.records import Environment, Image, SandboxSpec
from runner.records.cases import Case, CaseLimits, CaseSide
from runner.sandbox.cases import inside
from runner.sandbox.docker import base_image, bundles, engine
from runner.sandbox.docker.container import DockerSandbox
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.inside import IDLE, PYTHON, ROOT, SUPERVISOR
from tests.security.conftest import AGENTS
from tests.support.cases_factory import prepared
from tests.support.look_inside import run_inside
from tests.support.waiting import until

pytestmark = pytest.mark.docker

CLOSED = f"{ROOT}/python/closed/"
STANDARD = f"{ROOT}/python/lib/python3.13/"
NSS = "passwd: evil files\nhosts: evil files\n"
PROVIDER = """openssl_conf = a
[a]
providers = b
[b]
evil = c
[c]
module = /trap/provider.so
activate = 1
"""
LANDMARKS = ("/opt/assay", "/opt", "")
"""Folders above the bundle, where a Python looks for its library."""
TRAP = """ARG BASE
FROM ${BASE}
COPY traps /traps
RUN sh /traps/lay.sh
WORKDIR /trap
"""
LAY = f"""set -e
mkdir /trap; cd /trap
library=$(find /usr/lib -name libssl.so.3 | head -n 1) system=$(dirname $library)
for name in provider.so preload.so gconv.so preloaded.so audit.so libc.so.6 libm.so.6 libz.so.1 libexpat.so.1 \\
    libffi.so.8 libgcc_s.so.1 $system/libnss_evil.so.2 $system/libevil.so.1; do cp -L $library $name; done
ldconfig
cp /traps/openssl.cnf /usr/lib/ssl/openssl.cnf
cp /traps/nsswitch.conf /etc/nsswitch.conf
cp /traps/tz /etc/localtime
mkdir -p $system/gconv
rm -f $system/gconv/gconv-modules.cache
echo 'module EVIL// INTERNAL /trap/gconv 1' > $system/gconv/gconv-modules
for place in {" ".join(f"'{place}'" for place in LANDMARKS)}; do
    mkdir -p $place/lib/python3.13
    touch $place/lib/python313.zip
    cp /traps/taken.py $place/lib/python3.13/os.py
    cp /traps/taken.py $place/lib/python3.13/encodings.py
    echo home = /trap > $place/pyvenv.cfg
done
for name in sitecustomize usercustomize json encodings; do cp /traps/taken.py $name.py; done
echo /trap/preload.so > /etc/ld.so.preload
"""
"""Script that lays the traps. They are copies of one library that stays loaded although it is of no use."""
FILES = {
    "lay.sh": LAY,
    "openssl.cnf": PROVIDER,
    "nsswitch.conf": NSS,
    "tz": "TZif2 is none",
    "taken.py": "raise SystemExit('taken')\n",
}
PROBE = """
import ctypes, json, os, sys, time
def tries(look):
    try:
        look()
    except Exception:
        pass
def resolve():
    import socket
    socket.getaddrinfo("evil.example", 80)
def users():
    import pwd
    pwd.getpwnam("nobody")
def digests():
    import hashlib
    hashlib.sha256(b"x"), hashlib.new("md5")
def localised():
    import locale
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
looks = {
    "digests": digests, "users": users, "names": resolve, "locale": localised, "times": time.localtime,
    "libraries": lambda: ctypes.CDLL("libevil.so.1"),
}
for look in looks.values():
    tries(look)
maps = {line.split(maxsplit=5)[5] for line in open("/proc/self/maps").read().splitlines() if "/" in line}
files = {module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)}
print(json.dumps({"maps": sorted(maps), "files": sorted(files), "path": sys.path, "environ": dict(os.environ)}))
"""
"""Program that makes a C library and a Python look for all their files, and prints what was loaded."""


@pytest.fixture(scope="module")
def sandboxes() -> DockerSandboxes:
    return prepared()


@pytest.fixture(scope="module")
def image(sandboxes: DockerSandboxes, tmp_path_factory: pytest.TempPathFactory) -> Image:
    context = tmp_path_factory.mktemp("trap")
    (context / "traps").mkdir()
    for name, text in FILES.items():
        (context / "traps" / name).write_text(text)
    (context / "Dockerfile").write_text(TRAP)
    digest = hashlib.sha256(json.dumps([TRAP, FILES]).encode()).hexdigest()
    return sandboxes.image(Environment(context=context, build_args={"BASE": base_image.tag()}, digest=digest))


@pytest.fixture(scope="module")
def machine(image: Image) -> Iterator[Container]:
    """Start a container of the trap with the runtime, without the mounts by which a sandbox hides parts of an image."""
    client = engine.connect()
    container = client.containers.create(
        image.id,
        entrypoint=list(IDLE),
        network_mode="none",
        volumes_from=[f"{bundles.runtime_container()}:ro"],
        labels={"assay.role": "test"},
    )
    try:
        container.start()
        yield container
    finally:
        container.remove(force=True)


def output_of(machine: Container, *argv: str, env: dict[str, str] | None = None) -> tuple[int, bytes]:
    """Return exit code and output of a command. It gets these variables as if the image had set them."""
    code, output = machine.exec_run(list(argv), environment=env or {})
    assert isinstance(output, bytes)
    return int(code or 0), output


def found(machine: Container, *python: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the report of the probe on this interpreter."""
    code, output = output_of(machine, *python, "-c", PROBE, env=env)
    assert code == 0, output
    report: dict[str, Any] = json.loads(output)
    return report


@pytest.fixture(scope="module")
def ours(machine: Container) -> dict[str, Any]:
    return found(machine, PYTHON)


@pytest.fixture(scope="module")
def any_other(machine: Container) -> dict[str, Any]:
    """Return the report of the agents' interpreter, isolated and without `site`, as ours was once started."""
    return found(machine, AGENTS, "-I", "-S")


@pytest.mark.parametrize(
    "bait",
    [
        "/trap/provider.so",
        "/trap/preload.so",
        "libnss_evil.so.2",
        "libevil.so.1",
        "/usr/lib/locale/C.utf8/LC_CTYPE",
    ],
    ids=["OpenSSL", "ld.so.preload", "NSS", "ld.so.cache", "a locale"],
)
def test_no_file_of_the_image_is_loaded_into_an_interpreter_of_ours(
    ours: dict[str, Any], any_other: dict[str, Any], bait: str
) -> None:
    assert [path for path in any_other["maps"] if path.endswith(bait)], "the trap does not work"
    assert not [path for path in ours["maps"] if path.endswith(bait)]


def test_no_converter_of_the_image_is_loaded_into_an_interpreter_of_ours(machine: Container) -> None:
    code = "import ctypes; print(ctypes.CDLL(None).iconv_open(b'UTF-8', b'EVIL'), open('/proc/self/maps').read())"
    (_, taken), (exited, mine) = (output_of(machine, python, "-ISc", code) for python in (AGENTS, PYTHON))
    assert b"gconv_dl" in taken or b"/trap/gconv.so" in taken, "the trap does not work"
    assert (exited, mine.split()[0], b"/trap" in mine) == (0, b"-1", False)


def test_an_interpreter_of_ours_maps_and_imports_nothing_but_the_bundles(ours: dict[str, Any]) -> None:
    assert [path for path in ours["maps"] if not path.startswith((CLOSED, STANDARD))] == []
    assert [path for path in ours["files"] if not path.startswith(STANDARD)] == []
    assert [path for path in ours["path"] if not path.startswith(f"{ROOT}/python/lib/")] == []


VARIABLES = {
    "LD_PRELOAD": "/trap/preloaded.so",
    "LD_AUDIT": "/trap/audit.so",
    "LD_LIBRARY_PATH": "/trap",
    "LD_TRACE_LOADED_OBJECTS": "1",
    "LD_SHOW_AUXV": "1",
    "LD_DEBUG": "all",
    "LD_DEBUG_OUTPUT": "/trap/debug",
    "LD_BIND_NOW": "1",
    "LD_PROFILE": "libc.so.6",
    "LD_ORIGIN_PATH": "/trap",
    "GLIBC_TUNABLES": "glibc.malloc.check=3:glibc.rtld.nns=1:glibc.malloc.perturb=170",
    "MALLOC_PERTURB_": "170",
    "MALLOC_ARENA_MAX": "0",
    "LOCPATH": "/trap",
    "LANG": "de_DE.UTF-8",
    "LC_ALL": "C.UTF-8",
    "LANGUAGE": "de",
    "NLSPATH": "/trap/%N",
    "GCONV_PATH": "/trap",
    "TZ": ":/trap/tz",
    "TZDIR": "/trap",
    "RES_OPTIONS": "debug",
    "HOSTALIASES": "/trap/aliases",
    "LOCALDOMAIN": "evil.example",
    "OPENSSL_CONF": "/traps/openssl.cnf",
    "OPENSSL_MODULES": "/trap",
    "OPENSSL_ENGINES": "/trap",
    "SSL_CERT_FILE": "/trap/cert",
    "TERMINFO": "/trap",
    "TERM": "evil",
    "INPUTRC": "/trap/inputrc",
    "PYTHONHOME": "/trap",
    "PYTHONPATH": "/trap",
    "PYTHONSTARTUP": "/trap/json.py",
    "PYTHONINSPECT": "1",
    "PYTHONPLATLIBDIR": "/trap",
    "PYTHONUSERBASE": "/trap",
    "PYTHONMALLOC": "debug",
    "PYTHONDEVMODE": "1",
    "PYTHONVERBOSE": "1",
    "PYTHONPYCACHEPREFIX": "/trap",
    "PYTHONWARNINGS": "error",
    "PYTHONBREAKPOINT": "json.x",
    "PYTHONIOENCODING": "utf-16",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "warn",
    "PYTHON_FROZEN_MODULES": "off",
    "__PYVENV_LAUNCHER__": "/trap/python3",
    "HOME": "/trap",
    "PATH": "/trap",
    "TMPDIR": "/trap",
    "+LD_PRELOAD": "/trap/preloaded.so",
}
"""Variables that an image can set, and `docker exec` passes on."""


@pytest.mark.parametrize("name", VARIABLES)
def test_no_variable_of_the_image_is_one_of_an_interpreter_of_ours(
    machine: Container, ours: dict[str, Any], name: str
) -> None:
    report = found(machine, PYTHON, env={name: VARIABLES[name]})
    assert report["environ"].pop(f"+{name}") == VARIABLES[name], "programs of the image get it"
    assert report["environ"].pop("LC_ALL") == "C"
    assert [other for other in report["environ"] if not other.startswith("+")] == []
    assert [report[what] for what in ("maps", "files", "path")] == [
        ours[what] for what in ("maps", "files", "path")
    ]


def test_any_other_interpreter_obeys_variables_of_the_image(machine: Container) -> None:
    taken = found(machine, AGENTS, "-I", "-S", env={"LD_PRELOAD": VARIABLES["LD_PRELOAD"]})["maps"]
    assert VARIABLES["LD_PRELOAD"] in taken, "the trap does not work"


def test_programs_run_for_the_image_get_exactly_the_images_variables(machine: Container) -> None:
    harmless = {name: value for name, value in VARIABLES.items() if not name.startswith("LD_")}
    given = harmless | {"PATH": "/usr/bin:/bin", "EMPTY": "", "LINES": "a\nb=c", "LD_BIND_NOW": "1"}
    direct, supervised = (
        output_of(machine, *before, "env", "-0", env=given)[1].split(b"\0")
        for before in ([], [*SUPERVISOR, "--"])
    )
    assert sorted(supervised) == sorted(direct)
    assert {b"LD_BIND_NOW=1", b"LINES=a\nb=c", b"EMPTY=", b"LC_ALL=C.UTF-8"} <= set(supervised)


def test_our_interpreter_ignores_the_name_it_is_called_by(machine: Container) -> None:
    code = "import os, sys; print(sys.executable, sys.flags.isolated, sys.flags.no_site, *sys.path)"
    calls = (
        [PYTHON, "-c", code],
        ["bash", "-c", f"exec -a json {PYTHON} -c '{code}'"],
        ["bash", "-c", f"ln -sf {PYTHON} /trap/linked; cd /trap; PATH=/trap linked -c '{code}'"],
        ["bash", "-c", f"cd /trap; exec -a '' env -i {PYTHON} -c '{code}'"],
    )
    outputs = {output_of(machine, *call)[1].decode() for call in calls}
    assert len(outputs) == 1, outputs
    assert outputs.pop().startswith(f"{PYTHON} 1 1 {ROOT}/python/lib/")


def test_nobody_can_create_the_files_that_the_loader_reads(machine: Container) -> None:
    """`scripts/python.sh` redirects the system's paths to a folder in which only the kernel creates files."""
    tries = "for name in ld.so.cache ld.so.preload nsswitch.conf; do touch /sys/$name; done; mkdir /sys/lib"
    output = output_of(machine, "sh", "-c", f"{tries}; ls /sys; grep ' /sys ' /proc/mounts")[1].decode()
    assert "sysfs /sys sysfs" in output
    assert not {"ld.so.cache", "ld.so.preload", "nsswitch.conf", "lib"} & set(output.splitlines())


LOOK = """
import json, os
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        exe, argv = os.readlink(f"/proc/{pid}/exe"), open(f"/proc/{pid}/cmdline").read().split("\\0")
        maps = {line.split(maxsplit=5)[5] for line in open(f"/proc/{pid}/maps").read().splitlines() if " /" in line}
    except OSError:
        continue
    if exe.startswith("/opt/assay/") and str(os.getpid()) != pid:
        print(json.dumps([exe, " ".join(argv)[:3000], sorted(maps)]))
"""


def judges(api: APIClient, container: str) -> dict[str, list[str]]:
    """Return command line -> mapped files from outside the bundle, for each of our processes."""
    processes = [json.loads(line) for line in run_inside(api, container, PYTHON, "-c", LOOK).splitlines()]
    assert all(exe.startswith(CLOSED) for exe, *_ in processes)
    return {
        argv: [path for path in maps if not path.startswith((CLOSED, STANDARD))]
        for _, argv, maps in processes
    }


@pytest.mark.parametrize("how", ["overlay", "copy"])
def test_the_supervisor_of_cases_has_nothing_of_its_image(
    sandboxes: DockerSandboxes, image: Image, how: Literal["overlay", "copy"]
) -> None:
    side = CaseSide(name="trap", image=image, how=how, limits=CaseLimits(seconds=30))
    with sandboxes.cases(side) as box:
        processes = judges(box._api, box._containers[0])
        # The supervisor may be about to replace itself by the next program.
        until(lambda: any(inside.__name__ in argv for argv in judges(box._api, box._containers[0])))
        processes = judges(box._api, box._containers[0])
        result = box.run(Case(command_class="t", command="echo x > new"))
        after = judges(box._api, box._containers[0])  # processes that changed their user cannot be read
    assert any("signal.pause" in argv for argv in processes)
    assert {*map(tuple, processes.values()), *map(tuple, after.values())} == {()}
    assert (result.exit_code, [change.digest is None for change in result.changes]) == (0, [False])


def test_the_watcher_of_a_rerun_has_nothing_of_its_image(sandboxes: DockerSandboxes, image: Image) -> None:
    """The watcher is asked itself, in its state before the script: nobody else can read its memory."""
    spec = SandboxSpec(
        name="trap", image=image, environment=Environment(workdir="/tmp"), user="root", runtime=True
    )
    *python, program = watch_command(PYTHON, CODE)
    program, _, _ = program.partition("watch.main(")
    looks = (
        "from runner.benchmarks.project_setup.watch_inside import programs; programs.digest('/etc/passwd')"
    )
    with sandboxes.open(spec) as place:
        assert isinstance(place, DockerSandbox)
        place.put(Path(watch_inside.__file__).parent, PLACE)
        report = json.loads(run_inside(place._api, place._id, *python, f"{program}{looks}\n{PROBE}"))
        idle = judges(place._api, place._id)
    code = f"{CODE}/runner/benchmarks/project_setup/watch_inside/"
    assert [path for path in report["maps"] if not path.startswith((CLOSED, STANDARD))] == []
    assert [path for path in report["files"] if not path.startswith((STANDARD, code))] == []
    assert [len(idle), *idle.values()] == [1, []]
