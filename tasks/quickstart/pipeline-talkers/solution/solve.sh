#!/bin/bash
set -euo pipefail
cat > /app/talkers.sh <<'BASH'
#!/bin/bash
export LC_ALL=C
awk '$(NF - 1) ~ /^2[0-9][0-9]$/ { sum[$1] += $NF }
     END { for (client in sum) if (sum[client]) printf "%.0f %s\n", sum[client], client }' |
    sort -k1,1nr -k2,2 | head -n "${1:-5}"
BASH
