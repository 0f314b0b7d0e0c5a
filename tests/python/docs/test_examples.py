"""The programs of docs/examples say how to call them, and what is missing, in one line."""

import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "docs" / "examples"
# Runs a program as if all packages were there.
_RUN = """
import runpy, sys, unittest.mock
for name in sys.argv.pop(1).split(","):
    sys.modules[name] = unittest.mock.MagicMock()
runpy.run_path(sys.argv.pop(1), run_name="__main__", init_globals={"sys": sys})
"""
_PACKAGES = (
    "apache_beam,apache_beam.io,apache_beam.ml.inference.base,apache_beam.options.pipeline_options,"
    "keras,pyarrow,pyspark.sql,ray,tensorflow,tf_blockdnn"
)


def run(name: str, *arguments) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", _RUN, _PACKAGES, FOLDER / f"{name}.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_without_arguments_it_says_how_to_call_it(path):
    result = run(path.stem)
    assert result.returncode == 1 and f"    python {path.name} " in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("server", ["grpc_server", "ray_serve_images"])
def test_a_server_without_its_model_says_so(server, tmp_path):
    result = run(server, tmp_path / "none")
    assert (result.returncode, result.stderr) == (1, f"{tmp_path / 'none'}: no SavedModel there\n")


def test_a_server_that_cannot_start_ends(tmp_path):
    """It started its processes again and again; that is for those that have served."""
    (tmp_path / "saved_model.pb").write_text("dear")
    command = [sys.executable, FOLDER / "grpc_server.py", tmp_path, "0", "2"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        "a process could not start; what it printed above says why"
    )
