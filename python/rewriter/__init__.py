"""Rewrites TensorFlow functions to run on blocked convolutions."""

from ..options import Options
from .pipeline import Bundles, Rewritten, optimize_concrete
from .precision.calibration import read_arrays
from .report import Converted, Report
from .verify import VerificationError
