"""Rewrites TensorFlow functions to run on blocked convolutions."""

from typing import TYPE_CHECKING

from .. import on_demand

if TYPE_CHECKING:
    from ..options import Options
    from .precision.calibration import keep_batches, read_arrays
    from .regions import LIGHT_OPS
    from .report import Converted, Report
    from .rewrite import Rewrite, Rewritten, optimize_concrete
    from .trackables import BUNDLE, Bundles, is_folded, owners
    from .verify import VerificationError

__getattr__ = on_demand(
    __name__,
    {
        "..options": "Options",
        ".precision.calibration": "keep_batches read_arrays",
        ".regions": "LIGHT_OPS",
        ".report": "Converted Report",
        ".rewrite": "Rewrite Rewritten optimize_concrete",
        ".trackables": "BUNDLE Bundles is_folded owners",
        ".verify": "VerificationError",
    },
)
