"""What products refuse."""

import numpy as np

import tf_blockdnn as bd


def attention(q=(2, 5, 6, 8), k=(2, 7, 3, 8), v=(2, 7, 3, 4), **changes):
    """A valid attention but for `changes`; tensors by their shapes."""
    tensors = [np.zeros(shape, np.float32) for shape in (q, k, v)]
    return bd.ops.attention(*tensors, **changes)


def bias(*shape):
    return np.zeros(shape, np.float32)


SCORES = r"must be broadcastable to the scores, \[2,6,5,7\]; got "
# What is wrong -> a call that does it, and the words its message must have.
CASES = {
    "attention: rank": (
        lambda: attention(q=(5, 8), k=(7, 8), v=(7, 4)),
        r"q, k and v must all be of rank 4, or of rank 3: one head; q is \[5,8\]",
    ),
    "attention: a scalar": (
        lambda: attention(v=()),
        r"q, k and v must all be of rank 4, or of rank 3: one head; v is \[\]",
    ),
    "attention: ranks": (
        lambda: attention(k=(2, 7, 8)),
        r"q, k and v must all be of rank 4, or of rank 3: one head; k is \[2,7,8\]",
    ),
    "attention: sequences": (lambda: attention(k=(3, 7, 3, 8)), "k has 3 sequences, not 2"),
    "attention: size": (lambda: attention(k=(2, 7, 3, 9)), "k has 9 elements a row, not 8"),
    "attention: keys": (lambda: attention(v=(2, 6, 3, 4)), "v has 6 keys, not 7"),
    "attention: an index of a cache that is none": (
        lambda: attention(k=(2, 4, 7, 3, 8), k_at=[4]),
        r"k_at: 4 is no index of axis 1 of \[2,4,7,3,8\]",
    ),
    "attention: an index of its elements": (
        lambda: attention(q=(2, 5, 6, 8, 2), q_at=[0], at_axis=4),
        r"q_at: 0 is no index of axis 4 of \[2,5,6,8,2\]",
    ),
    "attention: an axis that no tensor has": (
        lambda: attention(at_axis=2**31 - 1),
        "at_axis must be at most 16, not 2147483647",
    ),
    "attention: an axis of more than 32 bits": (
        lambda: attention(at_axis=2**31),
        "at_axis must fit 32 bits, got 2147483648",
    ),
    "attention: a number that is less in 32 bits": (
        lambda: attention(biases=[bias(7)], late_biases=2**40),
        "late_biases must fit 32 bits, got 1099511627776",
    ),
    "attention: a cache without its index": (
        lambda: attention(v=(2, 4, 7, 3, 4)),
        "q, k and v must all be of rank 4, or of rank 3: one head; v is",
    ),
    "attention: heads of values": (lambda: attention(v=(2, 7, 1, 4)), "v has 1 heads, not 3"),
    "attention: heads": (
        lambda: attention(k=(2, 7, 4, 8), v=(2, 7, 4, 4)),
        "q has 6 heads, no multiple of the 4 of k and v",
    ),
    "attention: no heads of keys": (
        lambda: attention(k=(2, 7, 0, 8), v=(2, 7, 0, 4)),
        "q has 6 heads, no multiple of the 0 of k and v",
    ),
    "attention: keys of a bias": (
        lambda: attention(biases=bias(2, 6, 5, 6)),
        "bias 0 " + SCORES + r"\[2,6,5,6\]",
    ),
    "attention: heads of a second bias": (
        lambda: attention(biases=[bias(7), bias(3, 1, 7)]),
        "bias 1 " + SCORES + r"\[3,1,7\]",
    ),
    "attention: sequences of a bias": (
        lambda: attention(biases=bias(3, 1, 1, 7)),
        "bias 0 " + SCORES + r"\[3,1,1,7\]",
    ),
    "attention: rank of a mask": (
        lambda: attention(mask=np.ones((2, 1, 6, 5, 7), bool)),
        "mask " + SCORES + r"\[2,1,6,5,7\]",
    ),
    "attention: too many biases": (
        lambda: attention(biases=[bias(7)] * 5),
        "attention adds at most 4 biases, not 5; add them before",
    ),
    "attention: late biases that it has not": (
        lambda: attention(biases=[bias(7)], late_biases=2),
        "late_biases: of 1 biases 2 cannot be added behind the mask",
    ),
    "attention: a soft cap that is none": (
        lambda: attention(soft_cap=-1.0),
        "soft_cap must be a positive number, or 0 for none; got -1",
    ),
    "attention: a soft cap that threads may take for zero": (
        lambda: attention(soft_cap=1e-45),
        "soft_cap must be a positive number, or 0 for none; got",
    ),
}
