"""Measures this machine and writes what the README and docs/measurements.md show.

    cd benchmarks
    python -m measurements                # measures all of the plan: an hour or two
    python -m measurements --readme       # what the README shows: a quarter of an hour
    python -m measurements --set-up       # only installs the peers and converts the networks
    python -m measurements --pages        # only writes the pages from docs/measurements/*.json

Peers and files are set up first, under build/benchmarks; once. What the file of this machine holds
of another commit goes; what it holds of this one is not measured again.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys

from . import document, page, plan, run


def main() -> None:
    """Parses the arguments, measures and writes."""
    parser = argparse.ArgumentParser(
        prog="python -m measurements", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--readme", action="store_true", help="only what the README shows")
    parser.add_argument("--only", help="networks whose name has this")
    parser.add_argument("--minutes", type=float, help="begins no further network after so many")
    parser.add_argument("--runs", type=int, default=20, help="counted runs of each; default: 20")
    parser.add_argument(
        "--folder", type=pathlib.Path, help="writes the JSON there, and no pages; for a trial"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--set-up", action="store_true", help="installs and converts, no more")
    what.add_argument("--pages", action="store_true", help="writes the pages, no more")
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if not options.pages:
        rows = plan.README if options.readme else plan.ROWS
        rows = [row for row in rows if (options.only or "") in row.name]
        if not rows:
            parser.error(f"no network of the plan has {options.only!r} in its name")
        folder = options.folder or document.FOLDER
        run.run(rows, folder, options.runs, options.minutes, set_up_only=options.set_up)
    if not options.set_up and not options.folder:
        page.write()


if __name__ == "__main__":
    sys.exit(main())
