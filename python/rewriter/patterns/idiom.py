"""What a recognised piece of element-wise graph is."""

from dataclasses import dataclass, field

import numpy as np

from ...graph import Ref
from ..plan import Step


@dataclass(frozen=True)
class Idiom:
    """A chain of steps from inputs[0] to the output of `root`, which has the same shape.

    Attributes:
        root: the node whose output 0 is the result.
        inputs: the source, then the tensors that the steps name by index.
        steps: what happens to the source.
        nodes: the root and every node in between; all but the root are private.
        scale, shift: for a per-channel affine map, float64 [channels]: the map itself.
    """

    root: str
    inputs: tuple[Ref, ...]
    steps: tuple[Step, ...]
    nodes: frozenset[str]
    scale: np.ndarray | None = field(default=None, repr=False)
    shift: np.ndarray | None = field(default=None, repr=False)

    @property
    def src(self) -> Ref:
        return self.inputs[0]

    @property
    def is_affine(self) -> bool:
        return self.scale is not None or self.shift is not None
