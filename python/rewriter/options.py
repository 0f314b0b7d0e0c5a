"""What a caller of `optimize` may choose about the rewritten function."""

import os
from dataclasses import dataclass, field

from ..ops.arguments import check_scratchpad_mode

ALGORITHMS = ("auto", "direct", "winograd", "paired")
MEMORY = ("normal", "low")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Choices that hold for every converted op.

    Attributes:
        algorithm: "auto", "direct", "winograd" or "paired" (the last two: where they apply,
            docs/algorithms.md).
        memory: with algorithm "auto", how much the packed weights may take: "normal" is at
            most three times the weights' own memory, "low" at most 9/8 of it and the
            rounding of channels to 16 (no Winograd, no compressed copies). "normal" also keeps
            the memory of intermediate tensors from one call to the next, "low" does not.
        scratchpad_mode: "user" or "library", for every op that takes temporary memory.
        strict: an error of the rewriter itself is raised; otherwise the function stays as it was,
            with a RuntimeWarning and `report.error`. The default is whether TF_BLOCKDNN_STRICT=1.

    Raises:
        ValueError: an unknown choice.
    """

    algorithm: str = "auto"
    memory: str = "normal"
    scratchpad_mode: str = "user"
    strict: bool = field(default_factory=lambda: os.environ.get("TF_BLOCKDNN_STRICT") == "1")

    def __post_init__(self):
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm must be one of {ALGORITHMS}, not {self.algorithm!r}")
        if self.memory not in MEMORY:
            raise ValueError(f"memory must be one of {MEMORY}, not {self.memory!r}")
        check_scratchpad_mode(self.scratchpad_mode)
