"""The patterns, by the pass that asks them. found.py says what a pattern is."""

from .conv import conv_transpose, convolution
from .found import Found, look
from .movement import concat, cut, rows, shuffle
from .pixels import fake_quantize, layer_norm, rms_norm, select, softmax, spread, squeeze_excite
from .planes import depth_pool, global_pool, keep_dims, pad, pool, reduce, resize, upsample
from .products import attention, dense, inner_product, quantized

# Of each pass, in the order in which they are asked.
PATTERNS = {
    "lift_attention": (attention,),
    "lift_convolutions": (convolution, conv_transpose),
    "lift_pixel_layers": (layer_norm, rms_norm, dense),
    "lift_inner_products": (inner_product, quantized),
    "lift_softmax": (softmax,),
    # Of several nodes: assign_layout finds them before it comes to the first of these.
    "spans": (shuffle, upsample, depth_pool, select),
    "assign_layout": (
        squeeze_excite,
        pool,
        reduce,
        global_pool,
        keep_dims,
        rows,
        concat,
        cut,
        pad,
        resize,
        fake_quantize,
        spread,
    ),
}
