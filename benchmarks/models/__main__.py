"""`python -m models NAME FOLDER` writes one network of the zoo as a SavedModel."""

import sys

from . import ZOO

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ZOO:
        sys.exit(f"usage: python -m models {{{','.join(ZOO)}}} FOLDER")
    ZOO[sys.argv[1]].save(sys.argv[2])
