"""Attention: valid calls of random shapes, and what they must give, in NumPy."""

import numpy as np
from call import Call

_MASKED = (-np.inf, -1e9, -1.0)


def _broadcast(d, b, n, t, s, rank, dtype):
    """A bias or a mask: of any axis one, or a whole; of batch sometimes a divisor."""
    first = d.of(1, b, *(size for size in (2, 3) if b and b % size == 0))
    axes = [first, *([d.of(1, n)] if rank == 4 else []), d.of(1, t), d.of(s, s, 1)]
    return d.array(*axes, dtype=dtype)


def attention(d):
    b, t, s = d.of(0, 1, 2, 4, 6), d.of(0, 1, 2, 7, 33), d.of(0, 1, 5, 16, 40)
    h, hv, kv = d.of(1, 5, 16, 40), d.of(1, 3, 16, 40), d.of(1, 1, 2, 3)
    rank = d.of(3, 4, 4)
    n = kv * d.of(1, 2) if rank == 4 else 1

    at_axis = d.to(1, rank - 1)

    def tensor(layout, heads, rows, size, more=()):
        sizes = {"B": b, "T": rows, "N": heads, "H": size}
        shape = [sizes[axis] for axis in layout if rank == 4 or axis != "N"]
        return d.array(*shape[:at_axis], *more, *shape[at_axis:])

    layouts = [d.of("BTNH", "BNTH", "TBNH") for _ in range(4)]
    larger = [[d.to(1, 3) for _ in range(d.of(0, 0, 0, 1, 2))] for _ in "qkv"]
    places = [[d.to(0, size - 1) for size in sizes] for sizes in larger]
    q = tensor(layouts[0], n, t, h, larger[0])
    k = tensor(layouts[1], kv, s, h, larger[1])
    v = tensor(layouts[2], kv, s, hv, larger[2])
    biases = [_broadcast(d, b, n, t, s, rank, "float32") for _ in range(d.of(0, 0, 1, 2))]
    masks = [_broadcast(d, b, n, t, s, rank, "bool") for _ in range(d.of(0, 1))]
    return Call(
        "BlockdnnAttention",
        [[q], [k], [v], biases, masks],
        {
            "num_biases": len(biases),
            "num_masks": len(masks),
            **dict(zip(("q_layout", "k_layout", "v_layout", "dst_layout"), layouts, strict=True)),
            "scale": d.of(1.0, 0.25, -0.5),
            "causal": d.chance(0.3),
            "masked_value": d.of(*_MASKED),
            "zero_masked": d.chance(0.3),
            "soft_cap": d.of(0.0, 0.0, 2.0),
            "late_biases": d.to(0, len(biases)),
            **dict(zip(("q_at", "k_at", "v_at"), places, strict=True)),
            "at_axis": at_axis,
            "scratchpad_mode": d.of("user", "library"),
        },
    )


def attended(a, q, k, v, *rest):
    """softmax(scale q k^T + biases) v of each head, or None where rounding decides."""

    def heads(x, layout):
        axes = layout.replace("N", "") if flat else layout
        x = x.transpose([axes.index(axis) for axis in ("BTH" if flat else "BNTH")])
        return (x[:, None] if flat else x).astype(np.float64)

    if not abs(a["scale"]) < 100:  # whose scores overflow, or round to nothing
        return None
    within = [slice(None)] * a["at_axis"]
    q, k, v = (x[(*within, *a[at])] for x, at in ((q, "q_at"), (k, "k_at"), (v, "v_at")))
    flat = q.ndim == 3
    q, k, v = (heads(x, a[f"{name}_layout"]) for x, name in ((q, "q"), (k, "k"), (v, "v")))
    shape = (*q.shape[:3], k.shape[2])
    rest = [_spread(x, shape, flat) for x in rest]
    shared = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, shared, 1), np.repeat(v, shared, 1)
    scores = a["scale"] * (q @ k.swapaxes(2, 3))
    cap, late = a["soft_cap"], a["num_biases"] - a["late_biases"]
    scores = cap * np.tanh(scores / cap) if cap else scores
    scores = scores + sum(rest[:late])
    mask = rest[-1] if a["num_masks"] else np.ones(shape, bool)
    scores = np.where(mask, scores, a["masked_value"]) + sum(rest[late : a["num_biases"]])
    if a["causal"]:
        seen = np.arange(shape[3]) <= np.arange(shape[2])[:, None]
        scores = np.where(seen, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(3, keepdims=True, initial=-np.inf))
        weights = weights / weights.sum(3, keepdims=True)
    if a["causal"]:
        weights = np.where(seen | np.isnan(weights).all(3, keepdims=True), weights, 0)
    if a["zero_masked"]:
        weights = np.where(mask & seen if a["causal"] else mask, weights, 0)
    dst = weights @ v
    dst, axes = (dst[:, 0], "BTH") if flat else (dst, "BNTH")
    return dst.transpose([axes.index(axis) for axis in a["dst_layout"] if axis in axes])


def _spread(x, shape, flat):
    """A bias or mask over all scores [B, N, T, S]; entry b modulo its own number is b's."""
    rank = 3 if flat else 4
    x = x[0] if x.ndim > rank else x.reshape((1,) * (rank - x.ndim) + x.shape)
    x = x[:, None] if flat else x
    x = x[np.arange(shape[0]) % max(1, x.shape[0])] if x.shape[0] else x
    return np.broadcast_to(x, shape)
