"""What a run of the passes is told about precision, and what it tells back."""

from dataclasses import dataclass, field, replace

import numpy as np
from tensorflow.core.framework import types_pb2

from ...graph import Ref
from ...ops.records import Conv
from .moments import Moments, SampledRows
from .observer import Choice


@dataclass(frozen=True)
class Layer:
    """A layer that works in low precision, or was to.

    Attributes:
        node: its name in the report.
        dtype: of what it reads: "uint8", "bfloat16", or "float32" where it lost too much; of its
            weights, where only they have low precision.
        method: how the quantization of its result was found: "min-max" or "mse"; empty where there
            is none.
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
        choices: tensor -> quantization.
        means: tensor -> the mean of each channel.
        moments: convolution -> those of what it reads, where there are few taps.
        rows: tensor that products read -> some rows of it.
        keep: the convolutions that stay float32.
        tensors: of low precision and with a range of their own, in the order in which they run.
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
    rows: dict[Ref, SampledRows] = field(default_factory=dict, repr=False)
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
    def makes_bytes(self) -> bool:
        """Whether what is stored in low precision is integers; else it is bfloat16."""
        return self.precision.startswith("int")

    @property
    def makes_int4(self) -> bool:
        """Whether weights of products are numbers of 4 bits."""
        return self.precision == "int4-weights"

    @property
    def looks_at_rows(self) -> bool:
        """Whether weights of products are rounded by the rows that they multiply, where known."""
        return self.makes_int4 or self.precision in ("int8", "int8-dynamic")

    @property
    def convolves(self) -> bool:
        """Whether convolutions read low-precision tensors."""
        return self.precision in ("bf16", "int8")

    @property
    def weights_only(self) -> bool:
        """Whether weights alone are stored in low precision; tensors and arithmetic are float32."""
        return self.precision.endswith("-weights")
