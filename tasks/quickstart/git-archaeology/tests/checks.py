"""The hashes are known because the repository is built the same everywhere."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from judge import main, read, run

CULPRIT = "d1884247cfaad129aaa8b4b645d4a3aeea20d526"
LAST = "578a3d4015cdb8476030dd7f0f7c13f9d729a8e8"


class Archaeology(unittest.TestCase):
    def test_culprit(self):
        self.assertEqual(read("CULPRIT").strip(), CULPRIT)

    def test_restored_file(self):
        self.assertEqual(read("docs/history.md"), Path("/tests/history.md").read_text())

    def test_history_is_kept(self):
        # As nobody: a repository can name programs for git to run.
        self.assertEqual(run("git", "merge-base", "--is-ancestor", LAST, "main").code, 0)


if __name__ == "__main__":
    main(Archaeology)
