"""What a caller of `optimize` may choose about the rewritten function."""

import numbers
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..errors import UserError
from ..ops.arguments import check_scratchpad_mode
from .precision.lowering import PRECISIONS

ALGORITHMS = ("auto", "direct", "winograd", "paired")
MEMORY = ("normal", "low")
WEIGHTS = ("snapshot", "live")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Choices that hold for every converted op.

    Attributes:
        algorithm: "auto", "direct", "winograd" or "paired" (the last two: where they apply,
            docs/algorithms.md).
        memory: with algorithm "auto", how much the packed weights may take: "normal" is at
            most three times the weights' own memory, "low" at most 9/8 of it and the
            rounding of channels to 16 (no Winograd). "normal" also keeps
            the memory of intermediate tensors from one call to the next, "low" does not.
        scratchpad_mode: "user" or "library", for every op that takes temporary memory.
        exclude, only: names or regular expressions, for the convolutions, matrix products and
            softmaxes with which converted parts of a graph begin: those that match `exclude`, or do
            not match `only`, stay with TensorFlow. A name is a node's ("stem/conv/convolution")
            or any beginning of it up to a slash ("stem"), such as a Keras layer's; a regular
            expression has to match the whole of either.
        weights: "snapshot" computes for good with the weights of the moment of conversion, "live"
            with those that the original's variables have at each call.
        precision: "bf16" or "int8", for convolutions and what lies between them; "bf16-weights" or
            "int8-weights", for weights alone; None is float32.
        max_loss: the largest root mean square error of an output that low precision may cause, as a
            part of the output's own; layers that lose most stay float32 until it holds.
        deterministic: results do not depend on the size of the batch, on the other samples in it,
            or on the number of threads: algorithm "direct" for everything. What stays with
            TensorFlow and adds up many numbers is noted in the report.
        autotune: measures each part that has reorders both ways and keeps what is faster.
        measure: measures the same and only notes the times in the report.
        strict: an error of the rewriter itself is raised; otherwise the pass that failed is left
            out, or the function stays as it was where no pass is to blame, with a RuntimeWarning
            and `report.error`. The default is whether TF_BLOCKDNN_STRICT=1.

    Raises:
        ValueError: an unknown choice, an expression that is none, or choices that exclude each
            other.
    """

    algorithm: str = "auto"
    memory: str = "normal"
    scratchpad_mode: str = "user"
    exclude: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    weights: str = "snapshot"
    precision: str | None = None
    max_loss: float | None = None
    deterministic: bool = False
    autotune: bool = False
    measure: bool = False
    strict: bool = field(default_factory=lambda: os.environ.get("TF_BLOCKDNN_STRICT") == "1")

    @classmethod
    def of(cls, *, exclude=(), only=None, strict: bool | None = None, **choices) -> "Options":
        """The same from a caller's arguments: any sequences, and `strict` None for the default."""
        if strict is not None:
            choices["strict"] = strict
        return cls(
            exclude=_names_of("exclude", exclude),
            only=None if only is None else _names_of("only", only),
            **choices,
        )

    def __post_init__(self):
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm must be one of {ALGORITHMS}, not {self.algorithm!r}")
        if self.memory not in MEMORY:
            raise ValueError(f"memory must be one of {MEMORY}, not {self.memory!r}")
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights must be one of {WEIGHTS}, not {self.weights!r}")
        check_scratchpad_mode("scratchpad_mode", self.scratchpad_mode)
        self._check_precision()
        self._check_deterministic()
        for pattern in (*self.exclude, *(self.only or ())):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(
                    f"exclude or only: not a regular expression: {pattern!r}: {error}"
                ) from None

    @property
    def is_live(self) -> bool:
        """Whether weights are those that the original has at each call."""
        return self.weights == "live"

    @property
    def needs_calibration(self) -> bool:
        """Whether nothing can be decided without data."""
        return self.precision == "int8" or self.max_loss is not None

    def _check_precision(self) -> None:
        if self.precision is not None and self.precision not in PRECISIONS:
            raise UserError(f"precision must be one of {PRECISIONS}, not {self.precision!r}")
        if self.precision is not None and self.deterministic:
            raise UserError(
                "deterministic=True and precision exclude each other: leave one of them out"
            )
        if self.max_loss is None:
            return
        if self.precision is None:
            raise UserError("max_loss is for a precision, which is not given")
        if not isinstance(self.max_loss, numbers.Real) or not 0 < self.max_loss < 1:
            raise UserError(
                "max_loss must be a part of the outputs' magnitude between 0 and 1, such as 0.05, "
                f"not {self.max_loss!r}"
            )

    def _check_deterministic(self) -> None:
        if not self.deterministic:
            return
        if self.algorithm not in ("auto", "direct"):
            raise ValueError(f'deterministic=True is algorithm "direct", not {self.algorithm!r}')
        if self.autotune:
            raise ValueError("deterministic=True and autotune=True exclude each other: times vary")
        object.__setattr__(self, "algorithm", "direct")

    def reason_to_leave(self, node: str) -> str | None:
        """Why the caller wants the node of that name left alone; None where nothing says so."""
        for pattern in self.exclude:
            if _names(pattern, node):
                return f"excluded by {pattern!r}"
        if self.only is not None and not any(_names(pattern, node) for pattern in self.only):
            return "not among those that `only` names"
        return None

    def unmatched(self, nodes: Iterable[str]) -> list[str]:
        """A line for each name or expression that matches none of the nodes."""
        nodes = list(nodes)
        given = [("exclude", p) for p in self.exclude] + [("only", p) for p in self.only or ()]
        return [
            f"{option}: no node or layer matches {pattern!r}; tf-blockdnn inspect lists the names"
            for option, pattern in given
            if not any(_names(pattern, node) for node in nodes)
        ]


def _names_of(option: str, names) -> tuple[str, ...]:
    """A sequence of names as a tuple; one string would come apart into letters."""
    if isinstance(names, str):
        raise ValueError(f"{option} must be a list of names, such as [{names!r}], not {names!r}")
    return tuple(names)


def _names(pattern: str, node: str) -> bool:
    """Whether the pattern is, or matches, the node's name or a beginning of it up to a slash."""
    parts = node.split("/")
    starts = ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
    return any(pattern == start or re.fullmatch(pattern, start) for start in starts)
