"""Chains of post-ops in TensorFlow ops, which have gradients."""

from dataclasses import dataclass

import tensorflow as tf

from ..graph import definition
from ..ops.post_op_entry import BINARY, ELTWISE, FINITE, FUNCTIONS, place_of
from ..ops.post_ops import PostOps
from ..ops.steps import Step
from .blocked import (
    channel_row,
    channel_sums,
    elements,
    is_blocked,
    is_whole,
    lane_mask,
    part_of,
    place,
    spatial_axes,
)
from .node import vjp
from .planes import pooled

_CLAMPED = tf.clip_by_value


def _hard_sigmoid(x, alpha, beta):
    return _CLAMPED(alpha * x + beta, 0.0, 1.0)


def _raw(op: str):
    """TensorFlow's op as a function of tensors of one type, to which truth values are cast."""
    call, names = getattr(tf.raw_ops, op), [arg.name for arg in definition(op).input_arg]

    def function(x, *operands):
        return tf.cast(call(**dict(zip(names, (x, *operands), strict=True))), x.dtype)

    return function


def _unary(op: str):
    function = _raw(op)
    return lambda x, alpha, beta: function(x)


# name -> f(x, alpha, beta).
_FUNCTIONS = {
    "relu": lambda x, a, b: tf.nn.relu(x) if a == 0 else tf.where(x >= 0, x, a * x),
    "leaky_relu": lambda x, a, b: tf.where(x >= 0, x, a * x),
    "relu6": lambda x, a, b: tf.nn.relu6(x),
    "bounded_relu": lambda x, a, b: _CLAMPED(x, 0.0, a),
    "clip": lambda x, a, b: _CLAMPED(x, a, b),
    "elu": lambda x, a, b: tf.where(x > 0, x, a * tf.math.expm1(tf.minimum(x, 0.0))),
    "linear": lambda x, a, b: a * x + b,
    "swish": lambda x, a, b: x * tf.sigmoid(a * x),
    "hard_sigmoid": lambda x, a, b: _hard_sigmoid(x, a, b),
    "hard_swish": lambda x, a, b: x * _hard_sigmoid(x, a, b),
    "pow": lambda x, a, b: a * tf.pow(x, b),
    "gelu_tanh": lambda x, a, b: tf.nn.gelu(x, approximate=True),
    "gelu_erf": lambda x, a, b: tf.nn.gelu(x, approximate=False),
    "mish": lambda x, a, b: x * tf.tanh(tf.nn.softplus(x)),
    **{name: _unary(op) for name, op in FUNCTIONS.items() if op},
}
_BINARY = {
    "prelu": lambda x, slope: tf.where(x >= 0, x, slope * x),
    "rdiv": lambda x, o: o / x,
    "keep": lambda x, o: tf.where(tf.equal(o, 0), 0.0, x),
    "drop": lambda x, o: tf.where(tf.equal(o, 0), x, -0.0),
    **{name: _raw(op) for name, op in BINARY.items() if op},
}

# Derivatives that the result tells: name -> g(dy, y). Those of clips are not here: at a bound
# TensorFlow's gradient depends on whether x lies beyond it.
FROM_RESULT = {
    "relu": lambda dy, y: tf.raw_ops.ReluGrad(gradients=dy, features=y),
    "relu6": lambda dy, y: tf.raw_ops.Relu6Grad(gradients=dy, features=y),
    "elu": lambda dy, y: tf.raw_ops.EluGrad(gradients=dy, outputs=y),
    "tanh": lambda dy, y: tf.raw_ops.TanhGrad(y=y, dy=dy),
    "logistic": lambda dy, y: tf.raw_ops.SigmoidGrad(y=y, dy=dy),
    "exp": lambda dy, y: dy * y,
}


