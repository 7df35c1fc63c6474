"""Picture of the funnel from candidates to tasks: `python docs/make_funnel.py`.

Takes the table of `docs/tutorials` through `job=curate_cli_tools`, which installs each candidate in a sandbox. Recipes
of candidates that are not tasks yet are written beside a copy of the shipped tasks, and thrown away.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from runner.__main__ import main
from runner.resources import ROOT

DOCS = Path(__file__).parent


def make(scratch: Path) -> int:
    """Save `funnel.png`. Return the command's exit code."""
    tasks = scratch / "tasks"
    shutil.copytree(ROOT / "tasks" / "cli_tool_bench", tasks, ignore=shutil.ignore_patterns("cassettes"))
    code = main(
        [
            "job=curate_cli_tools",
            "dataset=cli_tool_bench",
            f"job.path={tasks}",
            f"job.candidates={DOCS / 'tutorials' / 'candidates.csv'}",
            "job.filters.stars=null",  # no registry knows them
            "job.filters.keywords=[]",
            "job.unreviewed=true",
            f"outputs={scratch / 'outputs'}",
            "name=funnel",
        ]
    )
    if code == 0:
        (picture,) = scratch.glob("outputs/funnel/*/funnel.png")
        shutil.copyfile(picture, DOCS / "pictures" / "funnel.png")
    return code


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(make(Path(folder)))
