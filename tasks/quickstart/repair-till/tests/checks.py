"""Random baskets against a till that counts in tenths of a cent."""

import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from judge import main, run

NAMES = ("bread", "eggs", "green tea", "sparkling water", "salt", "dark rye flour")


def receipt(lines):
    amounts = []
    for quantity, name, cents in lines:
        tenths = quantity * cents * (9 if quantity >= 10 else 10)
        amounts.append((name, (tenths + 5) // 10))
    printed = [f"{name}: {due / 100:.2f}" for name, due in amounts]
    return "\n".join([*printed, f"TOTAL: {sum(due for _, due in amounts) / 100:.2f}", ""])


def basket(lines):
    return "".join(f"{quantity} {name} {cents // 100}.{cents % 100:02}\n" for quantity, name, cents in lines)


class Till(unittest.TestCase):
    def check(self, lines, text=None):
        result = run("python3", "till.py", stdin=basket(lines) if text is None else text)
        self.assertEqual(result.code, 0, result.err[-500:])
        self.assertEqual(result.out, receipt(lines))

    def test_random_baskets(self):
        for _ in range(8):
            self.check([(random.randint(1, 24), random.choice(NAMES), random.randint(1, 9999)) for _ in range(12)])

    def test_discount_starts_at_ten(self):
        self.check([(9, "eggs", 35), (10, "eggs", 35), (11, "eggs", 35)])

    def test_half_a_cent_goes_up(self):
        self.check([(15, "salt", cents) for cents in range(1, 120, 2)])

    def test_comments_and_empty_lines(self):
        lines = [(2, "bread", 320), (3, "green tea", 249)]
        first, second = basket(lines).splitlines()
        self.check(lines, f"# morning\n\n{first}\n   \n{second}\n#end")

    def test_empty_basket(self):
        self.check([], "")


if __name__ == "__main__":
    main(Till)
