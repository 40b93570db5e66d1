"""`python -m tests.benchmarks [--small] [--json FILE] [--rows ROW,...] [NAME ...]`: measure, and print one table.

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
    modules = measuring.modules()
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Measure anonflow.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(modules)}; all if none")
    parser.add_argument(
        "--small", action="store_true", help="small inputs: shows that it runs, says nothing of speed"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the figures and the machine there, too"
    )
    parser.add_argument(
        "--rows",
        type=lambda text: tuple(text.split(",")),
        default=(),
        help="rows of a benchmark that has them, with minutes: "
        + "; ".join(
            f"{name}: {', '.join(f'{row} {minutes}' for row, minutes in module.TABLE_ROWS.items())}"
            for name, module in modules.items()
            if hasattr(module, "TABLE_ROWS")
        ),
    )
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(modules))
    if unknown:
        parser.error(f"no benchmark named {', '.join(unknown)}; there are {', '.join(modules)}")
    for name in arguments.names if arguments.rows else ():
        wrong = sorted(set(arguments.rows) - set(getattr(modules[name], "TABLE_ROWS", ())))
        if wrong:
            parser.error(f"{name} has no row {', '.join(wrong)}")
    if arguments.rows and not arguments.names:
        parser.error("--rows goes with the name of a benchmark")
    rows = []
    chosen = {"rows": arguments.rows} if arguments.rows else {}
    for name in arguments.names or modules:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        rows += [{"module": name, **figure} for figure in modules[name].run(small=arguments.small, **chosen)]
    machine = measuring.machine()
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    print(measuring.table(rows))
    if arguments.json:
        document = {"small": arguments.small, "machine": machine, "figures": rows}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return int(not arguments.small and any(figure["met"] is False for figure in rows))


if __name__ == "__main__":
    sys.exit(main())
