"""Rewrites TensorFlow functions to run on blocked convolutions."""

from ..options import Options
from .precision.calibration import read_arrays
from .report import Converted, Report
from .rewrite import Bundles, Rewrite, Rewritten, optimize_concrete
from .verify import VerificationError
