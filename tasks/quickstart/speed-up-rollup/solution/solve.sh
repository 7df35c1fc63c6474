#!/bin/bash
set -euo pipefail
cat > /app/rollup.py <<'PYTHON'
"""After each event: distinct users and the busiest user of the last SECONDS seconds.

A heap holds (-count, user) for every count that a user ever had; entries that are no longer true are dropped when they
come to the top. Each event adds at most two entries, so all of it takes n log n.
"""

import heapq
import sys
from collections import deque


def main():
    window = int(sys.argv[1])
    recent, counts, heap, lines = deque(), {}, [], []

    def change(user, by):
        counts[user] = counts.get(user, 0) + by
        if counts[user]:
            heapq.heappush(heap, (-counts[user], user))
        else:
            del counts[user]

    for line in sys.stdin:
        second, user = line.split()
        now = int(second)
        recent.append((now, user))
        change(user, 1)
        while recent[0][0] <= now - window:
            change(recent.popleft()[1], -1)
        while counts.get(heap[0][1]) != -heap[0][0]:
            heapq.heappop(heap)
        lines.append(f"{len(counts)} {heap[0][1]} {-heap[0][0]}\n")
    sys.stdout.writelines(lines)


if __name__ == "__main__":
    main()
PYTHON
