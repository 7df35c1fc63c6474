"""The stock: (name, pieces, cents a piece)."""


def load(lines):
    """Items from lines such as `3 x 120 flour`."""
    items = []
    for line in lines:
        pieces, _, cents, name = line.split(maxsplit=3)
        items.append((name.strip(), int(pieces), int(cents)))
    return items


def calc_total(items):
    """Worth of all items in cents."""
    return sum(pieces * cents for _, pieces, cents in items)
