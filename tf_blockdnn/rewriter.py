"""The rewriter: what `bd.optimize` returns."""

from .python.rewriter import (
    Converted,
    Report,
    VerificationError,
    optimize_concrete,
)
from .python.targets import OptimizedFunction, OptimizedModel

__all__ = [
    "Converted",
    "OptimizedFunction",
    "OptimizedModel",
    "Report",
    "VerificationError",
    "optimize_concrete",
]
