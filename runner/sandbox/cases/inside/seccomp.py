"""The seccomp filter of a case: refuses what the engine's own profile allows only because of the supervisor.

The Docker Engine derives its default profile from a container's capabilities. CAP_SYS_ADMIN, which only the supervisor
needs, opens system calls to everybody in the container. The filter closes them again, so a command has the calls of an
ordinary container. It also refuses new namespaces, in the same way as the default profile.
"""

from __future__ import annotations

import errno
import os
import struct

_NUMBERS = {
    "x86_64": {
        "bpf": 321, "clone": 56, "clone3": 435, "fanotify_init": 300, "fsconfig": 431, "fsmount": 432, "fsopen": 430,
        "fspick": 433, "mount": 165, "mount_setattr": 442, "move_mount": 429, "open_tree": 428,
        "perf_event_open": 298, "quotactl": 179, "quotactl_fd": 443, "setdomainname": 171, "sethostname": 170,
        "setns": 308, "syslog": 103, "umount2": 166, "unshare": 272,
    },
    "aarch64": {
        "bpf": 280, "clone": 220, "clone3": 435, "fanotify_init": 262, "fsconfig": 431, "fsmount": 432, "fsopen": 430,
        "fspick": 433, "mount": 40, "mount_setattr": 442, "move_mount": 429, "open_tree": 428,
        "perf_event_open": 241, "quotactl": 60, "quotactl_fd": 443, "setdomainname": 162, "sethostname": 161,
        "setns": 268, "syslog": 116, "umount2": 39, "unshare": 97,
    },
}  # fmt: skip
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000
"""Bit in the call numbers of x86-64's second calling convention, which has every call under another number."""
_NAMESPACES = 0x7E020000
"""Flags of clone(2) that make namespaces."""

_LOAD, _IF_EQUAL, _IF_LEAST, _IF_ANY, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _FLAGS = 0, 4, 16
"""Offsets in a filter's input. The flags are the lower half of the first argument."""
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000


def program() -> bytes:
    """Return the filter for this machine. Raises `KeyError` on an architecture that is not in the table."""
    machine = os.uname().machine
    numbers = dict(_NUMBERS[machine])
    clone, clone3 = numbers.pop("clone"), numbers.pop("clone3")
    refused = sorted(numbers.values())
    # A jump counts the instructions to skip. These stand last, and the last check falls through to the first.
    endings = [
        _op(_RETURN, _ALLOW),
        _op(_LOAD, _FLAGS),
        _op(_IF_ANY, _NAMESPACES, 1, 0),
        _op(_RETURN, _ALLOW),
        _op(_RETURN, _REFUSE | errno.EPERM),
        _op(_RETURN, _REFUSE | errno.ENOSYS),
    ]
    flags, refuse, absent = 1, 4, 5
    checks = [(_IF_LEAST, _X32, absent), (_IF_EQUAL, clone3, absent), (_IF_EQUAL, clone, flags)]
    checks += [(_IF_EQUAL, number, refuse) for number in refused]
    below = range(len(checks) - 1, -1, -1)
    body = [
        _op(kind, value, left + ending) for left, (kind, value, ending) in zip(below, checks, strict=True)
    ]
    head = [
        _op(_LOAD, _ARCH),
        _op(_IF_EQUAL, _ARCHITECTURE[machine], 0, 1 + len(body) + absent),
        _op(_LOAD, _NUMBER),
    ]
    return b"".join([*head, *body, *endings])


def _op(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)
