"""One op, one eltwise step: op -> step, one row each."""

from .....ops.records import eltwise
from .idiom import Idiom

_STEPS = {
    "Abs": lambda attr: eltwise("abs"),
    "Elu": lambda attr: eltwise("elu"),
    "Exp": lambda attr: eltwise("exp"),
    "LeakyRelu": lambda attr: eltwise("leaky_relu", alpha=attr["alpha"].f),
    "Log": lambda attr: eltwise("log"),
    "Neg": lambda attr: eltwise("linear", alpha=-1.0, beta=0.0),
    "Relu": lambda attr: eltwise("relu"),
    "Relu6": lambda attr: eltwise("relu6"),
    "Rint": lambda attr: eltwise("round"),
    "Round": lambda attr: eltwise("round"),
    # selu(x) = lambda * elu(x, alpha), Klambauer et al. 2017
    "Selu": lambda attr: eltwise("elu", alpha=1.6732632423543772, scale=1.0507009873554805),
    "Sigmoid": lambda attr: eltwise("logistic"),
    "Softplus": lambda attr: eltwise("soft_relu"),
    "Sqrt": lambda attr: eltwise("sqrt"),
    "Square": lambda attr: eltwise("square"),
    "Tanh": lambda attr: eltwise("tanh"),
}
ROOTS = tuple(_STEPS)


def recognise(node, body):
    step = _STEPS[node.op](node.attr)
    yield Idiom(node.name, node.inputs[0], (step,), frozenset([node.name]))
