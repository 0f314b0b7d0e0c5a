"""Turns and their times, from python/measures.py.

The module alone: importing the package would load TensorFlow into the measuring process.
"""

import sys

from .prepare import HERE

sys.path.append(str(HERE.parent / "python"))  # behind this folder, which has `peers`, too
from measures import Timing, interleave, largest_difference  # noqa: E402

__all__ = ["Timing", "interleave", "largest_difference"]
