"""Random logs: small ones against the slow definition, large ones for time and against a method of the judge's own."""

import random
import sys
import unittest
from collections import Counter, deque
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from judge import main, run

EVENTS = 100_000
SECONDS = 5.0


def slow(window, events):
    lines = []
    for number, (now, _) in enumerate(events):
        counts = Counter(user for when, user in events[: number + 1] if when > now - window)
        most, busiest = min((-count, user) for user, count in counts.items())
        lines.append(f"{len(counts)} {busiest} {-most}\n")
    return "".join(lines)


def distinct_and_most(window, events):
    """The first and the last number of each line, in linear time: how many users have each count."""
    recent, counts, having, most = deque(), Counter(), Counter(), 0
    for now, user in events:
        recent.append((now, user))
        having[counts[user]] -= 1
        counts[user] += 1
        having[counts[user]] += 1
        most = max(most, counts[user])
        while recent[0][0] <= now - window:
            _, gone = recent.popleft()
            having[counts[gone]] -= 1
            counts[gone] -= 1
            having[counts[gone]] += 1
            if not counts[gone]:
                del counts[gone]
        while not having[most]:
            most -= 1
        yield len(counts), counts, most


def log(count, users, step):
    now, events = random.randrange(10**6), []
    for _ in range(count):
        now += random.randrange(step)
        events.append((now, f"u{random.randrange(users)}"))
    return events


class Rollup(unittest.TestCase):
    def roll(self, window, events, seconds=SECONDS):
        result = run("python3", "rollup.py", str(window), stdin="".join(f"{s} {u}\n" for s, u in events), seconds=seconds)
        self.assertIsNotNone(result.code, f"not done after {seconds} s")
        self.assertEqual(result.code, 0, result.err[-500:])
        return result.out

    def check_large(self, window, events):
        lines = self.roll(window, events).splitlines()
        self.assertEqual(len(lines), len(events))
        for line, (distinct, counts, most) in zip(lines, distinct_and_most(window, events), strict=True):
            shown, busiest, count = line.split()
            self.assertEqual((int(shown), counts[busiest], int(count)), (distinct, most, most))

    def test_small_logs(self):
        for window, users, step in ((1, 3, 2), (5, 4, 2), (30, 40, 3), (10_000, 6, 4), (7, 3, 12)):
            events = log(150, users, step)
            self.assertEqual(self.roll(window, events), slow(window, events))

    def test_empty_log(self):
        self.assertEqual(self.roll(5, []), "")

    def test_large_window(self):
        self.check_large(10**9, log(EVENTS, 5_000, 3))

    def test_many_users_in_a_sliding_window(self):
        self.check_large(30_000, log(EVENTS, 30_000, 3))

    def test_one_user(self):
        self.check_large(40_000, log(EVENTS, 1, 2))


if __name__ == "__main__":
    main(Rollup)
