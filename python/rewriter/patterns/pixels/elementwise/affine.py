"""Per-channel affine maps: x * scale + shift with constant scale and shift.

Bias, batch normalisation in all spellings (Keras 3: Mul by a constant computed with
Rsqrt, then AddV2; TensorFlow: FusedBatchNorm), rescaling: each op on its own is one
affine map with operands that `Constants` evaluates in float64; chains compose.
"""

import numpy as np

from .....graph import Body
from .....graph.families import BATCH_NORMS
from .....ops.records import Step, binary, eltwise
from ....rules import Idiom, per_channel

ROOTS = ("BiasAdd", "Add", "AddV2", "Sub", "Mul", "RealDiv", *sorted(BATCH_NORMS))

# op -> (scale, shift) from the constant operand, the tensor being the first operand
_TENSOR_FIRST = {
    "BiasAdd": lambda c: (None, c),
    "Add": lambda c: (None, c),
    "AddV2": lambda c: (None, c),
    "Sub": lambda c: (None, -c),
    "Mul": lambda c: (c, None),
    "RealDiv": lambda c: (1.0 / c, None),
}
# the same, the tensor being the second operand
_TENSOR_SECOND = {op: _TENSOR_FIRST[op] for op in ("Add", "AddV2", "Mul")}
_TENSOR_SECOND["Sub"] = lambda c: (np.full_like(c, -1.0), c)


def recognise(node, body: Body):
    if node.op in BATCH_NORMS:
        yield from _fused_batch_norm(node, body)
        return
    for index, table in ((0, _TENSOR_FIRST), (1, _TENSOR_SECOND)):
        x, other = node.inputs[index], node.inputs[1 - index]
        channels = body.shapes.features(x)
        if node.op not in table or channels is None or body.constants.is_constant(x):
            continue
        constant = per_channel(body, other, channels)
        if constant is not None:
            with np.errstate(divide="ignore"):
                scale, shift = table[node.op](constant)
            is_one = not body.constants.live or body.shapes.shape(other) in ((), (1,))
            yield from _idioms(node.name, x, scale, shift, is_one)


def _fused_batch_norm(node, body: Body):
    x = node.inputs[0]
    channels = body.shapes.channels(x)
    used = [body.view.use_count(type(x)(node.name, port)) for port in range(1, 6)]
    if node.attr["is_training"].b or channels is None or any(used):
        return
    values = [per_channel(body, ref, channels) for ref in node.inputs[1:5]]
    if any(value is None for value in values):
        return
    gamma, beta, mean, variance = values
    with np.errstate(divide="ignore", invalid="ignore"):  # What is not finite is no map.
        scale = gamma / np.sqrt(variance + node.attr["epsilon"].f)
        shift = beta - mean * scale
    yield from _idioms(node.name, x, scale, shift, not body.constants.live)


def steps(scale, shift, may_be_one: bool = True) -> tuple[Step, ...]:
    """scale * x + shift as a chain; None is no scale, or no shift.

    Args:
        may_be_one: whether equal values of all channels may be written as one.
    """
    if may_be_one and all(values is None or np.ptp(values) == 0 for values in (scale, shift)):
        alpha = 1.0 if scale is None else float(scale[0])
        return (eltwise("linear", alpha=alpha, beta=0.0 if shift is None else float(shift[0])),)
    factor = () if scale is None else (binary("mul", "channel", scale),)
    return factor if shift is None else (*factor, binary("add", "channel", shift))


def _idioms(root: str, x, scale, shift, may_be_one: bool):
    """The map; none by what float32 does not have, of which sums would make something else."""
    if all(
        v is None or (np.abs(v) <= float(np.finfo(np.float32).max)).all() for v in (scale, shift)
    ):
        chain = steps(scale, shift, may_be_one)
        yield Idiom(root, x, chain, frozenset([root]), scale=scale, shift=shift)
