"""Five independent goals, each a fifth of the reward."""

import hashlib
import io
import sys
import tarfile
import tomllib
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from judge import APP, content, main, read, run

ADDED = ["read stock from several files", "--version"]
FIXED = ["names with blanks are kept whole", "an empty pantry has a sum", "file names: keep what follows a colon"]
REMOVED = ["the --ascii option"]
EVERYWHERE = {"root": "/srv/pantry", "keep_days": 30}
SETTINGS = {
    "files": {**EVERYWHERE, "stock": "/srv/pantry/stock.txt", "backups": "/srv/pantry/backups", "keep_days": 90},
    "report": {
        **EVERYWHERE,
        "low_mark": 0.15,
        "columns": ["name", "pieces", "worth"],
        "colour": False,
        "title": "Pantry of /srv/pantry",
    },
    "mail": {**EVERYWHERE, "enabled": True, "port": 587, "to": ["cook@example.org", "keeper@example.org"], "build": "0047a"},
}
USE = """
import sys, warnings
sys.path.insert(0, "/app")
from pantry.stock import calc_total, stock_value
items = [("a", 3, int(sys.argv[1])), ("b", 2, 7)]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    found = stock_value(items), calc_total(items), calc_total(items)
print(*found, *(warning.category.__name__ for warning in caught))
"""


class Release(unittest.TestCase):
    def test_version(self):
        self.assertEqual(run("python3", "-m", "pantry", "--version").out, "pantry 2.0.0\n")
        config = read("setup.cfg").splitlines()
        self.assertIn("version = 2.0.0", config)
        self.assertIn("    shelf == 1.4.0", config)
        docs = read("docs/index.md")
        self.assertTrue(docs.startswith("# pantry 2.0.0\n"))
        self.assertIn("It needs shelf 1.4.0, whose file format pantry has used since its own version 1.2.0.", docs)
        self.assertIn("\n## 1.4.0\n\n### Added\n\n- tables are sorted\n", read("CHANGELOG.md"))

    def test_rename(self):
        cents = int.from_bytes(Path("/dev/urandom").open("rb").read(2), "big")
        worth = 3 * cents + 14
        used = run("python3", "-W", "ignore", "-c", USE, str(cents))
        self.assertEqual(used.out, f"{worth} {worth} {worth} DeprecationWarning DeprecationWarning\n", used.err)
        for name in ("pantry/report.py", "pantry/__main__.py", "docs/index.md"):
            self.assertNotIn("calc_total", read(name))
        self.assertIn("stock_value(load(", read("docs/index.md"))
        table = run("python3", "-W", "error", "-m", "pantry", stdin="2 x 30 rye flour\n1 x 5 salt\n")
        self.assertEqual(table.out.split(), ["rye", "flour", "60", "salt", "5", "sum", "65"])

    def test_changelog(self):
        text = read("CHANGELOG.md")
        before, _, after = text.partition("## 2.0.0\n")
        self.assertEqual(before.strip(), "# Changes")
        section, _, older = after.partition("## 1.4.0\n")
        self.assertIn("- files in the format of shelf 1.4.0", older)
        wanted = []
        for title, entries in (("Added", ADDED), ("Fixed", FIXED), ("Removed", REMOVED)):
            wanted += [f"### {title}", *(f"- {entry}" for entry in entries)]
        self.assertEqual([line.rstrip() for line in section.splitlines() if line.strip()], wanted)

    def test_settings(self):
        found = tomllib.loads(read("settings.toml"))
        self.assertEqual(found, SETTINGS)
        kinds = {(name, key): type(value) for name, table in found.items() for key, value in table.items()}
        self.assertEqual(kinds, {(n, k): type(v) for n, table in SETTINGS.items() for k, v in table.items()})
        self.assertIn("keep_days = 30", read("settings.ini"))

    def test_archive(self):
        self.addCleanup(run, "bash", "-c", "cat > setup.cfg", stdin=read("setup.cfg"))
        run("sed", "-i", "s/^version = .*/version = 3.1.7/", "setup.cfg")
        packed = [self.pack(f"umask {umask}; {touch}") for umask, touch in (("022", "true"), ("077", "sleep 1.1; touch pantry/*"))]
        self.assertEqual(hashlib.sha256(packed[0]).hexdigest(), hashlib.sha256(packed[1]).hexdigest())
        with tarfile.open(fileobj=io.BytesIO(packed[0])) as archive:
            members = {member.name: member for member in archive if not member.isdir()}
            files = ["setup.cfg", "CHANGELOG.md", *(f"pantry/{path.name}" for path in (APP / "pantry").glob("*.py"))]
            self.assertEqual(sorted(members), sorted(f"pantry-3.1.7/{name}" for name in files))
            self.assertIn(b"version = 3.1.7", archive.extractfile("pantry-3.1.7/setup.cfg").read())
            self.assertNotIn(65534, {member.uid for member in members.values()}, "the packer's own user is in it")

    def pack(self, before):
        """The archive's bytes, packed after something that must not matter."""
        run("bash", "-c", f"rm -rf dist; {before}; bash release.sh")
        return content("dist/pantry-3.1.7.tar")


if __name__ == "__main__":
    main(Release, weights=dict.fromkeys(("version", "rename", "changelog", "settings", "archive"), 0.2))
