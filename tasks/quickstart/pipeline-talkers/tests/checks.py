"""Random logs, a few of them with ties and oddities made to order."""

import random
import sys
import unittest
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from judge import main, run

PATHS = ("/", "/a b", '/search?q=" 200 99', "/img/200/7.png", "/über", "/x 404 1")


def talkers(entries, limit):
    sums = Counter()
    for client, _, status, sent in entries:
        if 200 <= status <= 299 and sent != "-":
            sums[client] += int(sent)
    ranked = sorted((-total, client.encode(), client) for client, total in sums.items() if total)
    return "".join(f"{-total} {client}\n" for total, _, client in ranked[:limit])


class Talkers(unittest.TestCase):
    def check(self, entries, *arguments):
        log = "".join(f'{c} 08:00:{n % 60:02} "GET {p}" {s} {b}\n' for n, (c, p, s, b) in enumerate(entries))
        result = run("bash", "talkers.sh", *arguments, stdin=log)
        self.assertEqual(result.out, talkers(entries, int(arguments[0]) if arguments else 5))

    def random_log(self, clients=12, lines=300):
        names = [f"10.{random.randrange(256)}.{random.randrange(256)}.{number}" for number in range(clients)]
        statuses = (200, 200, 206, 304, 404, 500, 299, 300, 199)
        return [
            (random.choice(names), random.choice(PATHS), random.choice(statuses), random.choice(("-", random.randrange(99999))))
            for _ in range(lines)
        ]

    def test_random_logs(self):
        for limit in ("1", "3", "20"):
            self.check(self.random_log(), limit)

    def test_five_by_default(self):
        self.check(self.random_log())

    def test_ties_by_name(self):
        entries = [(name, "/", 200, 700) for name in ("b", "a10", "a9", "B", "c")]
        self.check([*entries, ("z", "/", 200, 701)], "4")

    def test_nothing_sent(self):
        self.check([("a", "/", 204, "-"), ("b", "/", 200, 0), ("c", "/", 404, 50)], "3")

    def test_large_sums(self):
        self.check([("a", "/", 200, 3_000_000_000), ("a", "/", 200, 3_000_000_001), ("b", "/", 200, 6_000_000_000)], "2")


if __name__ == "__main__":
    main(Talkers)
