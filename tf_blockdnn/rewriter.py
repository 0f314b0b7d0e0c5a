"""The rewriter: `optimize` and what it returns."""

from .python.calls import OptimizedFunction, OptimizedModel, optimize
from .python.rewriter import (
    Converted,
    Report,
    VerificationError,
    optimize_concrete,
)

__all__ = [
    "Converted",
    "OptimizedFunction",
    "OptimizedModel",
    "Report",
    "VerificationError",
    "optimize",
    "optimize_concrete",
]
