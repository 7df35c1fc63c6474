#!/bin/bash
set -euo pipefail
cd /app/logs
{
    echo hour,service,errors
    awk '$2 == "ERROR" && /^[0-9]/ { service = FILENAME; sub(/\.log$/, "", service); n[substr($1, 1, 13) "," service]++ }
         END { for (key in n) print key "," n[key] }' *.log | LC_ALL=C sort -t, -k1,1 -k2,2
} > ../errors.csv
