"""Apply replacements to outputs, in a process of its own: `python3 -I -S normalize_outputs.py < JSON > JSON`.

Input: `{"rules": [[pattern, replacement], ...], "texts": [...]}`. Output: the list of the resulting texts, with null
for one that took too long. A pattern can be slow on an output that was made to be so, and a match cannot be
interrupted; so each text has a process with limits of its own.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys

CPU_SECONDS = 1
"""Processor time for one text. An output of a megabyte takes some tens of milliseconds for each pattern."""
MEMORY = 2 << 30
"""Bytes of address space of the process of one text."""
SLOW = 3
"""Texts that may take too long. The ones after them are given up, so that a tool cannot hold up its judge."""


def apply(text: str, rules: list[tuple[str, str]]) -> bytes:
    """Return the text after all replacements, in their order."""
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text)
    return text.encode("utf-8", "surrogatepass")


def apply_limited(text: str, rules: list[tuple[str, str]]) -> str | None:
    """Return the text after all replacements; None if its process does not end well."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            with os.fdopen(writing, "wb") as out:
                out.write(apply(text, rules))
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        result = stream.read()
    _, status = os.waitpid(child, 0)
    return result.decode("utf-8", "surrogatepass") if status == 0 else None


def main() -> None:
    """Read the texts, and write the results."""
    task = json.load(sys.stdin)
    found: list[str | None] = []
    slow = 0
    for text in task["texts"]:
        result = apply_limited(text, task["rules"]) if slow < SLOW else None
        slow += result is None
        found.append(result)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
