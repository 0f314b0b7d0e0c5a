"""`python -m formats FORMAT SOURCE SHAPES TARGET [DATA]` writes one file; see the package."""

import importlib
import json
import sys

from . import FORMATS, samples

if __name__ == "__main__":
    if len(sys.argv) not in (5, 6) or sys.argv[1] not in FORMATS:
        sys.exit(f"usage: python -m formats {{{','.join(FORMATS)}}} SOURCE SHAPES TARGET [DATA]")
    _, name, source, shapes, target, *samples.given = sys.argv
    writer = importlib.import_module(f"formats.{FORMATS[name].writer}")
    writer.write(source, json.loads(shapes), target)
