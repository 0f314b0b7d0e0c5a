"""The rewriter: what `bd.optimize` returns."""

from .python.rewriter import Report, VerificationError, optimize_concrete
from .python.targets import OptimizedFunction, OptimizedModel

__all__ = [
    "OptimizedFunction",
    "OptimizedModel",
    "Report",
    "VerificationError",
    "optimize_concrete",
]
