"""`python3 -m pantry < stock.txt` prints the table, `--version` the version."""

import sys

import pantry
from pantry import report, stock

if "--version" in sys.argv:
    print(f"pantry {pantry.__version__}")
else:
    print("\n".join(report.table(stock.load(sys.stdin))))
