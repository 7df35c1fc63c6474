"""`make chaos`: a campaign of random faults on a cluster of this machine; `--faults`, `--trials` and `--seed`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.chaos.campaign import Campaign

ROUND = 20
"""Faults of one sweep."""


def main() -> int:
    """Run sweeps until there were enough faults. Return 1 if any of them lost or doubled something."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--trials", type=int, default=60, help="of each sweep")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    done, seed = 0, given.seed
    while done < given.faults:
        with (
            tempfile.TemporaryDirectory() as folder,
            Campaign(Path(folder), given.trials, seed) as campaign,
        ):
            campaign.start()
            campaign.fire(min(ROUND, given.faults - done))
            account = campaign.end()
            done += sum(account.faults.values())
            print(f"seed {seed}: {'whole' if account.is_whole else 'BROKEN'}: {account}", flush=True)
            if not account.is_whole:
                print(campaign.log.read_text()[-4000:])
                return 1
        seed += 1
    print(f"{done} faults: nothing lost, nothing doubled, every call accounted for")
    return 0


if __name__ == "__main__":
    sys.exit(main())
