"""Matrix products with a matrix that is packed once."""

import tensorflow as tf

from ..arguments import refuse_references
from ..bind_post_ops import Destination, bind_post_ops
from ..call import OpCall, function_of
from ..post_ops import PostOps
from ..record import Record


class PackedMatmul(Record, title="product of matrices", titles="products of matrices"):
    """Called by users alone."""


@function_of(PackedMatmul, "src_quantization quantize_rows")
def packed_matmul(
    a,
    b,
    c=None,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
    post_ops="",
    args=(),
    weight_scales=None,
):
    """alpha a b + beta c, then a chain of post-ops, with b packed once for many products.

    Args:
      a: float32, [.., k] of any rank, or [k, m] with transpose_a. Or bfloat16 or uint8, [.., k].
      b: float32, [k, n], or [n, k] with transpose_b: packed into the order in which the kernel
        reads it, and kept in that form while it is the same tensor or value of a variable. Or
        bfloat16 or int8: with a of float32 it stays so in memory, while arithmetic is that of
        float32; bfloat16 is multiplied by bfloat16, and uint8 by int8, with exact sums.
      c: float32, of a shape that broadcasts to dst's, such as [.., n], [n], [m, 1] or a scalar;
        None: zero.
      transpose_a, transpose_b: whether the product is with the transpose.
      alpha: the factor of a b; not 0.
      beta: the factor of c.
      post_ops: `PostOps`, or its text; applied to the sum.
      args: float32 operands that the chain calls #0, #1, ...: scalars, [n], or of dst's shape.
      how: words in any order. "constant": b never changes. Its packed form is then kept from the
        first call on, and serves FIP (docs/algorithms.md, "FIP") on a CPU that gains from it.
        Otherwise it is kept once the same b has come twice in a row. "direct" never uses FIP,
        nor do its gradients.
      weight_scales: with b of int8: float32, [n]; column j of b stands for weight_scales[j] times
        its integers, which lie in [-127, 127].
      src_quantization: with a of uint8: (scale, zero_point); q stands for scale (q - zero_point).
      quantize_rows: whether rows of a of float32 become integers, too, before they meet b of int8:
        x becomes round(127 x / (max |x| + 1e-7)) of its row, and sums are exact. This is what
        Keras's `quantize("int8")` computes.

    Returns:
      float32, [.., n].

    Gradients: where a and b are float32.

    Source: cblas_sgemm_pack and cblas_sgemm_compute of MKL; Winograd, "A New Algorithm for Inner
    Product", IEEE Transactions on Computers C-17, 1968.

    Example:
      >>> a, b = np.ones((2, 3), np.float32), np.full((4, 3), 2.0, np.float32)
      >>> bd.ops.packed_matmul(a, b, transpose_b=True, alpha=0.5).numpy()
      array([[3., 3., 3., 3.],
             [3., 3., 3., 3.]], dtype=float32)
    """
    a, b = tf.convert_to_tensor(a), tf.convert_to_tensor(b)
    refuse_references("b", b)
    if alpha == 0:
        raise ValueError("alpha must not be 0: the result would not depend on the matrices")
    n = b.shape[0 if transpose_b else 1] if b.shape.rank == 2 else None
    if isinstance(post_ops, PostOps) or args:
        if n is None:
            raise ValueError(f"post_ops need a b of known size; its shape is {b.shape}")
        post_ops, args = bind_post_ops(post_ops, args, None, Destination(n, rank=a.shape.rank))
    entries, args, c = [post_ops], list(args), None if c is None else tf.convert_to_tensor(c)
    row = None if c is None else _row(c, n)
    if row is not None:
        entries.insert(0, f"binary(add,{row},#{len(args)})")
        args.append(c if beta == 1 else beta * c)
        c = None
    if c is not None:
        c = _whole(c, a, b, transpose_a, transpose_b)
    if alpha != 1:  # alpha (a b + beta / alpha c)
        beta /= alpha
        entries.insert(0, f"eltwise(linear,alpha={alpha})")
    scales = [] if weight_scales is None else [weight_scales]
    attributes = {"add_scale": beta, "post_ops": ";".join(filter(None, entries))}
    return OpCall((a, b, args, [] if c is None else [c], scales), attributes)


def _row(c, n: "int | None") -> "str | None":
    """How a c that is the same for all rows lies against dst; None for any other."""
    dims = c.shape.as_list() if c.shape.rank is not None else [None]
    if all(size == 1 for size in dims):
        return "scalar"
    same = n is not None and dims[-1] == n and all(size == 1 for size in dims[:-1])
    return "channel" if same else None


def _whole(c, a, b, transpose_a: bool, transpose_b: bool):
    """c as large as dst."""
    if None in (a.shape.rank, b.shape.rank, c.shape.rank):
        return c
    dst = [*(a.shape[1:] if transpose_a else a.shape[:-1]), b.shape[0 if transpose_b else 1]]
    pairs = zip(c.shape, dst, strict=False)
    if c.shape.rank == len(dst) and all(size != 1 or whole == 1 for size, whole in pairs):
        return c
    rows = tf.shape(a)[1:] if transpose_a else tf.shape(a)[:-1]
    return tf.broadcast_to(c, tf.concat([rows, [tf.shape(b)[0 if transpose_b else 1]]], 0))
