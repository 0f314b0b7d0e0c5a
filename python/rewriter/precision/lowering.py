"""What a run of the passes is told about precision, and what it tells back."""

from dataclasses import dataclass, field, replace

import numpy as np
from tensorflow.core.framework import types_pb2

from ...graph import Ref
from ...native import multiplies
from .observer import Choice

PRECISIONS = ("bf16", "int8", "bf16-weights", "int8-weights")

_SLOW = {
    "int8": "this CPU has no AVX512-VNNI: int8 is slower here than float32",
    "bf16": "this CPU has no AVX512-BF16: bf16 is slower here than float32",
}


def slow_here(precision: str) -> str | None:
    """One line where this CPU does not multiply numbers of that precision as they are."""
    return None if precision not in _SLOW or multiplies(precision) else _SLOW[precision]


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
        precision: one of `PRECISIONS`.
        observing: nothing is lowered; the pass only names the tensors that would be.
        choices: tensor -> its quantization, by the name of the node that makes it.
        means: tensor -> the mean of each of its channels.
        keep: the convolutions that stay float32.
        tensors: which are narrow, in the order in which they are made.
        layers: what became of each convolution.
    """

    precision: str
    observing: bool = False
    choices: dict[str, Choice] = field(default_factory=dict)
    means: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    keep: frozenset[str] = frozenset()
    tensors: list[Ref] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)

    def again(self) -> "Lowering":
        """The same for another run of the passes."""
        return replace(self, tensors=[], layers=[])

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
