"""One op, one eltwise step: the functions of x alone (their table), and those with numbers."""

from .....ops.records import FUNCTIONS, eltwise
from .idiom import Idiom

_STEPS = {
    **{op: lambda attr, name=name: eltwise(name) for name, op in FUNCTIONS.items() if op},
    "Elu": lambda attr: eltwise("elu"),
    "Inv": lambda attr: eltwise("reciprocal"),
    "LeakyRelu": lambda attr: eltwise("leaky_relu", alpha=attr["alpha"].f),
    "Neg": lambda attr: eltwise("linear", alpha=-1.0, beta=0.0),
    "Relu": lambda attr: eltwise("relu"),
    "Relu6": lambda attr: eltwise("relu6"),
    "Rint": lambda attr: eltwise("round"),
    # selu(x) = lambda * elu(x, alpha), Klambauer et al. 2017
    "Selu": lambda attr: eltwise("elu", alpha=1.6732632423543772, scale=1.0507009873554805),
}
ROOTS = tuple(_STEPS)


def recognise(node, body):
    step = _STEPS[node.op](node.attr)
    yield Idiom(node.name, node.inputs[0], (step,), frozenset([node.name]))
