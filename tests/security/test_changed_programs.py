"""Tell by their paths alone which of an agent's changes tests may run, or read at a start."""

from __future__ import annotations

import pytest

from runner.benchmarks.harbor.machine_changes import Places, changed_programs, leaves
from runner.records import Changes

_PROGRAMS = """
/bin/cat /usr/bin/cat /usr/bin/bash /bin/sh /usr/bin/python3 /usr/bin/python3.11 /usr/local/bin/pytest
/usr/local/sbin/x /sbin/ldconfig /usr/lib/x86_64-linux-gnu/libc.so.6 /lib/x.so /lib64/ld-linux-x86-64.so.2
/etc/ld.so.preload /etc/ld.so.conf.d/x.conf /etc/ld.so.cache /etc/profile /etc/profile.d/x.sh /etc/bash.bashrc
/etc/environment /etc/passwd /etc/nsswitch.conf /etc/pip.conf /etc/apt/apt.conf.d/99x /etc/gitconfig
/etc/ssl/openssl.cnf
/etc/alternatives/python /etc/python3.11/sitecustomize.py /usr/lib/python3/dist-packages/sitecustomize.py
/usr/lib/python3/dist-packages/x.pth /usr/local/lib/python3.11/site-packages/x.pth /usr/lib/python3.11/json/__init__.py
/usr/local/lib/python3.11/dist-packages/pytest/__init__.py /usr/lib/node_modules/npm/index.js /usr/share/zoneinfo/UTC
/usr/lib/locale/C.utf8 /usr/lib/x86_64-linux-gnu/gconv/gconv-modules /opt/venv/bin/python /opt/tool/x
/var/lib/dpkg/status
/var/lib/x /nix/store/x /pytest.ini /conftest.py /tox.ini /setup.cfg /pyproject.toml /sitecustomize.py /boot/x /snap/x
/root/.bashrc /root/.profile /root/.bash_profile /root/.bash_login /root/.bash_aliases /root/.zshenv /root/.zshrc
/root/.npmrc /root/.yarnrc /root/.config/uv/uv.toml /root/.config/pip/pip.conf /root/.pip/pip.conf /root/.gitconfig
/root/.config/git/config /root/.cache/uv/wheels/x /root/.cache/pip/http/x /root/.local/bin/pytest /root/.local/bin/uv
/root/.local/lib/python3.11/site-packages/x.pth /root/.local/lib/python3.11/site-packages/pytest.py
/root/.local/share/uv/tools/x /root/.npm/_cacache/x /root/.cargo/bin/cargo /root/.cargo/config.toml /root/.curlrc
/root/.wgetrc /root/.pydistutils.cfg /root/.nvm/nvm.sh /root/.pyenv/shims/python /root/.condarc /root/.inputrc
/home/agent/.bashrc /home/agent/.local/bin/pytest /home/agent/.cache/uv/x /home/agent/.config/pip/pip.conf
/app/pytest.ini /app/.pytest.ini /app/conftest.py /app/deep/conftest.py /app/sitecustomize.py /app/usercustomize.py
/app/sitecustomize/__init__.py /app/conftest/__init__.py /app/sitecustomize.cpython-311-x86_64-linux-gnu.so
/app/x.pth /app/venv/lib/python3.11/site-packages/x.pth /app/.coveragerc /app/.npmrc /app/.pdbrc /app/uv.toml
/app/pip.conf
/app/json.py /app/pytest.py /app/os.so /app/_pytest /app/pluggy.py /app/.git/hooks/post-checkout /app/pyvenv.cfg
/app/pyproject.toml /app/setup.cfg /app/tox.ini /data/bin/x
/root/.node_modules/assert.js /root/.config/go/env /root/go/pkg/mod/example.org/x@v1/x.go /root/go/bin/gotestsum
/root/.cache/go-build/ab/cd /root/.cargo/registry/src/x /root/.cargo/env /root/.rustup/toolchains/x/bin/rustc
/root/.gradle/init.gradle /root/.gradle/init.d/x.gradle /root/.m2/settings.xml /root/.m2/repository/junit/x.jar
/root/.ipython/profile_default/startup/x.py /root/.gem/ruby/x /root/.Rprofile /root/.irbrc /root/.julia/config/x.jl
/var/cache/apt/archives/x.deb /var/cache/uv/wheels/x /var/cache/x
/root/.ssh/config /root/.ssh/rc /app/jest.config.js /app/vitest.config.ts /app/.mocharc.yml /app/.rspec /app/go.work
/app/.mvn/jvm.config /app/rust-toolchain.toml /app/.bundle/config
"""
_WORK = """
/app/out.txt /app/src/main.py /app/src/json.py /app/README.md /app/node_modules/x/index.js /app/.venv/bin/python
/app/.git/config /app/.git/objects/ab/cd /app/.git/hooks/pre-commit.sample /app/result.json /app/setup.py /app/Makefile
/app/tests/test_x.py /app/package.json /root/notes.txt /root/project/main.py /root/.bash_history.d/x /root/.viminfo
/home/agent/x /home/agent/.ssh/known_hosts /tmp/x /tmp/deep/y /var/tmp/x /srv/www/index.html /mnt/x /media/x
/results/out.csv /results/deep/x /run/x.pid /var/run/x /var/log/x.log /var/cache/apt/pkgcache.bin
/var/cache/debconf/x.dat /var/cache/apt/archives/lock
/var/lib/apt/lists/x /logs/agent/x /logs/artifacts/x /logs/verifier/reward.json /tests/test.sh /solution/solve.sh
/dev/x /proc/x /sys/x /etc/hosts /etc/resolv.conf /etc/hostname /opt/assay/python/x /.dockerenv
/usr/sbin/docker-init /app/quiet/pyproject.toml
"""
PROGRAMS, WORK = _PROGRAMS.split(), _WORK.split()


