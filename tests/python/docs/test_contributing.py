"""The examples of CONTRIBUTING.md are applied to a scratch copy, and do what the page says."""

import pathlib
import re
import shutil
import subprocess
import textwrap

import fresh
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
PATCH = ROOT / "docs" / "examples" / "minimum_pooling.patch"
RULES = "python/rewriter/patterns/pixels/elementwise/activations.py"


def snippets(language: str, section: str) -> list[str]:
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for block in blocks]


def run(code: str, place: pathlib.Path) -> str:
    """What a program prints that imports the package in `place`."""
    return fresh.run(f"import sys; sys.path.insert(0, {str(place)!r})\n{code}").stdout


def test_the_patch_of_the_kernel_applies(tmp_path):
    files = re.findall(r"^diff --git a/(\S+)", PATCH.read_text(), re.MULTILINE)
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    done = subprocess.run(["git", "apply", PATCH], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, (
        f"{done.stderr}: bring docs/examples/minimum_pooling.patch up to date, "
        "by `git apply --3way` and `git diff -U1`"
    )
    section = PAGE.partition("## Example: a kernel\n")[2].partition("\n## ")[0]
    for name in files:
        assert pathlib.Path(name).name in section, f"no step says why {name} changes"
    assert "kMin = 2" in (tmp_path / "cc/core/pool/pool_kernel.h").read_text()


def test_the_graph_has_the_nodes_that_the_page_names(tmp_path):
    look, _ = snippets("python", "Example: a rule")
    printed = run(look, ROOT)
    assert all(f"'{op}'" in printed for op in ("Neg", "Exp", "AddV2", "RealDiv"))


_CONVERT = """
import numpy as np, tensorflow as tf, tf_blockdnn as bd

@tf.function(input_signature=[tf.TensorSpec([1, 8, 8, 3])])
def function(x):
    x = tf.nn.conv2d(x, tf.ones((3, 3, 3, 16)) / 9, 1, "SAME")
    return x / (1.0 + tf.exp(-x))

fast = bd.optimize(function, options=bd.Options(strict=True))
x = tf.random.normal((1, 8, 8, 3))
assert np.allclose(fast(x), function(x), atol=1e-5)
print(*(one.details for one in fast.report.converted))
"""


@pytest.mark.parametrize("applied", [False, True])
def test_the_rule_converts_what_was_not(tmp_path, applied):
    for folder in ("python", "tf_blockdnn"):
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True)
    _, swish = snippets("python", "Example: a rule")
    if applied:
        path = tmp_path / RULES
        text, count = re.subn(
            r"^def swish\(.*?(?=^def )",
            lambda _: swish + "\n\n",
            path.read_text(),
            flags=re.M | re.S,
        )
        assert count == 1
        path.write_text(text)
    assert ("eltwise(swish" in run(_CONVERT, tmp_path)) is applied


def test_the_row_of_a_table_is_there():
    (row,) = snippets("cpp", "Example: a rule")
    table = (ROOT / "cc/core/post_ops/post_op_step.h").read_text()
    assert " ".join(row.split()) in " ".join(table.split())
