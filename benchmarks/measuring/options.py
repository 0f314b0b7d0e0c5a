"""Types of command-line options."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection


def among(known: Collection[str]) -> Callable[[str], list[str]]:
    """Names joined by commas, all of them in `known`."""

    def parse(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not among {', '.join(known)}")
        return names

    return parse
