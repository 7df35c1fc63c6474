#!/bin/bash
set -euo pipefail
python3 - <<'PYTHON'
import json
import sqlite3

db = sqlite3.connect("/app/shop.db")
db.executescript("""
    CREATE TEMP VIEW net AS
    SELECT o.customer_id, strftime('%Y-%m', o.placed_at, 'unixepoch') AS month,
           (SELECT coalesce(sum(quantity * unit_cents), 0) FROM order_lines WHERE order_id = o.id)
           - (SELECT coalesce(sum(cents), 0) FROM refunds WHERE order_id = o.id) AS cents
    FROM orders o WHERE o.status <> 'cancelled';
""")
(june,) = db.execute("SELECT sum(cents) FROM net WHERE month = '2030-06'").fetchone()
(best,) = db.execute(
    "SELECT customer_id FROM net WHERE month LIKE '2030-%' GROUP BY 1 ORDER BY sum(cents) DESC LIMIT 1"
).fetchone()
silent = db.execute("SELECT id FROM customers WHERE id NOT IN (SELECT customer_id FROM net) ORDER BY id").fetchall()
with open("/app/answers.json", "w") as file:
    json.dump({"june_cents": june, "best_customer": best, "silent": [customer for (customer,) in silent]}, file)
PYTHON
