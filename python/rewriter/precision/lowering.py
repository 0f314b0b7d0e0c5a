"""What a run of the passes is told about precision, and what it tells back."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from tensorflow.core.framework import types_pb2

from ...graph import Body, Node, Ref
from ...native import multiplies
from ...ops.records import Conv
from .moments import Moments
from .observer import Choice

_SLOW = {
    "int8": "this CPU has no VNNI: int8 is slower here than float32",
    "bf16": "this CPU has no AVX512-BF16: bf16 is slower here than float32",
}
_NOMINAL = 64  # what an unknown height or width counts as
# A product's time without VNNI, that of float32 being 1: of bytes, of a depthwise one of floats and
# of bytes, and of a window that Winograd's algorithm computes, of bytes and in float32. What an
# element of a result takes beside, more than in float32 (docs/experiments.md).
_OF_BYTES, _DEPTHWISE, _DEPTHWISE_OF_BYTES = 0.73, 1.3, 2.6
_ELEMENT_OF_BYTES = 14
_WINOGRAD_OF_BYTES = {(3, 3): 0.29}
_WINOGRAD = {(3, 3): 0.38, (5, 5): 0.54, (1, 3): 0.75, (3, 1): 0.75, (1, 7): 0.64, (7, 1): 0.64}


def slow_in_bf16() -> str | None:
    """One line where this CPU does not multiply bfloat16 as it is."""
    return None if multiplies("bf16") else _SLOW["bf16"]


def slow_in_int8(body: Body, convolutions: Iterable[Node]) -> str | None:
    """One line where those convolutions take longer here on bytes than in float32.

    Without instructions for bytes they are ahead where sums are long, unless Winograd's algorithm
    applies in float32 alone.
    """
    if multiplies("int8"):
        return None
    of_floats = of_bytes = 0.0
    for node in convolutions:
        conv = node.payload
        count = body.shapes.elements(node.ref, _NOMINAL) if body.shapes.shape(node.ref) else 0
        products = count * conv.taps
        window = tuple(conv.weights.shape[:2])
        plain = conv.groups == 1 and conv.strides == conv.dilations == (1, 1)
        by_floats = _DEPTHWISE if conv.depthwise else _WINOGRAD.get(window, 1.0) if plain else 1.0
        by_bytes = _WINOGRAD_OF_BYTES.get(window, _OF_BYTES) if plain else _OF_BYTES
        of_floats += products * by_floats
        of_bytes += products * (_DEPTHWISE_OF_BYTES if conv.depthwise else by_bytes)
        of_bytes += count * _ELEMENT_OF_BYTES
    return _SLOW["int8"] if of_bytes > of_floats else None


@dataclass(frozen=True)
class Layer:
    """A layer that works in low precision, or was to.

    Attributes:
        node: its name in the report.
        dtype: of what it reads: "uint8", "bfloat16", or "float32" where it lost too much; of its
            weights, where only they are narrow.
        method: how the quantization of its result was found: "min-max", "percentile 99.9", "mse";
            empty where there is none.
        scale, zero_point: of its result, where that is uint8.
        snr: what rounding its weights and its source leaves, in dB.
    """

    node: str
    dtype: str
    method: str = ""
    scale: float | None = None
    zero_point: int | None = None
    snr: float | None = None


@dataclass
class Lowering:
    """One way to lower the precision of a function.

    Attributes:
        precision: as of `Options`.
        observing: nothing is lowered; the pass only names the tensors that would be.
        to_nearest: bfloat16 weights are rounded one by one, as the model itself does.
        choices: tensor -> its quantization.
        means: tensor -> the mean of each of its channels.
        moments: convolution -> those of what it reads, where its taps are few.
        keep: the convolutions that stay float32.
        tensors: which are narrow and have a range of their own, in the order in which they run.
        convolutions: what is lowered: name, source and payload in float32.
        layers: what became of each convolution.
        left: (node, reason) of each product that no way to lower this precision changes.
    """

    precision: str
    observing: bool = False
    to_nearest: bool = False
    choices: dict[Ref, Choice] = field(default_factory=dict)
    means: dict[Ref, np.ndarray] = field(default_factory=dict, repr=False)
    moments: dict[str, Moments] = field(default_factory=dict, repr=False)
    keep: frozenset[str] = frozenset()
    tensors: list[Ref] = field(default_factory=list)
    convolutions: list[tuple[str, Ref, Conv]] = field(default_factory=list, repr=False)
    layers: list[Layer] = field(default_factory=list)
    left: list[tuple[str, str]] = field(default_factory=list)

    def again(self) -> "Lowering":
        """The same for another run of the passes."""
        return replace(self, tensors=[], convolutions=[], layers=[], left=[])

    @property
    def dtype(self) -> int:
        return types_pb2.DT_UINT8 if self.is_int8 else types_pb2.DT_BFLOAT16

    @property
    def is_int8(self) -> bool:
        """Whether tensors become bytes, whose ranges somebody must know."""
        return self.precision == "int8"

    @property
    def weights_only(self) -> bool:
        """Whether weights are stored narrow, and all tensors and arithmetic stay float32."""
        return self.precision.endswith("-weights")
