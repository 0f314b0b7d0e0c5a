"""What a caller may choose about a rewritten function: the one place where an option stands.

A field of `Options` is an option: its type says what it may be, its entry below is its
documentation, and the first sentence of that is the help of its flag on the command line. Imports
no TensorFlow, so that the command line answers at once.
"""

import numbers
import os
import re
import typing
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Literal

from .errors import UserError

# The largest difference that `verify=True` allows, relative to the output.
TOLERANCE = 1e-4
PrecisionName = Literal[
    None, "bf16", "int8", "int8-dynamic", "bf16-weights", "int8-weights", "int4-weights"
]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to choose about an optimised function.

    `bd.optimize` takes the usual ones as keyword arguments, too, which win over those of `options`.

    Attributes:
        algorithm: how every convolution is computed. "auto" takes the fastest. "direct" adds the
            products of the definition, also in recurrent and Dense layers; "winograd" and "paired"
            (FIP) apply where they can.
        memory: packed weights take at most 3 times the weights' own memory, or 9/8 of it. "low"
            does without Winograd, so it is slower. "normal" also keeps the memory of a call's
            intermediate tensors for the next call on the same shapes.
        scratchpad_mode: temporary memory from TensorFlow, or from buffers kept with each op.
            "user" takes it from TensorFlow's allocator for each execution, or from what
            memory="normal" keeps.
        verify: also runs both models on a random input, or on a batch of calibration data, and
            compares. A number is the largest difference allowed, relative to the output; True is
            1e-4, with precision="bf16" 0.1, with "int8" and "int8-dynamic" 0.25,
            with "int4-weights" 0.5.
        exclude: names of nodes or layers, or regular expressions that match them, to leave alone.
            They stay with TensorFlow. Names are those of the report, or whole ones.
        only: names of nodes or layers, or regular expressions that match them, to convert alone.
        weights: "snapshot" computes with the weights of this moment, "live" with those that the
            original has at each call. After training or loading others, a snapshot needs another
            `optimize`. A signature that is converted at its first call has the weights of this
            moment, too, for which the values that the original drops meanwhile are kept; a function
            in which nothing is converted stays the original's. "live" holds the original and checks
            for changes in some microseconds a call; the first call after a change folds and packs
            all weights again (docs/models.md, "Weights").
        precision: bf16 or int8 in the place of float32, for whole layers or for weights alone.
            "bf16" and "int8" let convolutions, what lies between them and products by weights
            compute in these types, "int8-dynamic" products alone, without calibration;
            "bf16-weights" and "int8-weights" store weights so and compute in float32, and
            "int4-weights" those of products, of others int8
            (docs/low-precision.md). None is float32.
        max_loss: for a precision: the largest root mean square error of an output, relative to it.
            0.05 is 5 %, or 26 dB. The layers that lose most stay float32 until it holds on
            calibration data.
        deterministic: results do not depend on the size of the batch, its other samples, or the
            number of threads. The faster algorithms are not used (docs/algorithms.md, "The same
            bits"). `report.notes` names the sums that TensorFlow still computes.
        autotune: measures each part that has reorders both ways, and keeps the faster. The whole
            function stays as it was if that is faster still. It takes a few dozen calls for each
            part; `report.notes` has the times.
        measure: measures what `autotune` does, and each region, and only notes the times in
            `report.measured`.
        strict: fails on an error of the rewriter itself. False leaves out the pass that failed (or
            returns the function as it was), warns, and keeps the traceback in `report.error`. None
            is True only where the environment has TF_BLOCKDNN_STRICT=1.

    Raises:
        ValueError: an unknown choice, an expression that is none, or choices that exclude each
            other.

    Example:
        >>> direct = bd.Options(algorithm="direct", exclude=["head"])
        >>> model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(8, 3)])
        >>> bd.optimize(model, options=direct).report.converted[0].algorithm
        'direct'
    """

    algorithm: Literal["auto", "direct", "winograd", "paired"] = "auto"
    memory: Literal["normal", "low"] = "normal"
    scratchpad_mode: Literal["user", "library"] = "user"
    verify: bool | float = False
    exclude: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    weights: Literal["snapshot", "live"] = "snapshot"
    precision: PrecisionName = None
    max_loss: float | None = None
    deterministic: bool = False
    autotune: bool = False
    measure: bool = False
    strict: bool | None = None

    def __post_init__(self):
        for field in fields(self):
            choices, value = typing.get_args(field.type), getattr(self, field.name)
            if typing.get_origin(field.type) is Literal and value not in choices:
                raise UserError(f"{field.name} must be one of {choices}, not {value!r}")
        for name in ("exclude", "only"):
            if (patterns := getattr(self, name)) is not None:
                object.__setattr__(self, name, _checked(name, patterns))
        if not isinstance(self.verify, numbers.Real) or not self.verify >= 0:
            raise UserError(
                "verify must be a bool, or the largest difference, such as 1e-4, not "
                f"{self.verify!r}"
            )
        if self.max_loss is not None:
            if self.precision is None:
                raise UserError("max_loss is for a precision, which is not given")
            if not isinstance(self.max_loss, numbers.Real) or not 0 < self.max_loss < 1:
                raise UserError(
                    "max_loss must be a part of the outputs' magnitude between 0 and 1, such as "
                    f"0.05, not {self.max_loss!r}"
                )
        if self.deterministic:
            for name, reason in (("precision", ""), ("autotune", ": times vary")):
                if getattr(self, name):
                    raise UserError(
                        f"deterministic=True and {name} exclude each other{reason}: leave one of "
                        "them out"
                    )
            if self.algorithm not in ("auto", "direct"):
                raise UserError(f'deterministic=True is algorithm "direct", not {self.algorithm!r}')
            object.__setattr__(self, "algorithm", "direct")
        if self.strict is None:
            object.__setattr__(self, "strict", os.environ.get("TF_BLOCKDNN_STRICT") == "1")

    @property
    def tolerance(self) -> float:
        """The largest difference that `verify` allows."""
        return TOLERANCE if self.verify is True else float(self.verify)

    @property
    def keeps_memory(self) -> bool:
        """Whether calls may keep the memory of intermediate tensors."""
        return self.memory != "low"

    @property
    def is_live(self) -> bool:
        """Whether weights are those that the original has at each call."""
        return self.weights == "live"


def choose(options: Options | None, **choices) -> Options:
    """The options of a caller who gives `options`, and over these the choices that are not None."""
    if options is not None and not isinstance(options, Options):
        raise UserError(f"options must be tf_blockdnn.Options(...), not {options!r}")
    chosen = {name: value for name, value in choices.items() if value is not None}
    return replace(options or Options(), **chosen)


def reason_to_leave(options: Options, node: str, prefix: str = "") -> str | None:
    """Why the caller wants the node of that name left alone; None where nothing says so."""
    for pattern in options.exclude:
        if is_named(pattern, node, prefix):
            return f"excluded by {pattern!r}"
    only = options.only
    if only is not None and not any(is_named(pattern, node, prefix) for pattern in only):
        return "not among those that `only` names"
    return None


def unmatched(options: Options, nodes: Iterable[str], prefix: str = "") -> list[str]:
    """A line for each name or expression that matches none of the nodes."""
    nodes = list(nodes)
    return [
        f"{name}: no node or layer matches {pattern!r}; tf-blockdnn inspect lists the names"
        for name in ("exclude", "only")
        for pattern in getattr(options, name) or ()
        if not any(is_named(pattern, node, prefix) for node in nodes)
    ]


def _checked(option: str, patterns: Iterable[str]) -> tuple[str, ...]:
    """Names as a tuple; one string would come apart into letters."""
    patterns = names_of(option, patterns)
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise UserError(f"{option} must be a list of names, but {pattern!r} is none")
        try:
            re.compile(pattern)
        except re.error as error:
            raise UserError(f"{option}: not a regular expression: {pattern!r}: {error}") from None
    return patterns


def names_of(
    what: str, names: Iterable[str], error: type[UserError] = UserError
) -> tuple[str, ...]:
    """The names that a caller gives, which may come from an iterator.

    Args:
        error: what is raised where they are one string, or nothing that holds several.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        example = names if isinstance(names, str) else "name"
        raise error(f"{what} must be a list of names, such as [{example!r}], not {names!r}")
    return tuple(names)


def is_named(pattern: str, node: str, prefix: str = "") -> bool:
    """Whether the pattern is, or matches, the node's name or a beginning of it up to a slash.

    Args:
        prefix: what the name may be without, "a/b/".
    """
    for name in {node, node.removeprefix(prefix)}:
        parts = name.split("/")
        starts = ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
        if any(pattern == start or re.fullmatch(pattern, start) for start in starts):
            return True
    return False
