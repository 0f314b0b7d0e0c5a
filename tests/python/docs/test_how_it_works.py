"""The table of passes in docs/how-it-works.md is the pipeline's, in its order."""

import pathlib
import re

from tf_blockdnn.python.rewriter import pipeline

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "how-it-works.md"


def test_every_pass_stands_in_the_table_with_its_file():
    rows = re.findall(r"^\| `(\w+)` \| `([\w/]+\.py)` \|", PAGE.read_text(), re.MULTILINE)
    passes = [
        (run.__name__, run.__module__.partition(".passes.")[2].replace(".", "/") + ".py")
        for run in pipeline.PASSES
    ]
    assert rows == passes
