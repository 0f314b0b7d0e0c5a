"""The cells of recurrent layers as patterns, in all their spellings.

Each is (cell, reset_after, the next states as patterns: h, or h and c; the names of what the
bias is made of). X and H are the input and the state before, C that of an LSTM's cell; W and U are
the matrices, "f" and "g" the activation and that of the gates.
"""

from ....graph import Any, Op, Pattern
from .recurrent_step import Gates, activation, row, total

STEP = Any("step")
X = Op("TensorListGetItem", Any("source"), STEP, Any())
H, C = Any("h"), Any("c")
_W, _U, _B, _B0, _B1 = map(Any, ("W", "U", "b", "b0", "b1"))
_X_W, _H_U = Op("MatMul", X, _W), Op("MatMul", H, _U)


def _vanillas():
    for sums in (total(total(_X_W, _B), _H_U), total(total(_X_W, _H_U), _B)):
        yield "vanilla", True, (activation("f", sums),), ("b",)
    yield "vanilla", True, (activation("f", total(_X_W, _H_U)),), ()


def _part(k: int, n: int, sums: Pattern, rank: int = 2) -> Gates:
    return Gates(k, k + 1, n, sums, rank)


def _split(n: int, sums: Pattern) -> list[Gates]:
    return [_part(k, n, sums) for k in range(n)]


def _products(n: int, source: Pattern, weights: Pattern, bias: Pattern | None = None) -> list:
    """Each of n gates as a product of its own with its columns of a matrix: implementation=1."""
    products = [Op("MatMul", source, _part(k, n, weights)) for k in range(n)]
    if bias is None:
        return products
    return [total(product, _part(k, n, bias, rank=1)) for k, product in enumerate(products)]


def _lstms():
    products = total(_X_W, _H_U)
    spellings = [(_split(4, total(products, _B)), ("b",)), (_split(4, products), ())]
    for bias, names in ((_B, ("b",)), (None, ())):
        pairs = zip(_products(4, X, _W, bias), _products(4, H, _U), strict=True)
        spellings.append(([total(x, h) for x, h in pairs], names))
    for (i, f, g, o), bias in spellings:
        c = total(activation("g", f) * C, activation("g", i) * activation("f", g))
        yield "lstm", True, (activation("g", o) * activation("f", c), c), bias


def _gru(reset_after, by_input, by_state, candidate, bias):
    """candidate: what the reset gate makes of the third part of each."""
    z, r = (activation("g", total(by_input[k], by_state[k])) for k in range(2))
    new = activation("f", total(by_input[2], candidate(r)))
    return "gru", reset_after, (total(z * H, (1.0 - z) * new),), bias


def _grus():
    # Reset after: a row of the bias each, or a tensor.
    rows = [row(k, _B) for k in range(2)]
    spellings = [
        (_split(3, total(_X_W, rows[0])), _split(3, total(_H_U, rows[1])), ("b",)),
        (_split(3, total(_X_W, _B0)), _split(3, total(_H_U, _B1)), ("b0", "b1")),
        (_split(3, _X_W), _split(3, _H_U), ()),
        (_products(3, X, _W, rows[0]), _products(3, H, _U, rows[1]), ("b",)),
        (_products(3, X, _W), _products(3, H, _U), ()),
    ]
    for by_input, by_state, bias in spellings:
        yield _gru(True, by_input, by_state, lambda r, last=by_state[2]: r * last, bias)
    both, rest, part = Op("MatMul", H, Gates(0, 2, 3, _U)), Gates(2, 3, 3, _U), _part(2, 3, _U)
    spellings = [
        (_split(3, total(_X_W, _B)), _split(2, both), rest, ("b",)),
        (_split(3, _X_W), _split(2, both), rest, ()),
        (_products(3, X, _W, _B), _products(3, H, _U), part, ("b",)),
        (_products(3, X, _W), _products(3, H, _U), part, ()),
    ]
    for by_input, by_state, last, bias in spellings:
        candidate = lambda r, last=last: Op("MatMul", r * H, last)  # noqa: E731
        yield _gru(False, by_input, by_state, candidate, bias)


CELLS = (*_lstms(), *_vanillas(), *_grus())
