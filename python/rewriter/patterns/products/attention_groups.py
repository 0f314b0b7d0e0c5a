"""Grouped-query attention: repeated heads, or groups that are rows of one product.

KerasHub's Gemma has the latter:

    q [B, T, N, H] as [B, T, K, G, H], turned to [B, K, G, T, H], as [B, K, G T, H]
    q k^T [B, K, G T, S] as scores [B, K, G, T, S]; softmax of them as [B, K, G T, S], times v
    [B, K, G T, H] as [B, K, G, T, H], turned to [B, T, K, G, H], as [B, T, N, H]

K heads of keys and values serve G of the N = K G queries each, which the op reads where they lie.
"""

from ....graph import Body, Node, Ref

_SAME = frozenset({"Identity", "StopGradient"})
_SPLIT_HEADS, _SPLIT_ROWS = [0, 2, 3, 1, 4], [0, 3, 1, 2, 4]


def split_scores(node: Node, body: Body) -> tuple | None:
    """The shape (B, K, G, T, S) as which `node`, a Reshape, sees the product [B, K, G T, S]."""
    full, wide = body.shapes.shape(node.inputs[0]), body.shapes.shape(node.ref)
    if not full or not wide or len(full) != 4 or len(wide) != 5:
        return None
    same = wide[:2] == full[:2] and wide[4] == full[3]
    return wide if same and isinstance(wide[1], int) and isinstance(wide[2], int) else None


def queries(ref: Ref, groups: tuple, body: Body) -> Ref | None:
    """The [B, T, N, H] of which `ref` is the [B, K, G T, H]."""
    merged = _reshape(ref, body)
    turned = merged and _producer(merged.inputs[0], body)
    if not turned or turned.op != "Transpose":
        return None
    split = _reshape(turned.inputs[0], body)
    if not split or body.shapes.numbers(turned.inputs[1]) != _SPLIT_HEADS:
        return None
    shape = body.shapes.shape
    src, parts, rows = (shape(r) for r in (split.inputs[0], split.ref, merged.ref))
    batch, shared, each, length, _ = groups
    if not src or not parts or not rows or len(src) != 4 or len(parts) != 5 or len(rows) != 4:
        return None
    size = src[3]
    fits = src == (batch, length, shared * each, size) and rows[:2] == (batch, shared)
    fits = fits and parts == (batch, length, shared, each, size) and rows[3] == size
    return split.inputs[0] if fits else None


def result(node: Node, groups: tuple, body: Body) -> tuple[Node, frozenset[str]] | None:
    """The node that makes [B, T, N, H] of the product `node`, and those before it."""
    split = _reader(node, "Reshape", body)
    turned = split and _reader(split, "Transpose", body)
    root = turned and _reader(turned, "Reshape", body)
    if not root or body.shapes.numbers(turned.inputs[1]) != _SPLIT_ROWS:
        return None
    batch, shared, each, length, _ = groups
    shape = body.shapes.shape
    size = (shape(node.ref) or (None,))[-1]
    fits = shape(split.ref) == (batch, shared, each, length, size)
    fits = fits and shape(root.ref) == (batch, length, shared * each, size)
    return (root, frozenset({node.name, split.name, turned.name})) if fits else None


def repeated(node: Node, axes: str, body: Body) -> tuple[Ref, int] | None:
    """The tensor whose heads the node repeats, each so many times."""
    view, shapes = body.view, body.shapes
    if node.op != "Reshape" or "n" not in axes:
        return None
    tiled = view.producer(node.inputs[0])
    if tiled.op not in ("Tile", "BroadcastTo"):
        return None
    expanded = view.producer(tiled.inputs[0])
    if expanded.op not in ("ExpandDims", "Reshape"):
        return None
    src, at = expanded.inputs[0], axes.index("n")
    before, between, after = map(shapes.shape, (src, tiled.ref, node.ref))
    if None in (before, between, after) or len(before) != len(after) or at >= len(before):
        return None
    if len(between) != len(before) + 1:
        return None
    inserted = (*before[: at + 1], 1, *before[at + 1 :])
    times, heads = between[at + 1], before[at]
    if shapes.shape(expanded.ref) != inserted or not isinstance(times, int):
        return None
    if (*before[: at + 1], times, *before[at + 1 :]) != between or not isinstance(heads, int):
        return None
    merged = (*before[:at], heads * times, *before[at + 1 :])
    return (src, times) if merged == after else None


def _producer(ref: Ref, body: Body) -> Node | None:
    node = body.view.producer(body.view.origin(ref, _SAME))
    return node if node.payload is None else None


def _reshape(ref: Ref, body: Body) -> Node | None:
    node = _producer(ref, body)
    return node if node and node.op == "Reshape" else None


def _reader(node: Node, op: str, body: Body) -> Node | None:
    """The only reader of a node, where it is an `op`."""
    reader, index = body.view.only_reader(node.ref)
    fits = reader is not None and reader.op == op and reader.payload is None and index == 0
    return reader if fits else None
