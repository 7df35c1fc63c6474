"""Make checkouts of a small tool in three languages, and the answers of a person who makes a task of one.

The tool sorts the lines of a file: `plainsort [--upper] FILE`. In Python and JavaScript it requires a package,
and in Python it reads a file that lies beside its modules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

COMMAND = "plainsort"
HELP = "usage: plainsort [--upper] FILE\\n\\nSort the lines of a file.\\n\\n  --upper  print in capitals\\n"
PYTHON = {
    "pyproject.toml": """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "plain-sort"
version = "1.4"
license = "MIT"
description = "Sorts lines"
authors = [{ name = "Ada Example", email = "ada@host.example" }]
dependencies = ["natsort==8.4.0"]

[project.scripts]
plainsort = "plain_sort.main:main"
""",
    "plain_sort/__init__.py": "",
    "plain_sort/main.py": """\
import argparse
import sys
from pathlib import Path

from natsort import natsorted

from plain_sort import lines


def main():
    about = Path(__file__).with_name("texts") / "about.txt"
    parser = argparse.ArgumentParser(description=about.read_text())
    parser.add_argument("--upper", action="store_true", help="print in capitals")
    parser.add_argument("FILE")
    options = parser.parse_args()
    try:
        found = lines.read(options.FILE)
    except OSError as error:
        sys.exit(f"plainsort: {error.strerror}")
    for line in natsorted(found):
        print(line.upper() if options.upper else line)
""",
    "plain_sort/lines.py": "def read(name):\n    with open(name, encoding='utf-8') as file:\n"
    "        return file.read().split('\\n')\n",
    "plain_sort/texts/about.txt": "Sort the lines of a file.\n",
    "tests/test_main.py": "def test_nothing():\n    pass\n",
    "README.md": "# plain-sort\n",
}
JAVASCRIPT = {
    "package.json": json.dumps(
        {
            "name": "@ada/plain-sort",
            "version": "2.0.1",
            "license": "ISC",
            "bin": {COMMAND: "cli.js"},
            "dependencies": {"ms": "2.1.3"},
            "scripts": {"test": "exit 1"},
        }
    ),
    "cli.js": f"""\
#!/usr/bin/env node
const fs = require("fs");
const ms = require("ms");

const words = process.argv.slice(2);
if (words.includes("--help")) {{
  process.stdout.write("{HELP}");
  process.exit(0);
}}
const files = words.filter((word) => word !== "--upper");
if (files.length !== 1 || files[0].startsWith("-")) process.exit(2);
try {{
  for (const line of fs.readFileSync(files[0], "utf8").split("\\n").sort()) {{
    const shown = /^\\d{{1,9}}$/.test(line) ? ms(Number(line)) : line;
    console.log(words.includes("--upper") ? shown.toUpperCase() : shown);
  }}
}} catch (error) {{
  process.exit(1);
}}
""",
}
GO = {
    "go.mod": "module plain.example/ada/plainsort\n\ngo 1.21\n",
    "lines/lines.go": """\
package lines

import (
\t"os"
\t"sort"
\t"strings"
)

func Sorted(name string) ([]string, error) {
\tcontent, err := os.ReadFile(name)
\tfound := strings.Split(string(content), "\\n")
\tsort.Strings(found)
\treturn found, err
}
""",
    "cmd/plainsort/main.go": f"""\
package main

import (
\t"fmt"
\t"os"
\t"strings"

\t"plain.example/ada/plainsort/lines"
)

func main() {{
\tupper, files := false, []string{{}}
\tfor _, word := range os.Args[1:] {{
\t\tif word == "--help" {{
\t\t\tfmt.Print("{HELP}")
\t\t\treturn
\t\t}}
\t\tif word == "--upper" {{
\t\t\tupper = true
\t\t}} else {{
\t\t\tfiles = append(files, word)
\t\t}}
\t}}
\tif len(files) != 1 || strings.HasPrefix(files[0], "-") {{
\t\tos.Exit(2)
\t}}
\tfound, err := lines.Sorted(files[0])
\tif err != nil {{
\t\tos.Exit(1)
\t}}
\tfor _, line := range found {{
\t\tif upper {{
\t\t\tline = strings.ToUpper(line)
\t\t}}
\t\tfmt.Println(line)
\t}}
}}
""",
}
CONTEXT = "It reads the lines of one file and prints them in order, each on a line of its own. " * 4
GENERATOR = """\
from fuzz import Case

def common(draw):
    return Case(f"{draw.tool}OPTION rows.txt", {"rows.txt": "\\n".join(draw.words(draw.integer(2, 9)))})

def boundary(draw):
    return Case(f"{draw.tool}OPTION rows.txt", {"rows.txt": "\\n".join(["", draw.word(), str(draw.integer())])})

def error(draw):
    return Case(f"{draw.tool}OPTION {draw.word()}-{draw.integer()}.txt")
"""


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files into a folder and return it."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def write_answers(making: Path, tool: str) -> None:
    """Write what a person answers: schema, description, and the generators of two classes."""
    parameters = [
        {"names": ["--upper"], "kind": "flag", "type": "boolean", "about": "print in capitals"},
        {"names": ["FILE"], "kind": "argument", "type": "path", "required": True},
    ]
    schema = {
        "written_by": "by hand",
        "command": {"name": tool, "about": "Sorts lines.", "runnable": True, "parameters": parameters},
    }
    files = {
        "schema.json": json.dumps(schema),
        "context.md": CONTEXT,
        "generators/BASIC.py": GENERATOR.replace("OPTION", ""),
        "generators/UPPER.py": GENERATOR.replace("OPTION", " --upper"),
    }
    write_files(making, files)
