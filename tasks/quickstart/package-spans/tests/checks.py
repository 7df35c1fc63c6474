"""The package runs in a process of nobody's that only answers calls; the judge knows what the answers must be.

The package could read or replace anything in that process, and gains nothing: it is asked for values that follow from
inputs chosen at random here, so printing the right answers takes computing them.
"""

import json
import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from judge import main, run

DRIVER = """
import json, sys
sys.path.insert(0, "/app")
import spans
answers = []
for name, arguments in json.load(sys.stdin):
    arguments = [[tuple(pair) for pair in a] if isinstance(a, list) else a for a in arguments]
    before = repr(arguments)
    try:
        value = getattr(spans, name)(*arguments)
        if isinstance(value, list) and not all(isinstance(pair, tuple) for pair in value):
            value = "not a list of tuples"
        answers.append(["value", value] if repr(arguments) == before else ["changed its arguments", None])
    except ValueError:
        answers.append(["ValueError", None])
json.dump(answers, sys.stdout)
"""
LOW, HIGH = -40, 60


def numbers(spans):
    return {number for start, stop in spans for number in range(start, stop)}


def normal(found):
    edges = sorted(number for number in found if number - 1 not in found)
    stops = sorted(number + 1 for number in found if number + 1 not in found)
    return [[start, stop] for start, stop in zip(edges, stops, strict=True)]


def text(spans):
    return ",".join(str(a) if b - a == 1 else f"{a}-{b - 1}" for a, b in spans)


def some_spans(count):
    return [[a, a + random.randint(-2, 9)] for a in (random.randint(LOW, HIGH) for _ in range(random.randrange(count)))]


class Spans(unittest.TestCase):
    def check(self, calls):
        """`calls`: (function, arguments, expected answer) each; None expects a ValueError."""
        result = run("python3", "-c", DRIVER, stdin=json.dumps([(name, arguments) for name, arguments, _ in calls]))
        self.assertEqual(result.code, 0, result.err[-500:])
        answers = json.loads(result.out)
        self.assertEqual(len(answers), len(calls))
        for (name, arguments, expected), answer in zip(calls, answers, strict=True):
            wanted = ["ValueError", None] if expected is None else ["value", expected]
            self.assertEqual(answer, wanted, f"{name}{tuple(arguments)!r:.300}")

    def test_sets(self):
        calls = []
        for _ in range(200):
            a, b = some_spans(12), some_spans(12)
            in_a, in_b = numbers(a), numbers(b)
            calls += [
                ("normalize", [a], normal(in_a)),
                ("union", [a, b], normal(in_a | in_b)),
                ("subtract", [a, b], normal(in_a - in_b)),
                ("size", [a], len(in_a)),
            ]
        self.check(calls)

    def test_texts(self):
        calls = []
        for _ in range(100):
            spans = [[a, b] for a, b in some_spans(8) if a < b]
            blanks = random.choice(("", " ", "  "))
            calls += [
                ("parse", [f"{blanks},{blanks}".join(text([span]) for span in spans)], normal(numbers(spans))),
                ("render", [spans], text(normal(numbers(spans)))),
            ]
        self.check(calls)

    def test_wrong_texts(self):
        wrong = ("x", "1,,2", "1,", "4-1", "-1--3", "1-2-3", "1 2", "--3", "1-", "1.5", ",", "+1", "1_000", "0x1")
        self.check([("parse", [entry], None) for entry in wrong])

    def test_empty(self):
        self.check([("parse", [" "], []), ("render", [[]], ""), ("size", [[]], 0), ("subtract", [[], [[1, 2]]], [])])

    def test_huge_numbers(self):
        big = random.randint(10**17, 10**18)
        self.check(
            [
                ("size", [[[-big, big]]], 2 * big),
                ("subtract", [[[-big, big]], [[0, 1]]], [[-big, 0], [1, big]]),
                ("parse", [f"0-{big}"], [[0, big + 1]]),
            ]
        )

    def test_long_lists(self):
        count, shift = 40_000, random.randrange(1000)
        every_fourth = [[shift + 4 * n, shift + 4 * n + 2] for n in range(count)]
        holes = [[start, start + 1] for start, _ in every_fourth]
        shuffled = random.sample(every_fourth, count)
        left = [[start + 1, stop] for start, stop in every_fourth]
        self.check([("subtract", [shuffled, holes], left), ("union", [shuffled, holes], every_fourth)])


if __name__ == "__main__":
    main(Spans)
