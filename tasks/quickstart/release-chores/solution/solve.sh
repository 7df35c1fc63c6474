#!/bin/bash
set -euo pipefail
cd /app

sed -i 's/^version = 1\.4\.0$/version = 2.0.0/' setup.cfg
sed -i 's/^__version__ = .*/__version__ = "2.0.0"/' pantry/__init__.py
sed -i '1s/1\.4\.0/2.0.0/' docs/index.md

sed -i 's/calc_total/stock_value/g' pantry/*.py docs/*.md
cat >> pantry/stock.py <<'PYTHON'


def calc_total(items):
    """The old name of `stock_value`."""
    warnings.warn("calc_total is now stock_value", DeprecationWarning, stacklevel=2)
    return stock_value(items)
PYTHON
sed -i '1a\\nimport warnings' pantry/stock.py

cat > release.sh <<'BASH'
#!/bin/bash
# Write dist/pantry-<version>.tar, the same bytes for the same content.
set -euo pipefail
cd "$(dirname "$0")"
export LC_ALL=C
name=pantry-$(sed -n 's/^version *= *//p' setup.cfg)
mkdir -p dist
find setup.cfg CHANGELOG.md pantry -type f \( -name '*.py' -o -name setup.cfg -o -name CHANGELOG.md \) | sort |
    tar --create --file "dist/$name.tar" --files-from - --transform "s,^,$name/," --format ustar \
        --owner 0 --group 0 --numeric-owner --mode 0644 --mtime @0
BASH

python3 - <<'PYTHON'
import configparser
import json
import re
import subprocess
from pathlib import Path

log = ["git", "log", "--reverse", "--format=%s", "v1.4.0..main"]
subjects = subprocess.run(log, check=True, capture_output=True, text=True).stdout.splitlines()
taken_back = {subject.removeprefix("revert: ") for subject in subjects if subject.startswith("revert: ")}
section = "## 2.0.0\n\n"
for kind, title in (("feat: ", "Added"), ("fix: ", "Fixed"), ("remove: ", "Removed")):
    kept = [s.removeprefix(kind) for s in subjects if s.startswith(kind) and s not in taken_back]
    section += f"### {title}\n\n" + "".join(f"- {text}\n" for text in kept) + "\n"
changes = Path("CHANGELOG.md")
changes.write_text(changes.read_text().replace("## 1.4.0", section + "## 1.4.0", 1))


def toml(text):
    if text in ("yes", "no"):
        return "true" if text == "yes" else "false"
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
        return text
    if "," in text:
        return json.dumps([part.strip() for part in text.split(",")])
    return json.dumps(text)


settings = configparser.ConfigParser()
settings.read("settings.ini")
lines = []
for name in settings.sections():
    lines += [f"[{name}]", *(f"{key} = {toml(value)}" for key, value in settings[name].items()), ""]
Path("settings.toml").write_text("\n".join(lines))
PYTHON
