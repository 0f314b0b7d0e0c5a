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


def lstms():
    products = ("sum", ("MatMul", "?x", "?W"), ("MatMul", "?h", "?U"))
    for sums, bias in [(("sum", products, "?b"), ("?b",)), (products, ())]:
        i, f, g, o = (("split", k, 4, sums) for k in range(4))
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
    for by_input, by_state, bias in [
        (("sum", x_w, rows[0]), ("sum", h_u, rows[1]), ("?b",)),
        (("sum", x_w, "?b0"), ("sum", h_u, "?b1"), ("?b0", "?b1")),
        (x_w, h_u, ()),
    ]:
        z, r = (
            ("act", "g", ("sum", ("split", k, 3, by_input), ("split", k, 3, by_state)))
            for k in range(2)
        )
        inner = ("sum", ("split", 2, 3, by_input), ("Mul", r, ("split", 2, 3, by_state)))
        yield "gru", True, (state(z, ("act", "f", inner)),), bias
    for by_input, bias in [(("sum", x_w, "?b"), ("?b",)), (x_w, ())]:
        by_state = ("MatMul", "?h", ("gates", 0, 2, "?U"))
        z, r = (
            ("act", "g", ("sum", ("split", k, 3, by_input), ("split", k, 2, by_state)))
            for k in range(2)
        )
        share = ("MatMul", ("Mul", r, "?h"), ("gates", 2, 3, "?U"))
        inner = ("sum", ("split", 2, 3, by_input), share)
        yield "gru", False, (state(z, ("act", "f", inner)),), bias
