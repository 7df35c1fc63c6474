"""The database is built the same everywhere, so the answers are known; the one in /app is not asked."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from judge import main, read

ANSWERS = {"june_cents": 902641, "best_customer": 36, "silent": [11, 22, 33, 44, 55]}


class Shop(unittest.TestCase):
    def test_answers(self):
        answers = json.loads(read("answers.json"))
        for key, expected in ANSWERS.items():
            with self.subTest(key):
                self.assertEqual(answers.get(key), expected)


if __name__ == "__main__":
    main(Shop)
