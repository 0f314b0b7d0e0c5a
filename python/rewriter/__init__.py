"""Rewrites TensorFlow functions to run on blocked convolutions."""

from .options import Options
from .passes.verify import VerificationError
from .pipeline import Bundles, Rewritten, optimize_concrete
from .report import Converted, Report

__all__ = [
    "Bundles",
    "Converted",
    "Options",
    "Report",
    "Rewritten",
    "VerificationError",
    "optimize_concrete",
]
