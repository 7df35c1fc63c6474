"""Random recordings, handed over in a file that nobody can read, decoded by the agent's program."""

import json
import random
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from judge import main, run
from recording import recording


class Decoder(unittest.TestCase):
    def check(self, records, damaged_share):
        data, expected = recording(random.Random(), records, damaged_share)
        with tempfile.NamedTemporaryFile(suffix=".tlm") as file:
            file.write(data)
            file.flush()
            Path(file.name).chmod(0o644)
            result = run("python3", "decode.py", file.name)
        self.assertEqual(result.code, 0, result.err[-500:])
        printed = [json.loads(line) for line in result.out.splitlines()]
        self.assertEqual(len(printed), len(expected))
        for line, wanted in zip(printed, expected, strict=True):
            self.assertEqual(line, wanted)

    def test_nothing_recorded(self):
        self.check(0, 0)

    def test_undamaged(self):
        self.check(500, 0)

    def test_damaged(self):
        for _ in range(4):
            self.check(120, 0.3)

    def test_nothing_but_damage(self):
        self.check(30, 1)

    def test_long(self):
        self.check(25_000, 0.05)


if __name__ == "__main__":
    main(Decoder)
