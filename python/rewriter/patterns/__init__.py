"""The patterns, by the pass that asks them. rules/replacement.py says what a pattern is."""

import functools

from .conv import conv_transpose, convolution
from .movement import concat, cut, rows, shuffle
from .pixels import fake_quantize, norms, select, softmax, spread, squeeze_excite
from .planes import depth_pool, pad, pool, reduce, resize, upsample
from .products import attention, dense, inner_product, quantized

# Of each pass, in the order in which they are asked.
PATTERNS = {
    "lift_attention": (attention,),
    "lift_convolutions": (
        *(convolution.DILATED, convolution.CONVOLUTION, conv_transpose.RULE),
        *(norms.LAYER_NORM, norms.RMS_NORM, dense.RULE),
    ),
    "lift_inner_products": (inner_product.RULE, quantized.RULE),
    "lift_softmax": (softmax.RULE,),
    # Of several nodes: assign_layout finds them before it comes to the first of these.
    "spans": (shuffle.RULE, upsample.RULE, depth_pool.RULE, select),
    "assign_layout": (
        squeeze_excite,
        pool.RULE,
        reduce,
        rows,
        concat,
        cut,
        pad,
        resize.RULE,
        fake_quantize,
        spread,
    ),
}


@functools.cache
def patterns_of(run: str, op: str) -> list:
    """Those that a pass asks about nodes of an op."""
    return [pattern for pattern in PATTERNS[run] if op in pattern.ROOTS]
