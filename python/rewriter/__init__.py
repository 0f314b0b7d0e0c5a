"""Rewrites TensorFlow functions to run on blocked convolutions."""

from .api import optimize
from .optimized import OptimizedFunction, OptimizedModel
from .options import Options
from .passes.verify import VerificationError
from .pipeline import Bundles, Rewritten, optimize_concrete
from .report import Converted, Report

__all__ = [
    "Bundles",
    "Converted",
    "OptimizedFunction",
    "OptimizedModel",
    "Options",
    "Report",
    "Rewritten",
    "VerificationError",
    "optimize",
    "optimize_concrete",
]