@dataclass(frozen=True)
class Chain:
    """The chain of an op, with what the operands lie against.

    Attributes:
      entries: in order; every operand is an input of the op, "#0" or "#0@128".
      channels: of the result.
      layout: of the result; "nhwc" for a plain one of any rank.
    """

    entries: tuple[Step, ...]
    channels: int
    layout: str

    @classmethod
    def of(cls, post_ops: str, channels: int, layout: str) -> "Chain":
        return cls(PostOps.parse(post_ops).entries, channels, layout)

    def __bool__(self) -> bool:
        return bool(self.entries)

    def apply(self, x, args):
        """The chain of `x`, in TensorFlow ops."""
        mask = None
        is_finite = all(not entry.name or entry.name in FINITE for entry in self.entries)
        if is_blocked(self.layout) and self.channels % 16 and not is_finite:
            # The tail is taken through the chain as ones, of which every function and its
            # derivative are finite: the gradient of a lane that is masked out afterwards is
            # 0 * f'(x), which is not zero where f'(0) is infinite.
            mask = lane_mask(self.channels, x.shape.rank)
            x = tf.where(mask, x, 1.0)
        for entry in self.entries:
            if entry.kind == "eltwise":
                params = dict(zip(("alpha", "beta"), ELTWISE[entry.name], strict=True))
                params |= {"scale": 1.0} | dict(entry.params)
                x = _FUNCTIONS[entry.name](x, params["alpha"], params["beta"])
                x = x if params["scale"] == 1 else params["scale"] * x
                continue
            operand = self._operand(entry, args, x.shape.rank, fill=0.0 if mask is None else 1.0)
            if mask is not None and operand.shape.rank == x.shape.rank:
                operand = tf.where(mask, operand, 1.0)
            if entry.kind == "sum":
                x = x + dict(entry.params).get("scale", 1.0) * operand
            else:
                x = _BINARY[entry.name](x, operand)
        return x if mask is None else tf.where(mask, x, 0.0)

    def backward(self, y, dy, args):
        """The gradients of what the chain was applied to and of `args`, from its result alone.

        None where they need more than the result: then `apply` has to be differentiated.
        """
        grads = [None] * len(args)
        for i, entry in enumerate(reversed(self.entries)):
            params = dict(entry.params)
            factor = params.get("alpha", 1.0) * params.get("scale", 1.0)
            if entry.kind == "eltwise":
                if entry.name == "linear":
                    dy = dy if factor == 1 else factor * dy
                elif i > 0 or params or entry.name not in FROM_RESULT:
                    return None
                else:
                    dy = FROM_RESULT[entry.name](dy, y)
                continue
            if entry.kind == "binary" and entry.name not in ("add", "sub"):
                return None
            factor = -1.0 if entry.name == "sub" else factor
            index, _ = place_of(entry.operand)
            grad = self._operand_gradient(entry, args[index], dy)
            grad = grad if factor == 1 else factor * grad
            grads[index] = grad if grads[index] is None else grads[index] + grad
        return dy, grads

    def _operand(self, entry: Step, args, rank: int, fill: float):
        """The operand, of a shape that broadcasts over x of `rank`."""
        index, offset = place_of(entry.operand)
        operand, shape = args[index], entry.shape
        if shape == "scalar":
            return elements(operand, offset, [])
        if shape == "channel":
            row = elements(operand, offset, [self.channels])
            return channel_row(row, self.channels, rank, fill) if is_blocked(self.layout) else row
        if shape == "sample_channel" and operand.shape.rank == 2 != rank:
            return tf.reshape(operand, [-1, *[1] * (rank - 2), self.channels])
        return operand

    def _operand_gradient(self, entry: Step, operand, dy):
        """The gradient of the operand of an addition of factor 1."""
        _, offset = place_of(entry.operand)
        shape = entry.shape or "tensor"
        if shape == "tensor":
            return dy
        if shape == "sample_channel":
            axes = spatial_axes(dy.shape.rank, self.layout)
            return tf.reshape(tf.reduce_sum(dy, axes), tf.shape(operand))
        if shape == "scalar":
            count, grad = 1, tf.reshape(tf.reduce_sum(dy), [1])
        else:
            count, grad = self.channels, channel_sums(dy, self.channels, self.layout)
        size = operand.shape.num_elements()
        if size != count:
            size = tf.size(operand) if size is None else size
            grad = tf.pad(grad, [[offset, size - offset - count]])
        return tf.reshape(grad, tf.shape(operand))


def through_chain(called, dy, chain: Chain, forward, backward, channels=None, may=True) -> list:
    """The gradients of an op that works on a source, may be by weights, and then applies a chain.

    Args:
      forward: (source, weights and inputs after the chain's operands) -> what the chain works on.
      backward: the gradient of that -> the gradients of these inputs.
      channels: of the source; default: those of the result.
      may: whether `backward` applies to the whole tensors; to parts it does not.
    """
    args, first, op = called.args, called.place("args"), definition(called.op.type)
    names = {item.name for item in (*op.attr, *op.input_arg)}
    src_part, dst_part, into, pool, shape, blocks = (
        getattr(called, name) if name in names else ()
        for name in ("src_part", "dst_part", "into", "pool", "weights_shape", "src_blocks")
    )
    may = may and not (src_part or dst_part or into or pool)
    if may and (not shape or is_whole(called.weights, called.weights_offset, shape)):
        through = chain.backward(called.dst, dy, args)
        if through is not None:
            dz, of_args = through
            grads = backward(dz)
            return [*grads[:first], *of_args, *grads[first:]]

    def formula(src, *inputs):
        inputs = [part_of(src, src_part, channels or chain.channels, blocks), *inputs]
        if shape:
            inputs[1] = elements(inputs[1], called.weights_offset, shape)
        last = first + len(args)
        y = chain.apply(forward(*inputs[:first], *inputs[last:]), inputs[first:last])
        y = pooled(y, "max", pool, pool, "VALID") if pool else y
        return place(y, dst_part, chain.channels, inputs[last:])

    return vjp(formula, called.inputs, dy)
