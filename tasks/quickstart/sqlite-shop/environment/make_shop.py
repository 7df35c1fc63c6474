"""Write the shop's database; the same rows on every machine and every version of Python."""

import sqlite3
import sys

state = 19700101


def below(limit):
    """A pseudo-random number (linear congruential generator)."""
    global state
    state = (state * 1103515245 + 12345) % 2**31
    return (state >> 12) % limit


START = 1_891_000_000  # in December 2029
DAYS, SECONDS = 400, 86_400

db = sqlite3.connect(sys.argv[1])
db.executescript("""
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, town TEXT);
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, placed_at INTEGER, status TEXT);
    CREATE TABLE order_lines (order_id INTEGER, product TEXT, quantity INTEGER, unit_cents INTEGER);
    CREATE TABLE refunds (id INTEGER PRIMARY KEY, order_id INTEGER, cents INTEGER, paid_at INTEGER);
""")
for customer in range(1, 61):
    db.execute("INSERT INTO customers VALUES (?, ?, ?)", (customer, f"Customer {customer}", f"Town {below(9)}"))
for order in range(1, 601):
    customer = 1 + below(60)
    status = ("paid", "shipped", "paid", "cancelled")[below(4)] if customer % 11 else "cancelled"
    placed = START + below(DAYS) * SECONDS + below(SECONDS)
    db.execute("INSERT INTO orders VALUES (?, ?, ?, ?)", (order, customer, placed, status))
    total = 0
    for _ in range(1 + below(4)):
        quantity, cents = 1 + below(5), 100 + below(9000)
        total += quantity * cents
        line = (order, f"product {below(40)}", quantity, cents)
        db.execute("INSERT INTO order_lines VALUES (?, ?, ?, ?)", line)
    for _ in range((0, 0, 1, 2)[below(4)]):
        refund = (order, 1 + below(total // 3), placed + below(100) * SECONDS)
        db.execute("INSERT INTO refunds (order_id, cents, paid_at) VALUES (?, ?, ?)", refund)
db.commit()
