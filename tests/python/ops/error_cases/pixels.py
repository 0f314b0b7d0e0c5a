"""What normalisations and squeeze-and-excitation refuse."""

import numpy as np
import tensorflow as tf

import tf_blockdnn as bd


def squeeze_excite(c=20, r=4, src=(1, 2, 3, 3, 16), **changes):
    shapes = src, (20, 4), 4, (4, 20), 20
    arguments = {"channels": c, "squeezed": r} | changes
    return bd.ops.squeeze_excite(*map(tf.zeros, shapes), **arguments)


def layer_norm(**changes):
    arguments = {"gamma": np.ones(20, "f"), "beta": np.ones(20, "f"), "channels": 20} | changes
    return bd.ops.layer_norm(tf.zeros((1, 2, 3, 3, 16)), **arguments)


def pad(sides):
    return bd.ops.pad(tf.zeros((1, 1, 5, 7, 16)), sides, channels=16)


# The words of a message -> a call that it refuses.
CASES = {
    r"src must be nChw16c": lambda: squeeze_excite(src=(1, 3, 3, 20)),
    r"src must be nChw16c, \[N, 3, H, W, 16\]": lambda: squeeze_excite(c=40),
    r"reduce_weights of 80 elements must have 100 for 20 channels and 5 squeezed": lambda: (
        squeeze_excite(r=5)
    ),
    r"reduce_bias of 4 elements must have 4 .* from element 1 on": lambda: squeeze_excite(
        offsets=[0, 1, 0, 0]
    ),
    r"offsets must be those of .*got \[0, 0\]": lambda: squeeze_excite(offsets=[0, 0]),
    r"offsets must be": lambda: squeeze_excite(offsets=[0, 0, 0, -1]),
    r"squeezed must be within 2\^47, got 4611686018427387904": lambda: squeeze_excite(
        squeezed=1 << 62
    ),
    r"reduce_post_ops \"sum\(#0\)\": only eltwise": lambda: squeeze_excite(
        reduce_post_ops="sum(#0)"
    ),
    r"expand_post_ops \"eltwise\(foo\)\": .*foo": lambda: squeeze_excite(
        expand_post_ops="eltwise(foo)"
    ),
    r"dst_layout.*cn": lambda: squeeze_excite(dst_layout="cn"),
    r"scale_src makes dst as src: dst_layout must be nChw16c, not nc": lambda: squeeze_excite(
        scale_src=True
    ),
    r"dst_layout must be nChw16c, not nhwc": lambda: squeeze_excite(
        scale_src=True, dst_layout="nhwc"
    ),
    "how: 'mine' is none of the words user, library": lambda: squeeze_excite(how="mine"),
    "gamma has 3 elements, not the 20 of the channels": lambda: layer_norm(gamma=np.ones(3, "f")),
    "epsilon must not be negative": lambda: layer_norm(epsilon=-1.0),
    # Threads that take subnormal numbers for zero decide as the others do.
    "epsilon must not be negative; got -": lambda: layer_norm(epsilon=-1e-45),
    "src .* got": lambda: layer_norm(channels=10),
    r"cut off more.*": lambda: pad([[-3, -3], [0, 0]]),
    r"cut off more": lambda: pad([[0, 0], [0, -8]]),
}
