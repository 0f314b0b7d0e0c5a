"""How people write attention, for q, k and v as [B, T, N, H], and masks of its scores."""

import numpy as np
import tensorflow as tf

B, T, S, N, H = 2, 10, 13, 4, 8
ROW = np.arange(T, dtype=np.float32)
MASK = np.array([[1] * 13, [1] * 7 + [0] * 6], bool)  # of keys
FEW = np.float32(np.arange(T)[:, None] * 3 % 7 >= np.arange(S) % 5)  # of queries and keys
LEFT = np.array([[1] * 10, [0] * 3 + [1] * 7], bool)  # padded on the left: no key for query 0
CAUSAL = np.tri(T, dtype=bool)


def heads_last(q, k, v, scores=lambda s: s):
    weights = tf.nn.softmax(scores(tf.einsum("BTNH,BSNH->BNTS", q, k) * 0.3))
    return tf.einsum("BNTS,BSNH->BTNH", weights, v)


def turned(x):
    return tf.transpose(x, [0, 2, 1, 3])


def hand_written(q, k, v, scores=lambda s: s):
    weights = tf.nn.softmax(scores(tf.matmul(turned(q), turned(k), transpose_b=True) / 2.5))
    return turned(tf.matmul(weights, turned(v)))
