"""The matcher: commutative ops, repeated names, constants, attributes, optional operands."""

import pytest
import tensorflow as tf

from tf_blockdnn.python.graph import (
    Any,
    Binding,
    Body,
    Constants,
    GraphView,
    OneOf,
    Op,
    Ref,
    Scalar,
    Shapes,
    Viewed,
    match,
)


def _matcher(build, root):
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [4], name="x")
        y = tf.compat.v1.placeholder(tf.float32, [4], name="y")
        build(x, y)
    view = GraphView(graph.as_graph_def(), [Ref(root)])
    body = Body(
        view, Constants(view, {}), Shapes(view, {"x": (4,), "y": (4,)}, lambda graph, inputs: {})
    )
    return lambda pattern: match(pattern, view.node(root), body)


_X = Any("x")
_SWISH = Op("Mul", _X, Op("Sigmoid", _X))


def test_a_repeated_name_must_be_the_same_tensor():
    matched = _matcher(lambda x, y: tf.multiply(x, tf.sigmoid(x), name="r"), "r")(_SWISH)
    assert matched.refs == {"x": Ref("x")}
    assert matched.nodes == ("r", "Sigmoid")
    assert _matcher(lambda x, y: tf.multiply(x, tf.sigmoid(y), name="r"), "r")(_SWISH) is None


def test_commutative_ops_match_in_both_orders():
    assert _matcher(lambda x, y: tf.multiply(tf.sigmoid(x), x, name="r"), "r")(_SWISH)


def test_other_ops_match_in_order_only():
    pattern = Op("Sub", _X, Scalar(2.0))
    assert _matcher(lambda x, y: tf.subtract(x, 2.0, name="r"), "r")(pattern)
    assert _matcher(lambda x, y: tf.subtract(2.0, x, name="r"), "r")(pattern) is None


def test_scalars_are_compared_and_bound():
    match_at = _matcher(lambda x, y: tf.multiply(x, tf.sigmoid(1.5 * x), name="r"), "r")
    named = Op("Mul", _X, Op("Sigmoid", Op("Mul", _X, Scalar(name="beta"))))
    assert match_at(named).values == {"beta": 1.5}
    assert match_at(Op("Mul", _X, Op("Sigmoid", Op("Mul", _X, Scalar(1.0))))) is None


def test_a_constant_vector_is_no_scalar():
    match_at = _matcher(lambda x, y: tf.multiply(x, [1.0, 2.0, 3.0, 4.0], name="r"), "r")
    assert match_at(Op("Mul", _X, Scalar(name="s"))) is None


def test_alternatives_and_backtracking():
    pattern = Op("Add|AddV2", Op("Tanh", Any("a")), Op("Tanh", Op("Neg", Any("b"))))
    match_at = _matcher(lambda x, y: tf.add(tf.tanh(-y), tf.tanh(x), name="r"), "r")
    matched = match_at(pattern)
    assert matched.refs == {"a": Ref("x"), "b": Ref("y")}


def test_one_of_several_spellings():
    half = OneOf(Op("Mul", _X, Scalar(0.5)), Op("RealDiv", _X, Scalar(2.0)))
    pattern = Op("Tanh", half)
    for build in (lambda x, y: tf.tanh(0.5 * x, name="r"), lambda x, y: tf.tanh(x / 2.0, name="r")):
        assert _matcher(build, "r")(pattern).refs == {"x": Ref("x")}
    assert _matcher(lambda x, y: tf.tanh(x / 3.0, name="r"), "r")(pattern) is None
    assert _matcher(lambda x, y: tf.multiply(x, 0.5, name="r"), "r")(half)
    assert _matcher(lambda x, y: tf.subtract(x, 0.5, name="r"), "r")(half) is None


def test_all_spellings_are_tried_until_the_rest_fits():
    either = OneOf(Op("Neg", _X), Op("Neg", Any("y")))
    match_at = _matcher(lambda x, y: tf.subtract(-y, x, name="r"), "r")
    assert match_at(Op("Sub", either, _X)).refs == {"y": Ref("y"), "x": Ref("x")}


