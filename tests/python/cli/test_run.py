"""`tf-blockdnn run`: programs of others as they are, and faster."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# It and its child call a function until it was timed against its optimised form. Which of them is
# faster depends on what else the machine does, so the test asks only that both were timed. `hidden`
# is a sitecustomize of the user's.
PROGRAM = """
import subprocess, sys
import hidden
print(__name__, __file__, sys.argv[1:], flush=True)
if "--child" not in sys.argv:
    subprocess.run([sys.executable, __file__, "--child"])
import tensorflow as tf
kernel = tf.Variable(tf.ones((3, 3, 16, 64)))
network = tf.function(lambda x: tf.nn.conv2d(x, kernel, 1, "SAME"))
x = tf.ones((1, 112, 112, 16))
for _ in range(1000):
    y = network(x)
    (function,) = sys.modules["tf_blockdnn"].report().functions
    if function.state in ("optimized", "left"):
        break
timed = function.original_ms > 0 and function.optimized_ms > 0
print("y", float(tf.reduce_max(y)), "timed" if timed else function, flush=True)
sys.exit(3)
"""


@pytest.fixture
def run(tmp_path):
    """Runs the command with those arguments in a folder that has `program.py`."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import sys; sys.modules['hidden'] = sys")

    def call(*arguments):
        environ = dict(os.environ, PYTHONPATH=f"{ROOT}:{tmp_path / 'site'}")
        return subprocess.run(
            [sys.executable, "-m", "tf_blockdnn", "run", *map(str, arguments)],
            env=environ,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )

    return call


def test_a_script_and_its_children(run, tmp_path):
    done = run("--report", "report.json", "program.py", "--report", "-m", "x")
    assert done.returncode == 3, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"__main__ {tmp_path / 'program.py'} ['--report', '-m', 'x']"
    assert lines[1] == f"__main__ {tmp_path / 'program.py'} ['--child']"
    assert lines[2:] == ["y 144.0 timed"] * 2, done.stderr
    (function,) = json.loads((tmp_path / "report.json").read_text())["functions"]
    assert function["reason"] in ("", "not faster") and function["report"]["regions"] == 1


def test_a_module_without_tensorflow(run, tmp_path):
    (tmp_path / "other.py").write_text("import hidden, sys; print(sys.argv, __name__); 1 / 0")
    done = run("-m", "other", "-m")
    assert done.stdout == f"[{str(tmp_path / 'other.py')!r}, '-m'] __main__\n"
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr
    assert done.stderr.endswith("tf_blockdnn: the program has not imported TensorFlow\n")


def test_what_cannot_run(run):
    for arguments, words in {
        ("nothere.py",): "nothere.py: no such script; -m takes a module",
        ("--report", "nothere/r.json", "program.py"): "--report nothere/r.json: no such folder",
    }.items():
        done = run(*arguments)
        assert done.returncode == 2 and words in done.stderr
