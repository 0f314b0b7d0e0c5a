"""`python -m formats FORMAT SOURCE SHAPES TARGET` writes one file; see the package."""

import importlib
import json
import sys

from . import FORMATS

if __name__ == "__main__":
    if len(sys.argv) != 5 or sys.argv[1] not in FORMATS:
        sys.exit(f"usage: python -m formats {{{','.join(FORMATS)}}} SOURCE SHAPES TARGET")
    _, name, source, shapes, target = sys.argv
    writer = importlib.import_module(f"formats.{FORMATS[name].writer}")
    writer.write(source, json.loads(shapes), target)
