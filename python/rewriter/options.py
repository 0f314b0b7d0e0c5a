"""What a caller of `optimize` may choose about the rewritten function."""

import numbers
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from ..errors import UserError
from ..ops.arguments import check_scratchpad_mode
from .precision.lowering import PRECISIONS

ALGORITHMS = ("auto", "direct", "winograd", "paired")
MEMORY = ("normal", "low")
WEIGHTS = ("snapshot", "live")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What `optimize` takes of its arguments of these names.

    Attributes:
        measure: measures what `autotune` does, and only notes the times in the report.
        strict: whether an error of the rewriter itself is raised; as TF_BLOCKDNN_STRICT=1 says
            where nobody does.

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
    def of(cls, arguments: Mapping) -> "Options":
        """Those among a caller's arguments: any sequences, and `strict` None for the default."""
        choices = {f.name: arguments[f.name] for f in fields(cls) if f.name in arguments}
        if choices.get("strict") is None:
            choices.pop("strict", None)
        for option in ("exclude", "only"):
            if choices.get(option) is not None:
                choices[option] = _names_of(option, choices[option])
        return cls(**choices)

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
    def keeps_memory(self) -> bool:
        """Whether calls may keep the memory of intermediate tensors."""
        return self.memory != "low"

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
