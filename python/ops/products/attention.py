"""Scaled dot-product attention."""

import tensorflow as tf

from ...layout import NHWC
from ..call import OpCall, function_of
from ..record import Record

LAYOUTS = ("BTNH", "BNTH", "TBNH")
MAX_BIASES = 4  # kMaxAttentionBiases in cc/core/attention
BIAS_ROLES = tuple(f"bias{i}" for i in range(MAX_BIASES))


class Attention(Record, title="attention"):
    """Reads q, k and v, then "bias0", "bias1", .. and "mask", where the node has them.

    Attributes:
        channels: of a row of v.
        head_size: of a row of q and k.
        layouts: "BTNH", "BNTH" or "TBNH" of q, k, v and the result.
        soft_cap: c of c tanh(score / c), which comes before biases; 0: none.
        late_biases: how many of the biases, the last ones, are added after the mask.
        round_rows: whether q, k, v and weights may become bfloat16 before they are multiplied.
        masked_value: the score where the mask is false.
        zero_masked: whether the weight is 0 there whatever the row has.
        q_at, k_at, v_at: of a larger tensor, the indices of axes at_axis, at_axis + 1, .. at which
            q, k and v are.
    """

    src_layout = dst_layout = NHWC
    other_types = {"mask": tf.bool.as_datatype_enum}
    head_size: int
    layouts: tuple[str, str, str, str]
    scale: float
    causal: bool
    masked_value: float
    zero_masked: bool
    soft_cap: float = 0.0
    late_biases: int = 0
    round_rows: bool = False
    q_at: tuple[int, ...] = ()
    k_at: tuple[int, ...] = ()
    v_at: tuple[int, ...] = ()
    at_axis: int = 1

    def channels_of(self, role: str) -> int | None:
        return {"q": self.head_size, "k": self.head_size, "v": self.channels}.get(role)

    def keys_axis(self, rank: int) -> int:
        """Of k, or the tensor in which it is, which has this rank."""
        more = len(self.k_at)
        layout = self.layouts[1] if rank - more == 4 else self.layouts[1].replace("N", "")
        axis = layout.index("T")
        return axis + more if axis >= self.at_axis else axis

    def _kind(self) -> str:
        causal = ", causal" if self.causal else ""
        rows = ", rows rounded" if self.round_rows else ""
        heads = f"heads of {self.head_size} and {self.channels}"
        return f"{heads}{causal}{rows}, {' '.join(self.layouts)}"

    def write(self, inputs, bundle) -> tuple[dict, list]:
        names = ("q_layout", "k_layout", "v_layout", "dst_layout")
        attributes = self.attributes() | dict(zip(names, self.layouts, strict=True))
        for name in ("q_at", "k_at", "v_at"):
            attributes[name] = list(getattr(self, name))
        biases = [inputs[role] for role in BIAS_ROLES if role in inputs]
        masks = [inputs["mask"]] if "mask" in inputs else []
        return attributes, [inputs["q"], inputs["k"], inputs["v"], biases, masks]


