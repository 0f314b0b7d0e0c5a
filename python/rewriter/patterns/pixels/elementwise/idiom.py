"""What a recognised piece of element-wise graph is."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from .....graph import Ref
from .....ops.records import Step


@dataclass(frozen=True)
class Idiom:
    """A chain of steps from `src` to the output of `root`, which has the same shape.

    Attributes:
        root: the node whose output 0 is the result.
        src: the source.
        operands: role -> tensor, of those that steps read. A role begins with the root's name,
            so that the roles of all idioms that one primitive absorbs are different.
        steps: what happens to the source.
        nodes: the root and every node in between; all but the root are private.
        scale, shift: for a per-channel affine map, float64 [channels]: the map itself.
    """

    root: str
    src: Ref
    steps: tuple[Step, ...]
    nodes: frozenset[str]
    operands: Mapping[str, Ref] = field(default_factory=dict)
    scale: np.ndarray | None = field(default=None, repr=False)
    shift: np.ndarray | None = field(default=None, repr=False)

    @property
    def inputs(self) -> dict[str, Ref]:
        """role -> tensor, of the source and the operands."""
        return {"src": self.src, **self.operands}

    @property
    def is_affine(self) -> bool:
        return self.scale is not None or self.shift is not None
