"""Graphs that were saved before load now: definitions of ops only grow.

`definitions.json` holds them as they were; `python tests/python/ops/test_definitions.py` writes the
present ones, which is right after an addition and wrong where this test fails.
"""

import json
import pathlib

import pytest
import tensorflow as tf
from google.protobuf import json_format, text_format
from tensorflow.python.framework import op_def_registry

from tf_blockdnn.python.native import library
from tf_blockdnn.python.tensorflow_private import registered_ops

SAVED = pathlib.Path(__file__).with_name("definitions.json")


def _present():
    """Inputs, outputs and attributes of every op, by name."""
    definitions = {}
    for name in registered_ops("Blockdnn"):
        parts = json_format.MessageToDict(op_def_registry.get(name))
        for part in ("inputArg", "outputArg", "attr"):
            rows = parts.get(part, [])
            definitions.setdefault(name, {})[part] = {
                row.pop("name"): {k: v for k, v in row.items() if k != "description"}
                for row in rows
            }
    return definitions


def _choices(attr):
    lists = attr.pop("allowedValues", {}).get("list", {})
    return {choice for values in lists.values() for choice in values}


def _loaded(args, attrs, saved):
    """Inputs or outputs as a graph has them whose nodes say the attributes `saved`: what is of an
    attribute that is new is of its default, and a list of default length 0 is none."""

    def default(name):
        value = attrs.get(name, {}).get("defaultValue", {})
        return value.get("type", value.get("i"))

    for name, arg in args.items():
        arg = dict(arg)
        if arg.get("numberAttr") not in saved and default(arg.get("numberAttr")) == "0":
            continue
        if "typeAttr" in arg:
            arg["type"] = default(arg.pop("typeAttr"))
        yield name, arg


def _broken(before, now):
    """What of a definition a saved graph would miss."""
    for part in ("inputArg", "outputArg"):
        was, is_now = (list(_loaded(d[part], d["attr"], before["attr"])) for d in (before, now))
        if was != is_now:
            yield f"{part} is {is_now}, not {was}"
    for name, attr in before["attr"].items():
        if name not in now["attr"]:
            yield f"attribute {name} is gone"
            continue
        changed = now["attr"].pop(name)
        if not _choices(attr) <= _choices(changed):
            yield f"attribute {name} no longer takes all that it took"
        if int(changed.pop("minimum", 0)) > int(attr.pop("minimum", 0)):
            yield f"attribute {name} has a larger least value"
        if changed != attr:
            yield f"attribute {name} is {changed}, not {attr}"
    for name, attr in now["attr"].items():
        if "defaultValue" not in attr:
            yield f"attribute {name} is new and has no default"


@pytest.mark.parametrize("name", json.loads(SAVED.read_text()))
def test_what_saved_graphs_say_is_still_understood(name):
    now = _present()
    assert name in now
    assert not list(_broken(json.loads(SAVED.read_text())[name], now[name]))


# Nodes as graphs of before have them: T alone says the type of all inputs.
_BEFORE = """
node { name: "conv" op: "BlockdnnConv"
  input: "x" input: "w" input: "bias" input: "into"
  attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "num_args" value { i: 1 } }
  attr { key: "src_layout" value { s: "nChw16c" } }
  attr { key: "dst_layout" value { s: "nChw16c" } }
  attr { key: "channels" value { i: 16 } }
  attr { key: "weights_shape" value { list { i: 1 i: 1 i: 16 i: 16 } } }
  attr { key: "padding" value { s: "VALID" } }
  attr { key: "post_ops" value { s: "binary(add,channel,#0)" } }
  attr { key: "dst_part" value { list { i: 16 i: 32 } } }
  attr { key: "num_into" value { i: 1 } } }
node { name: "pool" op: "BlockdnnPool"
  input: "conv" input: "into"
  attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "kind" value { s: "max" } }
  attr { key: "channels" value { i: 16 } }
  attr { key: "ksize" value { list { i: 1 i: 1 } } }
  attr { key: "padding" value { s: "VALID" } }
  attr { key: "src_part" value { list { i: 16 i: 32 } } }
  attr { key: "dst_part" value { list { i: 16 i: 32 } } }
  attr { key: "num_into" value { i: 1 } } }
node { name: "sum" op: "BlockdnnEltwise"
  input: "pool" input: "conv"
  attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "num_args" value { i: 1 } }
  attr { key: "layout" value { s: "nChw16c" } }
  attr { key: "channels" value { i: 32 } }
  attr { key: "post_ops" value { s: "sum(#0)" } } }
node { name: "both" op: "BlockdnnConcat"
  input: "sum" input: "into"
  attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "N" value { i: 2 } }
  attr { key: "channels" value { list { i: 32 i: 32 } } } }
"""


def test_nodes_of_before_load_and_run():
    library()
    graph_def = text_format.Parse(_BEFORE, tf.compat.v1.GraphDef())
    x, w = tf.ones((1, 1, 2, 2, 16)), tf.ones((1, 1, 16, 16))

    @tf.function
    def run(x, w, bias, into):
        inputs = {"x": x, "w": w, "bias": bias, "into": into}
        for name in inputs:
            node = graph_def.node.add(name=name, op="Placeholder")
            node.attr["dtype"].type = tf.float32.as_datatype_enum
        return tf.import_graph_def(graph_def, inputs, ["both:0"], name="")[0]

    y = run(x, w, tf.fill([16], 3.0), tf.ones((1, 2, 2, 2, 16))).numpy()
    assert y[0, :, 0, 0, 0].tolist() == [2, 38, 1, 1]


if __name__ == "__main__":
    lines = (f"{json.dumps(n)}: {json.dumps(d)}" for n, d in sorted(_present().items()))
    SAVED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
