"""The two products of attention, and which of their axes are which.

b counts sequences, n heads, t queries, s keys, h the elements of a row. Those of k and v are t in
the axes of these: rows, as queries are those of q.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ....graph import Body, Node, Ref

_MATMULS = frozenset({"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})
ROOTS = ("Einsum", *sorted(_MATMULS))
NAMED = ("adj_x", "adj_y", "equation")


@dataclass(frozen=True)
class Product:
    """A product of two tensors, a letter an axis."""

    operands: tuple[Ref, Ref]
    labels: tuple[str, str]
    result: str


@dataclass(frozen=True)
class Axes:
    """The operands of attention, each with its axes, those of its scores and of the result."""

    q: tuple[Ref, str]
    k: tuple[Ref, str]
    v: tuple[Ref, str]
    scores: str
    dst: str

    @property
    def order(self) -> tuple[int, ...] | None:
        """Which axes of the scores are those of [B, N, T, S]; None: they lie so."""
        order = tuple(self.scores.index(axis) for axis in "bnts" if axis in self.scores)
        return None if order == tuple(range(len(order))) else order


def product(node: Node, body: Body) -> Product | None:
    """What a node multiplies, if it is a product of two tensors of rank 3 or 4."""
    if node.payload is not None or len(node.inputs) != 2:
        return None
    if node.op == "Einsum":
        return _einsum(node)
    if node.op not in _MATMULS:
        return None
    ranks = {body.shapes.rank(ref) for ref in node.inputs}
    if ranks not in ({3}, {4}):
        return None
    batch = "bn"[: ranks.pop() - 2]
    a = "dt" if node.attr["adj_x"].b else "td"
    b = "sd" if node.attr["adj_y"].b else "ds"
    return Product(tuple(node.inputs), (batch + a, batch + b), batch + "ts")


def _einsum(node: Node) -> Product | None:
    operands, _, result = node.attr["equation"].s.decode().replace(" ", "").partition("->")
    labels = tuple(operands.split(","))
    every = (*labels, result)
    if any("." in text or len({*text}) != len(text) or len(text) not in (3, 4) for text in every):
        return None
    return Product(tuple(node.inputs), labels, result)


def is_of_tensors(ref: Ref, body: Body) -> bool:
    """Whether `ref` is a product of two computed tensors."""
    node = body.view.producer(ref)
    found = product(node, body) if node.op in ROOTS else None
    return found is not None and not any(map(body.constants.is_constant, found.operands))


def axes_of(by_keys: Product, by_values: Product, i: int) -> Iterator[Axes]:
    """All ways to read two products as attention; operand i of the second is the weights.

    Axes of the weights stand for those of the scores in their order. There are several ways where
    sequences may be taken for heads.
    """
    scores, weights = by_keys.result, by_values.labels[i]
    if len(scores) != len(weights):
        return
    for side in (0, 1):
        q, k = by_keys.labels[side], by_keys.labels[1 - side]
        shared = [label for label in scores if label in q and label in k]
        own = [label for label in scores if label not in shared]
        h = "".join({*q} & {*k} - {*shared})
        if len(own) != 2 or own[1] != scores[-1] or len(h) != 1:
            continue
        t, s = own
        if {*q} != {*shared, t, h} or {*k} != {*shared, s, h}:
            continue
        for names in ("bn", "nb") if len(shared) == 2 else ("b",):
            ours = dict(zip(shared, names, strict=True)) | {t: "t", s: "s"}
            letters = "".join(ours[label] for label in scores)
            by = _values_axes(letters, by_values, i)
            if by is not None:
                q_axes, k_axes = (_rename(x, ours | {s: "t", h: "h"}) for x in (q, k))
                yield Axes(
                    (by_keys.operands[side], q_axes),
                    (by_keys.operands[1 - side], k_axes),
                    (by_values.operands[1 - i], by[0]),
                    letters,
                    by[1],
                )


def _values_axes(letters: str, by_values: Product, i: int) -> tuple[str, str] | None:
    """The axes of the values and of the result, where the weights have these."""
    weights, values, result = by_values.labels[i], by_values.labels[1 - i], by_values.result
    ours = dict(zip(weights, letters, strict=True))
    t, s = weights[letters.index("t")], weights[letters.index("s")]
    h = "".join({*values} - {*weights})
    fits = len(h) == 1 and {*values} == {*weights, h} - {t} and {*result} == {*weights, h} - {s}
    names = ours | {s: "t", h: "h"}
    return (_rename(values, names), _rename(result, names)) if fits else None


def _rename(labels: str, names: dict[str, str]) -> str:
    return "".join(names[label] for label in labels)