def test_one_object_is_one_tensor():
    tanh = Op("Tanh", _X)
    both = tanh * Op("Neg", tanh)
    assert _matcher(lambda x, y: (lambda t: tf.multiply(t, -t, name="r"))(tf.tanh(x)), "r")(both)
    twice = _matcher(lambda x, y: tf.multiply(tf.tanh(x), -tf.tanh(x), name="r"), "r")
    assert twice(both) is None and twice(Op("Mul", tanh, Op("Neg", Op("Tanh", _X))))


def test_a_number_is_that_of_the_pattern_to_the_bit():
    sixth = _X * (1 / 6)
    assert _matcher(lambda x, y: tf.multiply(x, 1 / 6, name="r"), "r")(sixth)
    assert _matcher(lambda x, y: tf.multiply(x, 0.16667, name="r"), "r")(sixth) is None
    assert _matcher(lambda x, y: tf.multiply(x, 0.1666667, name="r"), "r")(sixth) is None


def test_attributes_that_are_not_named_have_their_defaults():
    match_at = _matcher(lambda x, y: tf.reduce_mean(x, 0, keepdims=True, name="r"), "r")
    assert match_at(Op("Mean", _X, Any("axes"))) is None
    assert match_at(Op("Mean", _X, Any("axes"), keep_dims=True))
    assert match_at(Op("Mean", _X, Any("axes"), keep_dims=Any("keeps"))).values == {"keeps": True}


def test_outputs_of_a_node_are_different_tensors():
    match_at = _matcher(lambda x, y: tf.identity(tf.split(x, 2)[1] * 2.0, name="r"), "r")
    split = Op("Split", 0, _X, num_split=2)
    assert match_at(Op("Identity", Op("Mul", split[1], 2.0)))
    assert match_at(Op("Identity", Op("Mul", split, 2.0))) is None
    assert match_at(Op("Identity", Op("Mul", Op("Split", 0, _X, num_split=3)[1], 2.0))) is None


def test_a_way_gives_parameters_that_others_must_agree_with():
    match_at = _matcher(lambda x, y: tf.add(tf.tanh(x), tf.nn.relu(y), name="r"), "r")

    def activated(x, name):
        return OneOf(*(Binding(Op(op, x), **{name: op}) for op in ("Relu", "Tanh")))

    assert match_at(activated(_X, "f") + activated(Any(), "g")).values == {"f": "Tanh", "g": "Relu"}
    assert match_at(activated(_X, "f") + activated(Any(), "f")) is None


@pytest.mark.parametrize(
    "order, matched", [((1, 2, 0), True), ((1, 0, 2), True), ((0, 2, 1), False)]
)
def test_views_keep_elements_in_their_order(order, matched):
    def build(x, y):
        view = tf.transpose(tf.reshape(tf.sqrt(x), [1, 2, 2]), order)
        tf.identity(tf.squeeze(view), name="r")

    assert bool(_matcher(build, "r")(Op("Identity", Viewed(Op("Sqrt", _X))))) == matched


def test_an_operand_whose_default_is_neutral_may_be_absent():
    scaled = Op("Tanh", _X * Any("scale", default=1.0))
    assert _matcher(lambda x, y: tf.tanh(x * y, name="r"), "r")(scaled).refs["scale"] == Ref("y")
    assert _matcher(lambda x, y: tf.tanh(x, name="r"), "r")(scaled).values == {"scale": None}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Op("Sigmiod", _X),
        lambda: Op("Mean", _X, Any("axes"), keepdims=True),
        lambda: Op("Sigmoid", _X, _X),
    ],
)
def test_what_tensorflow_does_not_know_is_no_pattern(make):
    with pytest.raises(ValueError, match="no op|no attribute|takes 1 inputs"):
        make()
