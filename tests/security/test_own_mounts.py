"""Changes that the runner itself makes are not listed as the agent's, and hide nothing that the agent does."""

from __future__ import annotations

import pytest

from runner.records import Changes
from runner.sandbox.docker.disk_usage import without
from runner.sandbox.inside import PRELOADED

ETC = "/etc"


@pytest.mark.parametrize(
    ("changed", "added", "deleted", "left"),
    [
        ({ETC}, {PRELOADED}, set(), set()),
        ({ETC, "/etc/ld.so.conf"}, {PRELOADED}, set(), {ETC, "/etc/ld.so.conf"}),
        ({ETC}, {PRELOADED, "/etc/ld.so.preload2"}, set(), {ETC, "/etc/ld.so.preload2"}),
        ({ETC}, {PRELOADED, "/etc2/ld.so.preload"}, set(), {"/etc2/ld.so.preload"}),
        ({ETC}, {PRELOADED}, {"/etc/passwd"}, {ETC, "/etc/passwd"}),
        ({"/usr/bin/bash"}, {PRELOADED}, set(), {"/usr/bin/bash"}),
    ],
)
def test_nothing_but_the_place_of_the_mount_is_left_out(
    changed: set[str], added: set[str], deleted: set[str], left: set[str]
) -> None:
    changes = Changes(changed=frozenset(changed), added=frozenset(added), deleted=frozenset(deleted))
    remaining = without(PRELOADED, changes)
    assert remaining.changed | remaining.added | remaining.deleted == left
