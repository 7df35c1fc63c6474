#!/bin/bash
set -euo pipefail
cat > /app/till.py <<'PYTHON'
"""Print the receipt of the basket on standard input. Money is whole cents throughout."""

import sys


def cents(price):
    euros, _, rest = price.partition(".")
    return int(euros) * 100 + int(rest.ljust(2, "0"))


def amount(quantity, price):
    if quantity >= 10:
        return (quantity * price * 90 + 50) // 100
    return quantity * price


def money(value):
    return f"{value // 100}.{value % 100:02}"


def main():
    total = 0
    for line in sys.stdin:
        if not line.strip() or line.startswith("#"):
            continue
        quantity, *name, price = line.split()
        due = amount(int(quantity), cents(price))
        total += due
        print(f"{' '.join(name)}: {money(due)}")
    print(f"TOTAL: {money(total)}")


if __name__ == "__main__":
    main()
PYTHON
