"""The cells of recurrent layers as patterns of loop_function.py, in all their spellings.

Each yields (cell, reset_after, the next states as patterns: h, or h and c; the names of what the
bias is made of). "?x" and "?h" are the input and the state before, "?c" that of an LSTM's cell;
"?W" and "?U" are the matrices, "f" and "g" the activation and that of the gates.
"""


def vanillas():
    x_w, h_u = ("MatMul", "?x", "?W"), ("MatMul", "?h", "?U")
    yield "vanilla", True, (("act", "f", ("sum", ("sum", x_w, "?b"), h_u)),), ("?b",)
    yield "vanilla", True, (("act", "f", ("sum", ("sum", x_w, h_u), "?b")),), ("?b",)
    yield "vanilla", True, (("act", "f", ("sum", x_w, h_u)),), ()


def _cut(n, sums):
    return [("split", k, n, sums) for k in range(n)]


def _gates(n, source, weights, bias=None):
    """Each of n gates as a product of its own with its columns of a matrix: implementation=1."""
    for k in range(n):
        product = ("MatMul", source, ("split", k, n, weights))
        yield product if bias is None else ("sum", product, ("part", k, n, bias))


def lstms():
    products = ("sum", ("MatMul", "?x", "?W"), ("MatMul", "?h", "?U"))
    spellings = [
        (_cut(4, sums), bias) for sums, bias in [(("sum", products, "?b"), ("?b",)), (products, ())]
    ]
    for bias in ("?b", None):
        pairs = zip(_gates(4, "?x", "?W", bias), _gates(4, "?h", "?U"), strict=True)
        spellings.append(([("sum", x, h) for x, h in pairs], ("?b",) if bias else ()))
    for (i, f, g, o), bias in spellings:
        c = (
            "sum",
            ("Mul", ("act", "g", f), "?c"),
            ("Mul", ("act", "g", i), ("act", "f", g)),
        )
        yield "lstm", True, (("Mul", ("act", "g", o), ("act", "f", c)), c), bias


def grus():
    x_w = ("MatMul", "?x", "?W")

    def state(z, candidate):
        return ("sum", ("Mul", z, "?h"), ("Mul", ("Sub", 1.0, z), candidate))

    # Reset after: a row of the bias each, or a tensor.
    h_u = ("MatMul", "?h", "?U")
    rows = [("row", k, "?b") for k in range(2)]
    spellings = [
        (_cut(3, by_input), _cut(3, by_state), bias)
        for by_input, by_state, bias in [
            (("sum", x_w, rows[0]), ("sum", h_u, rows[1]), ("?b",)),
            (("sum", x_w, "?b0"), ("sum", h_u, "?b1"), ("?b0", "?b1")),
            (x_w, h_u, ()),
        ]
    ]
    for of_x, of_h, bias in [(*rows, ("?b",)), (None, None, ())]:
        by_input, by_state = _gates(3, "?x", "?W", of_x), _gates(3, "?h", "?U", of_h)
        spellings.append(([*by_input], [*by_state], bias))
    for by_input, by_state, bias in spellings:
        z, r = (("act", "g", ("sum", by_input[k], by_state[k])) for k in range(2))
        inner = ("sum", by_input[2], ("Mul", r, by_state[2]))
        yield "gru", True, (state(z, ("act", "f", inner)),), bias
    both, last = ("MatMul", "?h", ("gates", 0, 2, "?U")), ("gates", 2, 3, "?U")
    spellings = [
        (_cut(3, ("sum", x_w, "?b")), _cut(2, both), last, ("?b",)),
        (_cut(3, x_w), _cut(2, both), last, ()),
    ]
    for bias in ("?b", None):
        *by_state, _ = _gates(3, "?h", "?U")
        by_input = [*_gates(3, "?x", "?W", bias)]
        spellings.append((by_input, by_state, ("split", 2, 3, "?U"), ("?b",) if bias else ()))
    for by_input, by_state, last, bias in spellings:
        z, r = (("act", "g", ("sum", by_input[k], by_state[k])) for k in range(2))
        inner = ("sum", by_input[2], ("MatMul", ("Mul", r, "?h"), last))
        yield "gru", False, (state(z, ("act", "f", inner)),), bias
