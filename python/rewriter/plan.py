"""Planned primitives: what the passes decide about, before it becomes NodeDefs.

A node of the view that carries one of these as payload will be emitted as the
custom op of the same name. Its data inputs are `node.inputs`: the source first,
then the tensors that its steps name by index.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from ..layout import BLOCK, NHWC
from ..layout import NCHW16C as BLOCKED

__all__ = [
    "BLOCK",
    "BLOCKED",
    "MAX_STEPS",
    "NHWC",
    "Concat",
    "Conv",
    "ConvDepthwise",
    "Eltwise",
    "GlobalPool",
    "InnerProduct",
    "Pool",
    "Primitive",
    "Reorder",
    "Shuffle",
    "Softmax",
    "SqueezeExcite",
    "Step",
    "binary",
    "compose_affine",
    "eltwise",
    "sum_of",
]

MAX_STEPS = 32  # entries that a post-op chain may have

Layout = Literal["nhwc", "nChw16c", "nc"]


@dataclass(frozen=True)
class Step:
    """One entry of a post-op chain.

    Attributes:
        kind: "eltwise", "sum" or "binary".
        name: the algorithm; empty for "sum".
        shape: a binary operand's shape: "scalar", "channel", "sample_channel" or "tensor".
        operand: an index into the inputs of the node, or constant values (any shape of
            one element, or one element a channel).
        params: alpha, beta, scale, where they are given.
    """

    kind: str
    name: str = ""
    shape: str = ""
    operand: int | np.ndarray | None = None
    params: tuple[tuple[str, float], ...] = ()

    def moved(self, by: int) -> "Step":
        """The same step with its input index moved by `by`."""
        return replace(self, operand=self.operand + by) if isinstance(self.operand, int) else self

    def text(self, operand: str = "") -> str:
        """The entry as the op attribute spells it, its operand being `operand` ("#0@128")."""
        words = [word for word in (self.name, self.shape, operand) if word]
        words += [f"{key}={value:.9g}" for key, value in self.params]
        return f"{self.kind}({','.join(words)})"


def _pair(sizes: tuple[int, int]) -> str:
    """ "2", or "2x1" where the two differ."""
    return str(sizes[0]) if sizes[0] == sizes[1] else f"{sizes[0]}x{sizes[1]}"


def eltwise(name: str, **params: float) -> Step:
    return Step("eltwise", name, params=tuple(params.items()))


def binary(name: str, shape: str, operand: int | np.ndarray) -> Step:
    return Step("binary", name, shape, operand)


def sum_of(operand: int) -> Step:
    return Step("sum", operand=operand)


def compose_affine(first, second):
    """The map `first`, then `second`, each a pair (scale, shift) of which either may be None."""
    (scale, shift), (s2, t2) = first, second
    if s2 is not None:
        scale = s2 if scale is None else scale * s2
        shift = None if shift is None else shift * s2
    if t2 is not None:
        shift = t2 if shift is None else shift + t2
    return scale, shift


@dataclass(frozen=True, kw_only=True)
class Primitive:
    """Common to all: the graph node it came from, its logical output channels, its steps.

    Attributes:
        src_part: (first channel, channels in all) where the source is part of a wider tensor.
        dst_part: the same of the result.
        into: the last input is the wider tensor of dst_part, as the op before left it.
    """

    op: ClassVar[str]
    origin: str
    channels: int
    steps: tuple[Step, ...] = ()
    src_part: tuple[int, int] | None = None
    dst_part: tuple[int, int] | None = None
    into: bool = False
    takes_steps: ClassVar[bool] = False
    takes_scratchpad: ClassVar[bool] = False
    own_inputs: ClassVar[int] = 1  # those before the tensors that steps name

    @property
    def entries(self) -> int:
        """How many entries its post-op chain will have."""
        return len(self.steps)

    @property
    def dst_layout(self) -> Layout:
        return BLOCKED

    def src_layout_of(self, index: int) -> Layout:
        """The layout in which input `index` is read."""
        return BLOCKED

    def shape(self, node, shapes):
        """The logical shape of the node that it is the payload of; None where it is not known."""
        return None

    def details(self) -> str:
        """One line for the report: what it is, without values."""
        return "; ".join([self._kind(), *(step.text() for step in self.steps), *self._parts()])

    def _kind(self) -> str:
        return f"{self.channels} channels"

    def _parts(self) -> list[str]:
        sides = {"reads": self.src_part, "writes": self.dst_part}
        return [f"{verb} from channel {p[0]} of {p[1]}" for verb, p in sides.items() if p]


@dataclass(frozen=True, kw_only=True)
class Conv(Primitive):
    """A convolution: scale * conv(src, weights) + shift per output channel, then the steps.

    Attributes:
        weights: HWIO, [kh, kw, in_channels / groups, channels]; as stored in the variable.
        scale, shift: what batch normalisation and bias add up to, float64 [channels].
        src_scaled: inputs[1] is a factor for each sample and channel of the source.
        pool: [height, width] of the max pooling behind the steps, in windows that touch.
    """

    op: ClassVar[str] = "BlockdnnConv"
    takes_steps: ClassVar[bool] = True
    takes_scratchpad: ClassVar[bool] = True
    weights: np.ndarray = field(repr=False)
    in_channels: int
    groups: int = 1
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    padding: str = "VALID"
    explicit_paddings: tuple[int, int, int, int] = (0, 0, 0, 0)
    scale: np.ndarray | None = field(default=None, repr=False)
    shift: np.ndarray | None = field(default=None, repr=False)
    reads: Layout = BLOCKED
    writes: Layout = BLOCKED
    algorithm: str = "auto"
    src_scaled: bool = False
    pool: tuple[int, ...] = ()

    @property
    def own_inputs(self) -> int:
        return 1 + self.src_scaled

    @property
    def chain(self) -> tuple[Step, ...]:
        """The steps with the shift before them."""
        shift = () if self.shift is None else (binary("add", "channel", self.shift),)
        return (*shift, *self.steps)

    @property
    def entries(self) -> int:
        return len(self.steps) + (self.shift is not None)

    @property
    def dst_layout(self) -> Layout:
        return self.writes

    def src_layout_of(self, index: int) -> Layout:
        return self.reads if index < self.own_inputs else self.writes

    def details(self) -> str:
        return f"{super().details()}; max {list(self.pool)}" if self.pool else super().details()

    def _kind(self) -> str:
        kh, kw = self.weights.shape[:2]
        groups = f" groups {self.groups}" if self.groups > 1 else ""
        stride = f" stride {_pair(self.strides)}" if self.strides != (1, 1) else ""
        dilation = f" dilation {_pair(self.dilations)}" if self.dilations != (1, 1) else ""
        explicit = f"pad {list(self.explicit_paddings)}"
        pad = explicit if self.padding == "EXPLICIT" else self.padding.lower()
        scaled = " of src times sample_channel" if self.src_scaled else ""
        return (
            f"{kh}x{kw}{stride}{dilation} {pad} {self.in_channels}->{self.channels}{groups} "
            f"{self.reads}->{self.writes}{scaled}"
        )

    @property
    def depthwise(self) -> bool:
        return self.groups > 1 and self.groups == self.in_channels

    def then_affine(self, scale: np.ndarray | None, shift: np.ndarray | None) -> "Conv":
        """This convolution followed by scale * x + shift, folded (float64)."""
        scale, shift = compose_affine((self.scale, self.shift), (scale, shift))
        return replace(self, scale=scale, shift=shift)

    def write_weights(self, out: np.ndarray) -> None:
        """Writes the weights, scale multiplied in and rounded once, to a float32 vector."""
        out = out.reshape(self.weights.shape)
        if self.scale is None:
            out[...] = self.weights
        else:
            np.multiply(self.weights, self.scale, out=out, dtype=np.float64, casting="same_kind")


@dataclass(frozen=True, kw_only=True)
class ConvDepthwise(Primitive):
    """A 1x1 convolution and the depthwise one that alone reads it, in blocks.

    Attributes:
        first, depthwise: the two; the steps of the first read no tensors. `steps` are those
            of the second.
    """

    op: ClassVar[str] = "BlockdnnConvDepthwise"
    takes_steps: ClassVar[bool] = True
    takes_scratchpad: ClassVar[bool] = True
    first: Conv
    depthwise: Conv
    algorithm: str = "auto"

    def details(self) -> str:
        return f"{self.first.details()}; then {self.depthwise.details()}"


@dataclass(frozen=True, kw_only=True)
class InnerProduct(Primitive):
    """src [.., in_channels] @ weights, then the steps; inputs[1] is the weights themselves.

    They stay where they are, and follow their variable.

    Attributes:
        algorithm: "auto" keeps a compressed copy of large weights, "direct" none.
    """

    op: ClassVar[str] = "BlockdnnInnerProduct"
    takes_steps: ClassVar[bool] = True
    takes_scratchpad: ClassVar[bool] = True
    own_inputs: ClassVar[int] = 2
    in_channels: int
    algorithm: str = "auto"

    @property
    def dst_layout(self) -> Layout:
        return NHWC

    def src_layout_of(self, index: int) -> Layout:
        return NHWC

    def _kind(self) -> str:
        return f"{self.in_channels}->{self.channels}"


@dataclass(frozen=True, kw_only=True)
class Eltwise(Primitive):
    """A chain of steps on a tensor that stays in its layout."""

    op: ClassVar[str] = "BlockdnnEltwise"
    takes_steps: ClassVar[bool] = True
    layout: Layout = BLOCKED

    @property
    def dst_layout(self) -> Layout:
        return self.layout

    def src_layout_of(self, index: int) -> Layout:
        return self.layout


@dataclass(frozen=True, kw_only=True)
class Pool(Primitive):
    op: ClassVar[str] = "BlockdnnPool"
    kind: str
    ksize: tuple[int, int]
    strides: tuple[int, int]
    padding: str
    explicit_paddings: tuple[int, int, int, int] = (0, 0, 0, 0)

    def _kind(self) -> str:
        explicit = f"pad {list(self.explicit_paddings)}"
        pad = explicit if self.padding == "EXPLICIT" else self.padding.lower()
        size = f"{self.ksize[0]}x{self.ksize[1]}"
        return f"{self.kind} {size} stride {_pair(self.strides)} {pad}"


@dataclass(frozen=True, kw_only=True)
class GlobalPool(Primitive):
    op: ClassVar[str] = "BlockdnnGlobalPool"
    kind: str
    writes: Layout = "nc"

    @property
    def dst_layout(self) -> Layout:
        return self.writes

    def _kind(self) -> str:
        return f"{self.kind} of {self.channels} channels, writes {self.writes}"


@dataclass(frozen=True, kw_only=True)
class SqueezeExcite(Primitive):
    """Scales of a sample and channel: the plane's mean through two 1x1 convolutions.

    Their steps are element-wise; weights, scale and shift are as of any convolution.

    Attributes:
        scales_src: the result is the source times the scales.
    """

    op: ClassVar[str] = "BlockdnnSqueezeExcite"
    takes_scratchpad: ClassVar[bool] = True
    reduce: Conv
    expand: Conv
    writes: Layout
    scales_src: bool = False

    @property
    def dst_layout(self) -> Layout:
        return self.writes

    @property
    def products(self) -> tuple[Conv, Conv]:
        return self.reduce, self.expand

    def _kind(self) -> str:
        chains = (step.text() for conv in self.products for step in conv.steps)
        widths = f"{self.channels}->{self.reduce.channels}->{self.channels}"
        times = " times src" if self.scales_src else ""
        return "; ".join([f"{widths}{times}, writes {self.writes}", *chains])


@dataclass(frozen=True, kw_only=True)
class Concat(Primitive):
    op: ClassVar[str] = "BlockdnnConcat"
    parts: tuple[int, ...]

    def _kind(self) -> str:
        return f"channels {list(self.parts)}"


@dataclass(frozen=True, kw_only=True)
class Shuffle(Primitive):
    """The channels as a (channels / group) x group matrix, transposed."""

    op: ClassVar[str] = "BlockdnnShuffle"
    group: int

    def _kind(self) -> str:
        return f"{self.channels} channels, group {self.group}"


@dataclass(frozen=True, kw_only=True)
class Softmax(Primitive):
    """Along the last axis, the channels, of a plain tensor of any rank."""

    op: ClassVar[str] = "BlockdnnSoftmax"

    @property
    def dst_layout(self) -> Layout:
        return NHWC

    def src_layout_of(self, index: int) -> Layout:
        return NHWC


@dataclass(frozen=True, kw_only=True)
class Reorder(Primitive):
    op: ClassVar[str] = "BlockdnnReorder"
    reads: Layout
    writes: Layout

    @property
    def dst_layout(self) -> Layout:
        return self.writes

    def src_layout_of(self, index: int) -> Layout:
        return self.reads

    def shape(self, node, shapes):
        return shapes.shape(node.inputs[0])
