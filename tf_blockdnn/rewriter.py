"""The rewriter: `optimize` and what it returns."""

from .python.rewriter import (
    Converted,
    OptimizedFunction,
    OptimizedModel,
    Report,
    VerificationError,
    optimize,
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
