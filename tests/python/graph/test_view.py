"""GraphView: producers, consumers, use counts, editing."""

import pytest
import tensorflow as tf

from tf_blockdnn.python.graph import GraphView, Node, Ref


def _view(fetches=("d",), targets=()):
    """a -> b, a -> c, (b, c) -> d; e is dead; c also waits for b."""
    graph = tf.Graph()
    with graph.as_default():
        a = tf.compat.v1.placeholder(tf.float32, [2], name="a")
        b = tf.nn.relu(a, name="b")
        with tf.control_dependencies([b]):
            c = tf.nn.tanh(a, name="c")
        tf.add(b, c, name="d")
        tf.negative(a, name="e")
    refs = [Ref.parse(text) for text in fetches]
    return GraphView(graph.as_graph_def(), refs, targets)


def _names(nodes):
    return {node.name for node in nodes}


def test_refs_read_and_write_as_text():
    assert Ref.parse("x:2") == Ref("x", 2)
    assert Ref.parse("x:0") == Ref.parse("x") == Ref("x")
    assert str(Ref("x", 2)) == "x:2" and str(Ref("x")) == "x"


def test_consumers_and_use_counts():
    view = _view(fetches=("d", "b"))
    assert [(node.name, i) for node, i in view.consumers(Ref("a"))] == [
        ("b", 0),
        ("c", 0),
        ("e", 0),
    ]
    assert view.use_count(Ref("b")) == 2  # d and the fetch; the control edge does not count
    assert view.is_fetched(Ref("b")) and not view.is_fetched(Ref("c"))


def test_a_node_that_reads_a_tensor_twice_counts_twice():
    view = _view()
    view.set_inputs(view.node("d"), [Ref("b"), Ref("b")])
    assert view.use_count(Ref("b")) == 2


def test_control_edges_are_seen_from_both_ends():
    view = _view(targets=("e",))
    assert _names(view.control_consumers("b")) == {"c"}
    assert view.has_control_edges("b") and view.has_control_edges("c")
    assert view.has_control_edges("e")  # it must run
    assert not view.has_control_edges("d")


def test_topological_order_puts_producers_first():
    view = _view()
    order = [node.name for node in view.topological()]
    assert sorted(order) == sorted(_names(view))
    for node in view:
        for source in [ref.node for ref in node.inputs] + node.controls:
            assert order.index(source) < order.index(node.name)


def test_replace_keeps_consumers_and_drops_old_inputs():
    view = _view()
    view.replace(Node("b", "Other", [Ref("c")]))
    assert view.node("b").op == "Other"
    assert _names(node for node, _ in view.consumers(Ref("a"))) == {"c", "e"}
    assert _names(node for node, _ in view.consumers(Ref("b"))) == {"d"}


def test_replace_uses_redirects_readers_and_fetches():
    view = _view(fetches=("b", "d"))
    view.replace_uses(Ref("b"), Ref("a"))
    assert view.fetches == [Ref("a"), Ref("d")]
    assert view.node("d").inputs == [Ref("a"), Ref("c")]


def test_add_gives_unique_names():
    view = _view()
    assert view.add(Node("b", "Const")).name == "b_1"
    assert view.add(Node("b", "Const")).name == "b_2"


def test_remove_refuses_a_node_in_use():
    view = _view()
    with pytest.raises(ValueError, match="still in use"):
        view.remove("b")
    view.remove("e")
    assert "e" not in view


def test_remove_dead_walks_up_but_spares_what_is_needed():
    view = _view(fetches=("c",))
    view.remove_dead(["d"])
    assert _names(view) == {"a", "b", "c", "e"}  # b orders c


def test_prune_keeps_placeholders_targets_and_fetches():
    view = _view(fetches=("c",), targets=("e",))
    assert view.prune() == 1
    assert _names(view) == {"a", "b", "c", "e"}


def test_a_round_trip_gives_the_same_graph():
    view = _view()
    again = GraphView(view.to_graph_def(), view.fetches)
    assert again.to_graph_def() == view.to_graph_def()
    assert again.node("c").controls == ["b"]


def test_reading_an_absent_attribute_adds_nothing():
    view = _view()
    assert view.node("b").attr["data_format"].s == b""
    assert "data_format" not in view.node("b").to_proto().attr
