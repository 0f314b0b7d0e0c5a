"""Installs this checkout as `pip install .` does, options of pip included.

What a build needs is looked for first: where it is missing, the remedy is the only line, and it is
not followed by pip's own remarks.
"""

import subprocess
import sys

import native


def main() -> None:
    if lack := native.missing():
        raise SystemExit(lack)
    command = [sys.executable, "-m", "pip", "install", *sys.argv[1:], str(native.ROOT)]
    raise SystemExit(subprocess.call(command))


if __name__ == "__main__":
    main()
