"""Turns and their times, from python/benchmark.py.

The module alone: importing the package would load TensorFlow into the measuring process.
"""

import sys

from .prepare import HERE

sys.path.insert(0, str(HERE.parent / "python"))
from benchmark import Timing, interleave, largest_difference  # noqa: E402

__all__ = ["Timing", "interleave", "largest_difference"]
