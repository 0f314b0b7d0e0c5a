"""What follows a primitive, fused into it: the entries of a post-op chain."""

from dataclasses import dataclass

import numpy as np

from ..graph import Ref
from .bundle import Bundle

MAX_STEPS = 32  # entries that a post-op chain may have


@dataclass(frozen=True)
class Step:
    """One entry of a post-op chain.

    Attributes:
        kind: "eltwise", "sum" or "binary".
        name: the algorithm; empty for "sum".
        shape: a binary operand's shape: "scalar", "channel", "sample_channel" or "tensor".
        operand: the role of the tensor among the inputs of a planned node ("#0@128" among args of
            an op that is there), or constant values (any shape of one element, or one element a
            channel).
        params: alpha, beta, scale, as far as they are stated.
    """

    kind: str
    name: str = ""
    shape: str = ""
    operand: str | np.ndarray | None = None
    params: tuple[tuple[str, float], ...] = ()

    def text(self, operand: str = "") -> str:
        """The entry as the op attribute spells it, with `operand` ("#0@128") as the operand."""
        words = [word for word in (self.name, self.shape, operand) if word]
        words += [f"{key}={value:.9g}" for key, value in self.params]
        return f"{self.kind}({','.join(words)})"

    def __str__(self) -> str:
        return self.text("" if self.operand is None else str(self.operand))


def eltwise(name: str, **params: float) -> Step:
    return Step("eltwise", name, params=tuple(params.items()))


def binary(name: str, shape: str, operand: str | np.ndarray) -> Step:
    return Step("binary", name, shape, operand)


def sum_of(operand: str) -> Step:
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


def write_chain(
    steps, inputs: dict[str, Ref], bundle: Bundle, last: str | None = None
) -> tuple[str, list[Ref]]:
    """The post_ops text and its args: the bundle first, where a step reads it.

    Args:
        last: the role of an operand that comes after the others, and is none of the args.
    """
    constant = any(isinstance(step.operand, np.ndarray) for step in steps)
    roles = dict.fromkeys(step.operand for step in steps if isinstance(step.operand, str))
    roles.pop(last, None)
    args = [bundle.tensor] * constant + [inputs[role] for role in roles]
    place = {role: i + constant for i, role in enumerate([*roles, last])}
    entries = []
    for step in steps:
        operand = ""
        if isinstance(step.operand, np.ndarray):
            operand = f"#0@{bundle.add_array(step.operand)}"
        elif step.operand is not None:
            operand = f"#{place[step.operand]}"
        entries.append(step.text(operand))
    return ";".join(entries), args
