"""All passes, in the order in which they run."""

from .account import account
from .canonical.convolve_first import convolve_before_resizing
from .canonical.lift_volumes import lift_volumes
from .canonical.products import flatten_products
from .canonical.replace_loops import replace_loops
from .canonical.simplify import simplify
from .canonical.sink_views import sink_views
from .canonical.update_caches import update_caches
from .canonical.widen import widen
from .fusion.fold_shuffles import fold_shuffles
from .fusion.fuse_pairs import fuse_depthwise, fuse_pool
from .fusion.fuse_post_ops import find_followers, fold_batch_norm, fuse_post_ops, report_unfused
from .fusion.prepare_sources import prepare_sources
from .layout.assign_layout import assign_layout
from .layout.cut_channels import cut_channels
from .layout.gain import leave_losing
from .layout.join_in_place import join_in_place
from .layout.lower_precision import lower_precision
from .layout.lower_quantized import lower_quantized
from .layout.place_reorders import place_reorders
from .lift import (
    lift_attention,
    lift_convolutions,
    lift_inner_products,
    lift_softmax,
)
from .limit_memory import limit_memory

# Each is called with the graph, which it edits, and the context, and returns what it decided
# (context.py); its docstring's first line is its row in docs/how-it-works.md.
PASSES = (
    widen,
    sink_views,
    simplify,
    replace_loops,
    lift_attention,
    update_caches,
    flatten_products,
    convolve_before_resizing,
    lift_volumes,
    lift_convolutions,
    lift_inner_products,
    limit_memory,
    find_followers,
    fold_batch_norm,
    fuse_post_ops,
    prepare_sources,
    fold_shuffles,
    cut_channels,
    assign_layout,
    lift_softmax,
    report_unfused,
    leave_losing,
    lower_quantized,
    lower_precision,
    place_reorders,
    fuse_depthwise,
    fuse_pool,
    join_in_place,
    account,
)
# What takes nodes away whose tensors are to be observed.
HIDES = (fuse_depthwise, fuse_pool, join_in_place)
# What plans blocked tensors is of no use without the pass that lets plain ones meet them.
NEEDS = dict.fromkeys(
    (lift_volumes, lift_convolutions, lower_quantized, lower_precision),
    place_reorders,
)