@function_of(Attention, "causal masked_value zero_masked soft_cap late_biases at_axis")
def attention(
    q,
    k,
    v,
    *,
    biases=(),
    mask=None,
    scale: float | None = None,
    layout="BTNH",
    q_at=(),
    k_at=(),
    v_at=(),
):
    """Computes softmax(scale q k^T + biases) v for each head, in one op.

    Args:
      q: float32, [B, T, N, H]: the queries of N heads. Of rank 3, [B, T, H], as k and v then
        are, it is one head.
      k: float32, [B, S, Nkv, H]: the keys. N is a multiple of Nkv: heads n * N / Nkv to
        (n + 1) * N / Nkv - 1 share those of head n.
      v: float32, [B, S, Nkv, Hv]: the values.
      biases: at most four float32 tensors, or one, that are added to the scores in their order:
        relative positions, or a mask of zeros and large negative numbers. Each is broadcastable
        to [B, N, T, S]. Its first dimension may also divide B: then sequence b reads entry b
        modulo that (the windows of a picture).
      mask: bool, of a shape as a bias has, or None. Where it is False a score is masked_value. What
        is of another type is cast as tf.cast does it: what is not 0 is True.
      scale: of the products; default: 1 / sqrt(H).
      causal: whether query t reads keys 0 to t only; the others are not looked at.
      masked_value: -inf gives masked keys the weight 0, and rows without any key NaN. A finite
        one, such as -1e9, makes such a row the mean of all values.
      zero_masked: whether masked keys have the weight 0 even where a row has no others; the
        result of such a row is 0.
      soft_cap: c > 0 makes scores c tanh(score / c) before biases are added; 0 leaves them.
      late_biases: how many of the biases, the last ones, are added after the mask, to masked
        scores, too.
      layout: "BTNH" as above, "BNTH" for [B, N, T, H], where heads come before rows, or "TBNH" for
        [T, B, N, H], where rows come first; or one each for q, k, v and the result. Of rank 3 they
        are without N.
      q_at, k_at, v_at: k may be k[:, i, j] of a larger tensor, with k_at = (i, j); q and v
        likewise. So a cache of all layers is read in its place.
      how: words in any order. "rounded": scaled q, k, v and the weights may become bfloat16 before
        they are multiplied; scores and sums are float32. They do where at least four queries share
        keys and the CPU has AVX512-BF16; others gain nothing by it.
      at_axis: the first of the axes that these are indices of. With 2, k_at = (i,) is k[:, :, i]:
        so the product [B, T, 3, N, H] that makes all three is read in its place.

    Returns:
      float32, [B, T, N, Hv] in the order of its layout, or, of rank 3, [B, T, Hv]. Zero where S is
      0. It is as exact as TensorFlow's ops one by one: sums differ in their order only. Gradients
      are computed by TensorFlow's ops.

    Source: A. Vaswani et al., "Attention Is All You Need", 2017; J. Ainslie et al., "GQA", 2023;
      the soft cap: Gemma Team, "Gemma 2", 2024.

    Example:
      >>> q, k = np.zeros((1, 3, 2, 8), np.float32), np.zeros((1, 5, 2, 8), np.float32)
      >>> v = np.arange(5, dtype=np.float32).reshape(1, 5, 1, 1) * np.ones((1, 5, 2, 8), np.float32)
      >>> bd.ops.attention(q, k, v).shape, float(bd.ops.attention(q, k, v)[0, 0, 0, 0])
      (TensorShape([1, 3, 2, 8]), 2.0)
      >>> bd.ops.attention(q, k, v, causal=True)[0, :, 0, 0].numpy()
      array([0. , 0.5, 1. ], dtype=float32)
    """
    q, k, v = tf.convert_to_tensor(q), tf.convert_to_tensor(k), tf.convert_to_tensor(v)
    layouts = [layout] * 4 if isinstance(layout, str) else list(layout)
    if len(layouts) != 4 or not set(layouts) <= set(LAYOUTS):
        raise ValueError(f"layout must be one of {LAYOUTS}, or four of them, got {layout!r}")
    if scale is None:
        if q.shape.rank is None or q.shape[-1] is None:
            raise ValueError(f"scale must be given for a q of unknown size; its shape is {q.shape}")
        scale = max(1, q.shape[-1]) ** -0.5
    biases = list(biases) if isinstance(biases, list | tuple) else [biases]
    masks = [] if mask is None else [tf.cast(mask, tf.bool)]
    attributes = dict(zip(("q_layout", "k_layout", "v_layout", "dst_layout"), layouts, strict=True))
    attributes |= {"scale": scale, "q_at": list(q_at), "k_at": list(k_at), "v_at": list(v_at)}
    return OpCall((q, k, v, biases, masks), attributes)
