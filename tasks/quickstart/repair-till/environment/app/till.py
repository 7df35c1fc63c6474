"""Print the receipt of the basket on standard input."""

import sys


def amount(quantity, price):
    total = quantity * price
    if quantity > 10:
        total = total * 0.9
    return round(total, 2)


def main():
    total = 0.0
    for line in sys.stdin:
        quantity, name, price = line.split()
        line_amount = amount(int(quantity), float(price))
        total += line_amount
        print(f"{name}: {line_amount}")
    print(f"TOTAL: {total:.2f}")


if __name__ == "__main__":
    main()
