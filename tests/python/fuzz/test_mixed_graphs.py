"""Random graphs of mixed types and side effects: the same numbers, the same effects, in order.

TF_BLOCKDNN_EXAMPLES says how many, TF_BLOCKDNN_SEED which; a thousand take two minutes.
"""

import os

import children
import mixed_case

_EXAMPLES = int(os.environ.get("TF_BLOCKDNN_EXAMPLES", "150"))
_SEED = int(os.environ.get("TF_BLOCKDNN_SEED", "0"))


def test_mixed_graphs():
    results = children.check(mixed_case.run, [(_SEED, index) for index in range(_EXAMPLES)])
    # A generator whose graphs were left alone would prove nothing.
    converted = [count for count, _ in results]
    assert sum(count > 0 for count in converted) > 0.7 * _EXAMPLES
    assert sum(converted) > 1.7 * _EXAMPLES
