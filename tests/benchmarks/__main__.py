"""`python -m tests.benchmarks [--small] [--json FILE] [NAME ...]`: measure, and print one table.

Ends with 1 when a goal is missed; a small run misses none, it only shows that everything runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.benchmarks import measuring


def main() -> int:
    """Run the modules asked for and print their figures."""
    found = measuring.modules()
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Measure anonflow.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(found)}; all if none")
    parser.add_argument(
        "--small", action="store_true", help="small inputs: shows that it runs, says nothing of speed"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the figures and the machine there, too"
    )
    asked = parser.parse_args()
    unknown = sorted(set(asked.names) - set(found))
    if unknown:
        parser.error(f"no benchmark named {', '.join(unknown)}; there are {', '.join(found)}")
    rows = []
    for name in asked.names or found:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        rows += [{"module": name, **figure} for figure in found[name].run(small=asked.small)]
    machine = measuring.machine()
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    print(measuring.table(rows))
    if asked.json:
        document = {"small": asked.small, "machine": machine, "figures": rows}
        asked.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return int(not asked.small and any(figure["met"] is False for figure in rows))


if __name__ == "__main__":
    sys.exit(main())
