"""The list of passes: one signature, one table in the docs, one capture a function."""

import inspect
from pathlib import Path

import tensorflow as tf

from tf_blockdnn.python.rewriter import pipeline

_PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-it-works.md"


def test_every_pass_takes_the_graph_and_the_context():
    for run in pipeline.PASSES:
        assert list(inspect.signature(run).parameters)[1:] == ["context"], run


def passes_table() -> str:
    """The passes as rows of a Markdown table: function, file, the docstring's first line."""
    rows = ["| pass | file in `python/rewriter/passes/` | what it does |", "|---|---|---|"]
    for run in pipeline.PASSES:
        file = run.__module__.partition(".passes.")[2].replace(".", "/")
        line = run.__doc__.partition("\n")[0].rstrip(".")
        rows.append(f"| `{run.__name__}` | `{file}.py` | {line[0].lower()}{line[1:]} |")
    return "\n".join(rows)


def test_the_table_in_the_docs_is_the_list_of_passes():
    table = passes_table()
    assert table in _PAGE.read_text(), f"docs/how-it-works.md must have this table:\n{table}"


def test_a_losing_island_does_not_capture_again(rewrite, weights, monkeypatch):
    large, small = weights(3, 3, 32, 32), weights(1, 1, 32, 16)
    calls = []

    def counted(concrete):
        calls.append(concrete)
        return capture(concrete)

    capture = pipeline.capture
    monkeypatch.setattr(pipeline, "capture", counted)

    def function(x):
        y = tf.nn.softsign(tf.nn.conv2d(x, large, 1, "SAME"))
        return tf.nn.softsign(tf.nn.conv2d(y, small, 1, "SAME"))

    result = rewrite(function, [1, 8, 8, 32])
    assert result.blockdnn == {"Conv": 1, "Reorder": 2}
    assert "two reorders" in result.reason("Conv2D_1")
    assert len(calls) == 1
