"""What is left out of an agent's changes because the runner made it, and what an agent cannot hide behind that."""

from __future__ import annotations

import pytest

from runner.records import Changes
from runner.sandbox import usage
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
    made = Changes(added=frozenset(added), changed=frozenset(changed), deleted=frozenset(deleted))
    found = usage.without(PRELOADED, made)
    assert found.added | found.changed | found.deleted == left
