"""After each event: distinct users and the busiest user of the last SECONDS seconds."""

import sys


def main():
    window = int(sys.argv[1])
    events = []
    for line in sys.stdin:
        second, user = line.split()
        now = int(second)
        events.append((now, user))
        recent = [name for when, name in events if when > now - window]
        counts = {name: recent.count(name) for name in recent}
        most = max(counts.values())
        busiest = min(name for name in counts if counts[name] == most)
        print(len(counts), busiest, most)


if __name__ == "__main__":
    main()
