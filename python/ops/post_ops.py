"""Post-op chains in Python: a value that ops take and write into their attribute."""

from .arguments import invalid
from .post_op_entry import (
    TensorOperand,
    binary_entry,
    eltwise_entry,
    parse_entry,
    split,
    sum_entry,
)
from .steps import MAX_STEPS, Step


class PostOps:
    """An ordered chain of element-wise work on an op's result before it is stored.

    A chain never changes: each method returns a new one, so what an op was given
    stays what it was. Entries run in order of appearance, in any order and number
    up to 32:

        chain = PostOps().binary("add", bias).sum(0.5).eltwise("relu")
        y = bd.ops.conv(x, weights, padding="SAME", post_ops=chain, dst=previous)

    `len(chain)` counts the entries, `chain.kind(i)` tells their kinds, `str(chain)`
    shows them. Chains are equal, and hash alike, where their canonical texts are and
    their tensors are the same (arrays: have the same values).

    An operand is a tensor: a tf.Tensor, a tf.Variable, or numbers in any form NumPy
    takes, of which the chain keeps a float32 copy. The op that the chain is attached to
    passes it on as one of its `args`. An operand that is in `args` already is written
    "#0" (args[0]) or "#0@128" (args[0] from element 128 on); a chain of such operands
    is all text: `to_text` and `PostOps.parse`.

    Source: post-ops of oneDNN (eltwise, sum), with binary added.

    Raises:
      InvalidArgument: a ValueError, from each method that appends an entry: what the entry cannot
        be, or that a chain is full; from `to_text` that an operand is a tensor.

    Example:
        >>> bias = np.array([1.0, -1.0], np.float32)
        >>> chain = bd.PostOps().binary("add", bias).eltwise("relu")
        >>> len(chain), chain.kind(1)
        (2, 'eltwise')
        >>> rows, weights = np.ones((1, 2), np.float32), np.zeros((2, 2), np.float32)
        >>> bd.ops.inner_product(rows, weights, post_ops=chain).numpy()
        array([[1., 0.]], dtype=float32)
    """

    __slots__ = ("_entries",)

    def __init__(self):
        self._entries = ()

    def eltwise(self, alg: str, alpha=None, beta=None, scale=1.0) -> "PostOps":
        """Appends x = scale * f(x).

        Args:
          alg: the algorithm. With its defaults, if any: relu (x >= 0 ? x : alpha x,
            alpha 0), leaky_relu (alpha), relu6, bounded_relu (min(max(x, 0), alpha)),
            clip (min(max(x, alpha), beta)), elu (x > 0 ? x : alpha (exp(x) - 1),
            alpha 1), tanh, square, abs, sqrt, linear (alpha x + beta, 1 and 0),
            soft_relu or softplus (log(1 + exp(x))), logistic or sigmoid, exp,
            gelu_tanh, gelu_erf, swish or silu (x logistic(alpha x), alpha 1),
            hard_sigmoid (min(max(alpha x + beta, 0), 1), 1/6 and 1/2), hard_swish
            (x hard_sigmoid(x)), mish, pow (alpha x^beta, alpha 1), log, round (halves
            to even), floor, ceil, sign, reciprocal, rsqrt, softsign, expm1, log1p, atan,
            sin, cos.
          alpha, beta: finite numbers, where the algorithm takes them; rounded to
            float32.
          scale: a finite number.

        Raises:
          InvalidArgument: unknown algorithm, a parameter that is missing, not taken or
            not finite in float32, or a full chain.
        """
        spelled = _spell("eltwise", str(alg), alpha=alpha, beta=beta, scale=scale)
        return self._append(spelled, lambda: eltwise_entry(alg, alpha, beta, scale))

    def sum(self, scale=1.0, operand=None) -> "PostOps":
        """Appends x = scale * operand + x; the operand has dst's shape.

        The result is written over the operand where nobody else holds it and it has
        dst's layout.

        Args:
          scale: a finite number.
          operand: a tensor; None: the previous contents of dst, which the op takes as
            its argument `dst`.

        Raises:
          InvalidArgument: a malformed operand or scale, or a full chain.
        """
        spelled = _spell("sum", operand, scale=scale)
        return self._append(spelled, lambda: sum_entry(scale, operand))

    def binary(self, alg: str, operand, shape: str | None = None) -> "PostOps":
        """Appends x = alg(x, operand).

        Args:
          alg: add, sub, mul, div, rdiv (operand / x), max, min, prelu (x where x >= 0,
            else operand * x), div_no_nan (0 where the operand is 0), floor_div,
            floor_mod; 1 or 0 as the comparison is true: greater, greater_equal, less,
            less_equal, equal, not_equal; keep (x where the operand is not 0, else 0) or
            drop (x where it is 0, else -0).
          operand: a tensor. Its shape says how it lies against a dst [N, .., C]: one
            element: "scalar"; [C]: "channel"; [N, C] or [N, 1, 1, C]:
            "sample_channel"; the shape of dst: "tensor". The last two may be plain or in
            dst's layout.
          shape: one of these four words, where the operand's shape does not tell: its
            rank is not known, or it is an operand of `args`.

        Raises:
          InvalidArgument: unknown algorithm or shape, a malformed operand, or a full
            chain.
        """
        spelled = _spell("binary", str(alg), shape and str(shape), operand)
        return self._append(spelled, lambda: binary_entry(alg, operand, shape))

    def kind(self, i: int) -> str:
        """Returns the kind of entry i: "eltwise", "sum" or "binary"."""
        return self._entries[i].kind

    def to_text(self) -> str:
        """Returns the op attribute; floats have 9 digits, enough to read them back exactly.

        Raises:
          InvalidArgument: an operand is a tensor, which has no text.
        """
        for i, entry in enumerate(self._entries):
            if isinstance(entry.operand, TensorOperand):
                raise invalid(
                    f'entry {i} "{entry}": a tensor has no text; pass it in args and name it "#0"'
                )
        return str(self)

    @classmethod
    def parse(cls, text: str) -> "PostOps":
        """Returns the chain that `text` describes.

        Raises:
          InvalidArgument: one line that names the entry and the remedy.
        """
        chain = cls()
        if text.strip(" "):
            for spelled in split(text, ";"):
                chain = chain._append(spelled, lambda spelled=spelled: parse_entry(spelled))
        return chain

    @property
    def entries(self) -> tuple[Step, ...]:
        """The entries, for the ops."""
        return self._entries

    def _append(self, spelled: str, make) -> "PostOps":
        """The chain with what make() returns; `spelled` is what errors call it."""
        try:
            entry = make()
            if len(self) == MAX_STEPS:
                raise ValueError(f"a chain has at most {MAX_STEPS} entries; split it over two ops")
        except (TypeError, ValueError) as error:
            raise invalid(f'entry {len(self)} "{spelled}": {error}') from None
        longer = PostOps()
        longer._entries = (*self._entries, entry)
        return longer

    def __add__(self, other: "PostOps") -> "PostOps":
        """The entries of this chain, then those of the other."""
        longer = self
        for entry in other.entries:
            longer = longer._append(str(entry), lambda entry=entry: entry)
        return longer

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other) -> bool:
        return self._entries == other._entries if isinstance(other, PostOps) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._entries)

    def __str__(self) -> str:
        return ";".join(map(str, self._entries))

    def __repr__(self) -> str:
        has_tensor = any(isinstance(entry.operand, TensorOperand) for entry in self._entries)
        return f"<PostOps {self}>" if has_tensor else f'PostOps.parse("{self}")'


def _spell(kind: str, *words, scale=1, **numbers) -> str:
    """What errors call an entry, which may be none."""
    texts = [word if isinstance(word, str) else "..." for word in words if word is not None]
    numbers |= {"scale": None if scale == 1 else scale}
    texts += [f"{key}={value}" for key, value in numbers.items() if value is not None]
    return f"{kind}({','.join(texts)})"
