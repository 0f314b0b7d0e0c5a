"""The cells of recurrent layers as patterns, in all their spellings.

Each yields (cell, reset_after, the next states as patterns: h, or h and c; the names of what the
bias is made of). X and H are the input and the state before, C that of an LSTM's cell; W and U are
the matrices, "f" and "g" the activation and that of the gates.
"""

from ....graph import Any, Op, Scalar
from .recurrent_step import Activation, Gates, Part, Row, Sum

_X, _H, _C, _W, _U, _B, _B0, _B1 = map(Any, ("x", "h", "c", "W", "U", "b", "b0", "b1"))
_X_W, _H_U = Op("MatMul", _X, _W), Op("MatMul", _H, _U)


def vanillas():
    yield "vanilla", True, (Activation("f", Sum(Sum(_X_W, _B), _H_U)),), ("b",)
    yield "vanilla", True, (Activation("f", Sum(Sum(_X_W, _H_U), _B)),), ("b",)
    yield "vanilla", True, (Activation("f", Sum(_X_W, _H_U)),), ()


def _cut(n, sums):
    return [Part(k, n, sums) for k in range(n)]


def _gates(n, source, weights, bias=None):
    """Each of n gates as a product of its own with its columns of a matrix: implementation=1."""
    for k in range(n):
        product = Op("MatMul", source, Part(k, n, weights))
        yield product if bias is None else Sum(product, Part(k, n, bias, rank=1))


def lstms():
    products = Sum(_X_W, _H_U)
    spellings = [(_cut(4, Sum(products, _B)), ("b",)), (_cut(4, products), ())]
    for bias, names in ((_B, ("b",)), (None, ())):
        pairs = zip(_gates(4, _X, _W, bias), _gates(4, _H, _U), strict=True)
        spellings.append(([Sum(x, h) for x, h in pairs], names))
    for (i, f, g, o), bias in spellings:
        kept = Op("Mul", Activation("g", f), _C)
        c = Sum(kept, Op("Mul", Activation("g", i), Activation("f", g)))
        yield "lstm", True, (Op("Mul", Activation("g", o), Activation("f", c)), c), bias


def _gru(reset_after, by_input, by_state, candidate, bias):
    """candidate: what the reset gate makes of the third part of each."""
    z, r = (Activation("g", Sum(by_input[k], by_state[k])) for k in range(2))
    new = Activation("f", Sum(by_input[2], candidate(r)))
    rest = Op("Sub", Scalar(1.0), z)
    return "gru", reset_after, (Sum(Op("Mul", z, _H), Op("Mul", rest, new)),), bias


def grus():
    # Reset after: a row of the bias each, or a tensor.
    rows = [Row(k, _B) for k in range(2)]
    spellings = [
        (_cut(3, Sum(_X_W, rows[0])), _cut(3, Sum(_H_U, rows[1])), ("b",)),
        (_cut(3, Sum(_X_W, _B0)), _cut(3, Sum(_H_U, _B1)), ("b0", "b1")),
        (_cut(3, _X_W), _cut(3, _H_U), ()),
        ([*_gates(3, _X, _W, rows[0])], [*_gates(3, _H, _U, rows[1])], ("b",)),
        ([*_gates(3, _X, _W)], [*_gates(3, _H, _U)], ()),
    ]
    for by_input, by_state, bias in spellings:
        last = by_state[2]
        yield _gru(True, by_input, by_state, lambda r, last=last: Op("Mul", r, last), bias)
    both, rest, part = Op("MatMul", _H, Gates(0, 2, 3, _U)), Gates(2, 3, 3, _U), Part(2, 3, _U)
    by_gate = [*_gates(3, _H, _U)]
    spellings = [
        (_cut(3, Sum(_X_W, _B)), _cut(2, both), rest, ("b",)),
        (_cut(3, _X_W), _cut(2, both), rest, ()),
        ([*_gates(3, _X, _W, _B)], by_gate, part, ("b",)),
        ([*_gates(3, _X, _W)], by_gate, part, ()),
    ]
    for by_input, by_state, last, bias in spellings:
        candidate = lambda r, last=last: Op("MatMul", Op("Mul", r, _H), last)  # noqa: E731
        yield _gru(False, by_input, by_state, candidate, bias)
