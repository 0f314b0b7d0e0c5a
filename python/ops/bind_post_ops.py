"""Attaches a chain to an op: the tensors in it become `args`, the rest the attribute."""

from dataclasses import dataclass, replace

import tensorflow as tf

from ..layout import BLOCK, NCHW16C, NHWC, num_blocks
from .arguments import invalid, quantization
from .movement.reorder import reorder
from .post_op_entry import LOW_PRECISION, TensorOperand, place_of
from .post_ops import PostOps
from .steps import Step


@dataclass(frozen=True)
class Destination:
    """What a chain is applied to.

    Attributes:
        channels: C.
        rank: of the plain [N, .., C]; None if it is not known.
        layout: "nhwc" (of any rank) or "nChw16c".
        like: a tensor with as many samples, for operands that have one for all of them; None
            where there is none.
        quantization: of the operand that is uint8, as users pass it: the tail of what is laid out
            in blocks stands for zero.
    """

    channels: int
    rank: int | None = 4
    layout: str = NHWC
    like: object = None
    quantization: object = None

    def shape_of(self, operand: tf.TensorShape) -> str:
        """How a binary operand lies against dst, one of four words.

        Raises:
          ValueError: it does not fit.
        """
        if operand.rank is None:
            raise ValueError(
                'the rank of the operand is not known; say shape="scalar", "channel", '
                '"sample_channel" or "tensor"'
            )
        dims = operand.as_list()
        if all(size == 1 for size in dims):
            return "scalar"
        if self.is_blocked(operand):
            return "sample_channel" if dims[2:4] == [1, 1] else "tensor"
        fits = dims[-1] in (self.channels, 1, None)
        if fits and (self.rank is None or len(dims) <= self.rank):
            if all(size == 1 for size in dims[:-1]):
                return "channel"
            if len(dims) == self.rank:
                per_sample = self.rank > 2 and all(size == 1 for size in dims[1:-1])
                return "sample_channel" if per_sample else "tensor"
            if self.rank is None or len(dims) == 2:
                return "tensor" if self.rank is None else "sample_channel"
        c = self.channels
        raise ValueError(
            f"an operand of shape {dims} does not fit a dst of {c} channels; it must have one "
            f"element, or be [{c}], [N, {c}] or of the shape of dst, where N and the channels may "
            "be 1 for all of them"
        )

    def is_blocked(self, operand: tf.TensorShape) -> bool:
        """Whether a tensor of this shape is dst, or a value a sample and channel, in blocks."""
        if self.rank != 4 or operand.rank != 5:
            return False
        blocks, lanes = operand[1], operand[4]
        return blocks in (num_blocks(self.channels), None) and lanes in (BLOCK, None)

    def lay_out(self, operand, shape: str):
        """The operand as the op reads it: samples and tensors in dst's layout.

        Raises:
          ValueError: it has too few dimensions or other channels.
        """
        operand = tf.convert_to_tensor(operand)
        if shape in ("scalar", "channel") or None in (operand.shape.rank, self.rank):
            return operand
        blocked = self.is_blocked(operand.shape)
        operand = self._repeated(operand, blocked)
        if not blocked:
            self._check_plain(operand.shape.as_list(), shape)
        if shape == "sample_channel" and not blocked:
            middle = [1, 1] if self.layout == NCHW16C else []
            operand = tf.reshape(operand, [-1, *middle, self.channels])
        if blocked == (self.layout == NCHW16C):
            return operand
        layouts = (NCHW16C, NHWC) if blocked else (NHWC, NCHW16C)
        of = self._checked_quantization() if operand.dtype == tf.uint8 else None
        return reorder(
            operand, *layouts, channels=self.channels, src_quantization=of, dst_quantization=of
        )

    def _checked_quantization(self) -> list[float] | None:
        """Nothing if it is none: the op that takes the operand says so."""
        if self.quantization is None:
            return None
        scale, zero_point = quantization("sum_quantization", self.quantization)
        return [1.0, zero_point] if scale > 0 and zero_point in range(256) else None

    def _repeated(self, operand, blocked: bool):
        """The operand for every sample and channel, where it has one for all of them."""
        rank = operand.shape.rank
        samples = operand.shape[0] == 1 and self.like is not None and self.like.shape[0] != 1
        channels = not blocked and operand.shape[-1] == 1 != self.channels
        if not (samples or channels) or rank not in (2, self.rank + blocked):
            return operand
        sizes = tf.unstack(tf.shape(operand))
        sizes[0] = tf.shape(self.like)[0] if samples else sizes[0]
        sizes[-1] = self.channels if channels else sizes[-1]
        return tf.broadcast_to(operand, tf.stack(sizes))

    def _check_plain(self, dims: list, shape: str) -> None:
        ranks = (self.rank,) if shape == "tensor" else (2, self.rank)
        if len(dims) in ranks and dims[-1] in (self.channels, None):
            return
        wanted = {
            "tensor": f"the shape of dst, {self.channels} channels",
            "sample_channel": f"[N, {self.channels}]",
        }[shape]
        raise ValueError(f"the operand must have {wanted}; got {dims}")


