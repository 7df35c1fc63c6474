#!/bin/bash
set -euo pipefail
cat > /app/spans/__init__.py <<'PYTHON'
"""Sets of whole numbers, kept as spans. See README.md."""

import re

ENTRY = re.compile(r"\s*(-?[0-9]+)(?:-(-?[0-9]+))?\s*")


def normalize(spans):
    normal = []
    for start, stop in sorted((start, stop) for start, stop in spans if start < stop):
        if normal and start <= normal[-1][1]:
            normal[-1] = (normal[-1][0], max(stop, normal[-1][1]))
        else:
            normal.append((start, stop))
    return normal


def union(a, b):
    return normalize([*a, *b])


def subtract(a, b):
    holes, kept, first = normalize(b), [], 0
    for start, stop in normalize(a):
        while first < len(holes) and holes[first][1] <= start:
            first += 1
        hole = first
        while hole < len(holes) and holes[hole][0] < stop:
            kept.append((start, holes[hole][0]))
            start = holes[hole][1]
            hole += 1
        kept.append((start, stop))
    return normalize(kept)


def size(spans):
    return sum(stop - start for start, stop in normalize(spans))


def parse(text):
    if not text.strip():
        return []
    spans = []
    for entry in text.split(","):
        match = ENTRY.fullmatch(entry)
        if not match:
            raise ValueError(f"no number or range: {entry!r}")
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        if first > last:
            raise ValueError(f"range runs backwards: {entry!r}")
        spans.append((first, last + 1))
    return normalize(spans)


def render(spans):
    return ",".join(str(a) if b - a == 1 else f"{a}-{b - 1}" for a, b in normalize(spans))
PYTHON
