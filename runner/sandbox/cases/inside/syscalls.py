"""System calls that the standard library lacks, in every Python since 3.11. Each function raises `OSError`."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
from collections.abc import Container
from pathlib import Path

NEWNS, NEWIPC, NEWNET, NEWPID, NEWCGROUP = 0x00020000, 0x08000000, 0x40000000, 0x20000000, 0x02000000
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND = 1, 2, 4, 8, 32, 4096
_REC, _PRIVATE = 16384, 1 << 18
_DETACH = 2
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 22, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38
_SECCOMP_MODE_FILTER = 2
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_RT_SIGACTION = {"x86_64": 13, "aarch64": 134}
_SIGNALS = 64
_DEFAULT = bytes(32)
"""The kernel's `struct sigaction` for a signal's default action."""

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """Attach a file system, or change how it is attached."""
    given = (ctypes.c_char_p(text.encode()) for text in (source, target, kind))
    _check(_libc.mount(*given, ctypes.c_ulong(flags), ctypes.c_char_p(options.encode())), target)


def unmount(target: str) -> None:
    """Detach a file system lazily: one in use goes when its last user does."""
    _check(_libc.umount2(ctypes.c_char_p(target.encode()), _DETACH), target)


def unshare(flags: int) -> None:
    """Leave these namespaces for new ones."""
    _check(_libc.unshare(flags))


def own_mounts() -> None:
    """Make this process's mounts private: others neither see nor change them."""
    unshare(NEWNS)
    mount("", "/", "", _REC | _PRIVATE)


def enter(namespace: int, kind: int) -> None:
    """Enter the namespace of a file descriptor."""
    _check(_libc.setns(namespace, kind))


def default_signals(but: Container[int]) -> None:
    """Reset every signal except these to its default action, and block none.

    Programs inherit ignored and blocked signals from whatever started the engine. This asks the kernel itself, since
    the C library reserves 32 and 33 and refuses to set them. Raises `KeyError` on an architecture that is not in the
    table.
    """
    call = _RT_SIGACTION[os.uname().machine]
    for number in range(1, _SIGNALS + 1):
        if number not in but and number not in (signal.SIGKILL, signal.SIGSTOP):
            _check(_libc.syscall(ctypes.c_long(call), number, _DEFAULT, None, ctypes.c_size_t(_SIGNALS // 8)))
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def drop_bounding_set() -> None:
    """Prevent this process, its children and the programs they execute from ever gaining a capability."""
    for capability in range(int(Path("/proc/sys/kernel/cap_last_cap").read_text()) + 1):
        _prctl(_PR_CAPBSET_DROP, capability)


def no_new_privileges() -> None:
    """Disable setuid bits and file capabilities from now on."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def adopt_orphans() -> None:
    """Become the parent of orphaned descendants, to wait for them."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, however it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def filter_calls(program: bytes) -> None:
    """Install a seccomp filter: a classic BPF program of 8-byte instructions."""
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.c_char_p(header))


def loopback_up() -> None:
    """Start the loopback interface of a new network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


def _prctl(option: int, value: int, pointer: object = 0) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(value), pointer or ctypes.c_ulong(0), ctypes.c_ulong(0), 0))


def _check(result: int, path: str = "") -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
