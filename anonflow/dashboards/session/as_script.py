"""A run of a screen as a Python script that gives the same release."""

from __future__ import annotations

_TEXT = '''"""The run {name} as a script; it gives the release that the screen gave.

Put it beside the flow file {flow} and the table that the flow names, and save the seed where only you can read it:

    python {script} SEED_FILE
"""

import sys
from pathlib import Path

import anonflow as af

here = Path(__file__).parent
seed = int(Path(sys.argv[1]).read_text().strip(), 16)
report = af.run(here / {flow!r}, seed=seed, again=True)  # with the seed, the same draw
if not report.ok:
    sys.exit("a check failed: nothing was published")
result = report.results[0]      # result.anonymization is the owner's
release = report.release        # release.frame is what is published, and lies in the folder out
'''


def script(name: str, flow: str, script: str) -> str:
    """Return the script of a run, by its name, and the names of the files of its flow and of itself."""
    plain = "".join(letter for letter in name if letter.isprintable() and letter not in '"\\\\')
    return _TEXT.format(name=plain, flow=flow, script=script)
