"""Grouped-query attention: repeated heads, or groups that are rows of one product.

KerasHub's Gemma has the latter:

    q [B, T, N, H] as [B, T, K, G, H], turned to [B, K, G, T, H], as [B, K, G T, H]
    q k^T [B, K, G T, S] as scores [B, K, G, T, S]; softmax of them as [B, K, G T, S], times v
    [B, K, G T, H] as [B, K, G, T, H], turned to [B, T, K, G, H], as [B, T, N, H]

K heads of keys and values serve G of the N = K G queries each, which the op reads where they lie.
"""

from ....graph import Any, Body, Node, OneOf, Op, Ref, Reshaped, Scope, match, sizes_of

_SAME = frozenset({"Identity", "StopGradient"})
_X, _SIZE, _TIMES = Any("x"), Any("size"), Any("times")


class _Graph(Scope):
    """Patterns see what identities hand on."""

    def seen(self, ref: Ref) -> Ref:
        return self.view.origin(ref, _SAME)


def split_scores(node: Node, body: Body) -> tuple | None:
    """The shape (B, K, G, T, S) as which `node`, a Reshape, sees the product [B, K, G T, S]."""
    full, wide = body.shapes.shape(node.inputs[0]), body.shapes.shape(node.ref)
    if not full or not wide or len(full) != 4 or len(wide) != 5:
        return None
    same = wide[:2] == full[:2] and wide[4] == full[3]
    return wide if same and isinstance(wide[1], int) and isinstance(wide[2], int) else None


def queries(ref: Ref, groups: tuple, body: Body) -> Ref | None:
    """The [B, T, N, H] of which `ref` is the [B, K, G T, H]."""
    batch, shared, each, length, _ = groups
    split = Reshaped(_X, [batch, length, shared, each, _SIZE])
    rows = Reshaped(Op("Transpose", split, [0, 2, 3, 1, 4]), [batch, shared, -1, _SIZE])
    for found in _Graph(body).proven(rows, _Graph(body).seen(ref)):
        whole = (batch, length, shared * each, found.values["size"])
        return found.refs["x"] if body.shapes.shape(found.refs["x"]) == whole else None
    return None


def result(node: Node, groups: tuple, body: Body) -> tuple[Node, frozenset[str]] | None:
    """The node that makes [B, T, N, H] of the product `node`, and those before it."""
    batch, shared, each, length, _ = groups
    root: Node | None = node
    for _ in range(3):
        root = root and body.view.only_reader(root.ref)[0]
    split = Reshaped(_X, [batch, shared, each, length, _SIZE])
    turned = Op("Transpose", split, [0, 3, 1, 2, 4])
    found = root and match(Reshaped(turned, [batch, length, shared * each, _SIZE]), root, body)
    if not found or found.refs["x"] != node.ref:
        return None
    return root, frozenset({node.name, *found.nodes})


def repeated(node: Node, axes: str, body: Body) -> tuple[Ref, int] | None:
    """The tensor whose heads the node repeats, each so many times."""
    if node.op != "Reshape" or "n" not in axes:
        return None
    at, sizes = axes.index("n"), sizes_of(_X, len(axes))
    before, heads, after = sizes[:at], sizes[at], sizes[at + 1 :]
    one = Reshaped(_X, [*before, heads, 1, *after])
    ones = [1] * (at + 1), [1] * len(after)
    tiled = Op("Tile", one, [*ones[0], _TIMES, *ones[1]])
    spread = Op("BroadcastTo", one, [*before, heads, _TIMES, *after])
    found = match(Reshaped(OneOf(tiled, spread), [*before, heads * _TIMES, *after]), node, body)
    if found is None or not isinstance(found.values["times"], int):
        return None
    src = found.refs["x"]
    return (src, found.values["times"]) if isinstance(body.shapes.shape(src)[at], int) else None
