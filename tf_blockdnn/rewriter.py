"""The rewriter: `optimize` and what it returns."""

from .python.rewriter import (
    Converted,
    Report,
    VerificationError,
    optimize_concrete,
)
from .python.targets import OptimizedFunction, OptimizedModel, optimize

__all__ = [
    "Converted",
    "OptimizedFunction",
    "OptimizedModel",
    "Report",
    "VerificationError",
    "optimize",
    "optimize_concrete",
]
