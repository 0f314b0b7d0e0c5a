"""The cells of recurrent layers as patterns, in all their spellings.

Each is (cell, reset_after, the next states as patterns: h, or h and c; the names of what the
bias is made of). X and H are the input and the state before, C that of an LSTM's cell; W and U are
the matrices, "f" and "g" the activation and that of the gates.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....graph import Any, Binding, Body, Match, Node, OneOf, Op, Pattern, Ref, Scope, slices


class Step(Scope):
    """Patterns see what identities hand on, and each read of a variable as its handle.

    Args:
        body: the function.
        units: of the cell, where they are known.
    """

    def __init__(self, body: Body, units: int | None = None):
        super().__init__(body)
        self.arguments, self.results, self.units = body.inputs, body.view.fetches, units

    def seen(self, ref: Ref) -> Ref:
        """What an Identity hands on, or a variable holds."""
        ref = self.view.origin(ref, ("Identity", "StopGradient"))
        node = self.view.producer(ref)
        if node.op == "ReadVariableOp" and self.argument(node.inputs[0]) is not None:
            return self.seen(node.inputs[0])
        return ref

    def producer(self, ref: Ref) -> Node:
        return self.view.producer(self.seen(ref))

    def argument(self, ref: Ref) -> int | None:
        """The position of the argument whose value `ref` is: a tensor, or what a variable holds."""
        ref = self.seen(ref)
        return self.arguments.index(ref.node) if ref.node in self.arguments else None

    def constant(self, ref: Ref):
        """The value of a constant that stands in the function itself."""
        node = self.producer(ref)
        return self.constants.value(node.ref) if node.op == "Const" else None


class Gates(Pattern):
    """The gates k to last of the n that lie side by side in a vector or the columns of a matrix."""

    ops = frozenset({"Split", "SplitV", "StridedSlice"})

    def __init__(self, k: int, last: int, n: int, source: Pattern, rank: int = 2):
        self.k, self.last, self.n, self.source, self.rank = k, last, n, source, rank

    def ways(self, ref: Ref, step: Step, match: Match) -> Iterator[Match]:
        node = step.view.producer(ref)
        if node.op == "Split":
            source, cut = node.inputs[1], (ref.port, ref.port + 1)
            taken = node.attr["num_split"].i == self.n and self._splits(step, node.inputs[0])
            wanted = [(self.k, self.last)]
        else:
            source, begin = node.inputs[0], self.k * (step.units or 0)
            cut, taken = self._columns(node, ref.port, step), step.units
            wanted = [(begin, self.last * (step.units or 0))]
            wanted += [(begin, None)] if self.last == self.n else []
        if taken and cut in wanted:
            yield from step.ways(self.source, source, match)

    def _splits(self, step: Step, axis: Ref) -> bool:
        """Whether the axis is that of the gates."""
        return step.constant(axis).item() in (self.rank - 1, -1)

    def _columns(self, node: Node, port: int, step: Step) -> tuple[int, int | None] | None:
        """[begin, end) of what a SplitV or StridedSlice takes along the last axis."""
        if node.op == "SplitV":
            sizes = step.constant(node.inputs[1])
            if sizes is None or not self._splits(step, node.inputs[2]) or -1 in sizes[:port]:
                return None
            begin, size = int(sizes[:port].sum()), int(sizes[port])
            # The rest is a separate part, be it empty.
            is_rest = size == -1 and port == self.n - 1 == len(sizes) - 1
            return (begin, None if is_rest else begin + size) if is_rest or size >= 0 else None
        index = slices(node, step.constants.value, self.rank)
        if index is None or any(item != slice(None) for item in index[:-1]):
            return None
        first, last = index[-1].start or 0, index[-1].stop
        ends = first >= 0 and (last is None or last > 0) and index[-1].step in (None, 1)
        return (first, last) if ends else None


def squeezed(x: Pattern) -> OneOf:
    """The only row of a tensor."""
    return OneOf(Op("Squeeze", x), Op("Squeeze", x, squeeze_dims=[0]))


def total(a: Pattern, b) -> OneOf:
    """A sum of two tensors, one of which may be a bias; Keras adds products of one row as such."""
    is_product = isinstance(b, Op) and b.ops == {"MatMul"}
    row = OneOf(b, squeezed(b)) if is_product else b
    return OneOf(Op("Add|AddV2", a, b), Op("BiasAdd", a, row))


def activation(name: str, x: Pattern) -> OneOf:
    """One of the activations that the op knows, of one kind for each name, or x itself.

    Only gates, "g", may be hard sigmoids.
    """
    kinds = {op.lower(): Op(op, x) for op in ("Tanh", "Relu", "Sigmoid")}
    if name == "g":
        kinds["hard_sigmoid"] = Op("Relu6", total(x, 3.0)) / 6.0
    return OneOf(*(Binding(way, **{name: kind}) for kind, way in (kinds | {"linear": x}).items()))


def row(k: int, x: Pattern) -> OneOf:
    """Row k of two."""
    return OneOf(Op("Unpack", x, num=2)[k], squeezed(Op("Split", 0, x, num_split=2)[k]))


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
    """Each of n gates as a separate product with some columns of a matrix: implementation=1."""
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