def _changes(path: str) -> Changes:
    """Return the engine's list for one added file. The folders above it have changed."""
    above, folders = path.rpartition("/")[0], set()
    while above:
        folders.add(above)
        above = above.rpartition("/")[0]
    added = {folder for folder in folders if folder == "/results"}
    return Changes(added=frozenset({path} | added), changed=frozenset(folders - added))


@pytest.mark.parametrize("path", PROGRAMS)
def test_what_tests_may_run_or_read_at_a_start_is_recorded(path: str) -> None:
    found = changed_programs(_changes(path), "/app", lambda _: True)
    assert (found.count, found.paths) == (1, (path,))


@pytest.mark.parametrize("path", WORK)
def test_the_agents_work_is_not_a_program(path: str) -> None:
    found = changed_programs(_changes(path), "/app", lambda path: "quiet" not in path)
    assert (found.count, found.paths) == (0, ())


@pytest.mark.parametrize("kind", ["added", "changed", "deleted"])
def test_any_kind_of_change_counts(kind: str) -> None:
    found = changed_programs(Changes(**{kind: frozenset({"/usr/bin/cat"})}), "/app", lambda _: True)
    assert found.paths == ("/usr/bin/cat",)


@pytest.mark.parametrize(
    "workdir", ["/", "", "/usr", "/etc", "/bin", "/usr/local", "/usr/lib", "/opt", "/var"]
)
def test_a_workspace_as_wide_as_the_system_exempts_nothing(workdir: str) -> None:
    changes = Changes(
        added=frozenset({"/usr/local/bin/x", "/etc/x", "/bin/x", "/usr/lib/x", "/opt/x", "/var/x"})
    )
    assert changed_programs(changes, workdir, lambda _: True).count == 6


@pytest.mark.parametrize("workdir", ["/app", "/usr/src/app", "/opt/app", "/root", "/home/agent", "/var/www"])
def test_a_workspace_of_its_own_is_the_agents(workdir: str) -> None:
    changes = Changes(added=frozenset({f"{workdir}/main.py", f"{workdir}/deep/x"}))
    assert changed_programs(changes, workdir, lambda _: True).count == 0


@pytest.mark.parametrize("top", ["opt", "lib32", "libx32", "usr", "etc", "snap", "nix", "libexec"])
def test_a_folder_with_a_meaning_is_not_the_agents_though_it_made_it(top: str) -> None:
    changes = Changes(added=frozenset({f"/{top}", f"/{top}/x"}))
    assert changed_programs(changes, "/app", lambda _: True).count == 1


def test_an_unknown_list_of_changes_is_not_an_empty_one() -> None:
    assert changed_programs(None, "/app", lambda _: True).count is None


def test_a_long_list_is_counted_and_cut() -> None:
    many = changed_programs(
        Changes(added=frozenset(f"/usr/bin/{n:05}" for n in range(5000))), "/app", lambda _: True
    )
    assert (many.count, len(many.paths)) == (5000, 50)
    long = changed_programs(Changes(added=frozenset({"/usr/" + "x" * 4000})), "/app", lambda _: True)
    assert len(long.paths[0]) == 300


def test_a_name_that_is_not_text_does_not_spoil_the_record() -> None:
    found = changed_programs(Changes(added=frozenset({"/usr/bin/\udcff"})), "/app", lambda _: True)
    assert found.model_dump_json()


def test_folders_that_hold_changes_are_not_changes_themselves() -> None:
    assert list(leaves({"/usr", "/usr/bin", "/usr/bin/x", "/etc"})) == ["/etc", "/usr/bin/x"]


@pytest.mark.parametrize(
    "path", ["/root/.cache/uv/x", "/root/.bashrc", "/home/a/.local/bin/x", "/tests/x", "/usr/bin/x"]
)
def test_start_up_files_of_a_home_are_not_laid_over_the_image(path: str) -> None:
    assert not Places.of(Changes(), "/app").is_work(path)


@pytest.mark.parametrize("path", ["/app/conftest.py", "/app/x", "/root/x", "/home/a/x", "/tmp/x", "/srv/x"])
def test_work_is_laid_over_the_image_with_start_up_files_of_the_workspace(path: str) -> None:
    assert Places.of(Changes(), "/app").is_work(path)