def bind_post_ops(
    post_ops, args, dst, to: Destination, low_precision: bool = False
) -> tuple[str, list]:
    """The op attribute `post_ops` and the inputs `args`.

    Args:
      post_ops: `PostOps`, or the text of one.
      args: the operands that the chain calls #0, #1, ...
      dst: what sums without operand read, or None.
      to: what the chain is applied to.
      low_precision: whether the op takes operands of other types than float32 (`with_sum`).

    Raises:
      InvalidArgument: one line that names the entry and the remedy.
    """
    chain = PostOps.parse(post_ops) if isinstance(post_ops, str) else post_ops
    args, bound, used = list(args), [], False
    for i, entry in enumerate(chain.entries):
        try:
            entry, used = _bind(entry, args, dst, to, low_precision), used or _reads_dst(entry)
        except ValueError as error:
            raise invalid(f'post_ops entry {i} "{entry}": {error}') from None
        bound.append(str(entry))
    if dst is not None and not used:
        raise invalid(f'dst is given, but no sum of post_ops "{chain}" reads it')
    return ";".join(bound), args


def with_sum(post_ops: str, args: list) -> tuple[str, list, list]:
    """The result of `bind_post_ops`, with the one operand that may be other than float32 moved to
    the op's input `sum`, after args.

    Raises:
      InvalidArgument: there are several.
    """
    args = [tf.convert_to_tensor(arg) for arg in args]
    others = [i for i, arg in enumerate(args) if arg.dtype in LOW_PRECISION]
    if not others:
        return post_ops, args, []
    if len(others) > 1:
        raise invalid(
            f'one operand of post_ops "{post_ops}" may be other than float32, not {len(others)}; '
            "reorder the others"
        )
    order = [i for i in range(len(args)) if i != others[0]] + others
    entries = []
    for entry in PostOps.parse(post_ops).entries:
        if isinstance(entry.operand, str):
            index, offset = place_of(entry.operand)
            operand = f"#{order.index(index)}" + (f"@{offset}" if offset else "")
            entry = replace(entry, operand=operand)
        entries.append(str(entry))
    return ";".join(entries), [args[i] for i in order[:-1]], [args[others[0]]]


def _reads_dst(entry: Step) -> bool:
    return entry.kind == "sum" and entry.operand is None


def _bind(entry: Step, args: list, dst, to: Destination, low_precision: bool) -> Step:
    """The entry with the operand, if that is a tensor, appended to `args` and named."""
    operand = entry.operand
    if _reads_dst(entry):
        if dst is None:
            raise ValueError("it adds the previous contents of dst; give them as dst=...")
        operand = TensorOperand(tf.convert_to_tensor(dst) if low_precision else dst)
    if not isinstance(operand, TensorOperand):
        return entry
    if operand.value.dtype in LOW_PRECISION and not low_precision:
        raise ValueError(f"the operand is {operand.value.dtype.name}, not float32; cast it")
    if entry.kind == "binary" and not entry.shape:
        entry = replace(entry, shape=to.shape_of(operand.shape))
    args.append(to.lay_out(operand.value, entry.shape or "tensor"))
    return replace(entry, operand=f"#{len(args) - 1}")
