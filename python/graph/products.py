"""What MatMul, BatchMatMul and Einsum multiply, a letter an axis."""

import string
from typing import NamedTuple

from .families import PRODUCTS
from .view import Node, Ref


class Product(NamedTuple):
    """The axes of the operands and of the result; `batch` are those that are broadcast."""

    refs: tuple[Ref, ...]
    labels: tuple[str, ...]
    result: str
    batch: str

    @property
    def is_distinct(self) -> bool:
        """Whether no tensor has a letter twice, which would be a diagonal."""
        return all(len({*text}) == len(text) for text in (*self.labels, self.result))


def product(node: Node, shapes) -> Product | None:
    """What one of TensorFlow's nodes multiplies, if it is a product and all ranks are known."""
    if node.op not in PRODUCTS or node.payload is not None:
        return None
    if node.op == "Einsum":
        equation = node.attr["equation"].s.decode().replace(" ", "")
        *labels, result = equation.replace("->", ",").split(",")
    else:
        flags = ("transpose_a", "transpose_b") if node.op == "MatMul" else ("adj_x", "adj_y")
        turned = [node.attr[flag].b for flag in flags]
        labels, result = ["...dt" if turned[0] else "...td"], "...ts"
        labels.append("...sd" if turned[1] else "...ds")
    ranks = list(map(shapes.rank, node.inputs))
    if None in ranks:
        return None
    free = [letter for letter in string.ascii_letters if letter not in "".join(labels) + result]
    counts = [rank - len(text.replace("...", "")) for rank, text in zip(ranks, labels, strict=True)]
    batch = "".join(free[: max(0, *counts)])
    pairs = zip(labels, counts, strict=True)
    texts = tuple(text.replace("...", batch[len(batch) - count :]) for text, count in pairs)
    fits = list(map(len, texts)) == ranks
    return Product(tuple(node.inputs), texts, result.replace("...", batch), batch) if fits else None
