"""Element-wise idioms of Keras and TensorFlow graphs, one kind a file.

`ELEMENTWISE` maps the op at the root of an idiom to the functions that recognise it:
`recognise(node, body) -> iterable of Idiom`. They look at the attributes `NAMED`; in an idiom all
others have their defaults.
"""

from . import activations, affine, functions

NAMED = ("alpha", "epsilon", "is_training")
ELEMENTWISE = {}
for _module in (affine, activations, functions):
    for _op in _module.ROOTS:
        ELEMENTWISE.setdefault(_op, []).append(_module.recognise)
