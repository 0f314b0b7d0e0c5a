"""The wheel installs without a compiler, and on the systems that docs/install.md promises."""

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.native import LIBRARY_PATH

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "install.md").read_text()
INSTALL = [sys.executable, *"-m pip -q install --no-deps --no-index --no-compile".split()]


def symbol_versions(library: Path) -> dict[str, tuple[int, ...]]:
    """The newest version of each family, such as GLIBC, that the library asks the system for."""
    table = subprocess.run(["objdump", "-T", library], check=True, capture_output=True, text=True)
    newest: dict[str, tuple[int, ...]] = {}
    for family, version in re.findall(r"\((GLIBC|GLIBCXX|CXXABI)_([\d.]+)\)", table.stdout):
        numbers = tuple(map(int, version.split(".")))
        newest[family] = max(newest.get(family, ()), numbers)
    return newest


@pytest.mark.skipif(not shutil.which("objdump"), reason="no objdump")
def test_the_floors_that_the_page_states():
    """One built on a newer system would need more: build wheels on the oldest that is promised."""
    glibc = re.search(r"glibc ([\d.]+)", PAGE).group(1)
    libstdcxx = re.search(r"GLIBCXX_([\d.]+)", PAGE).group(1)
    newest = symbol_versions(LIBRARY_PATH)
    assert newest["GLIBC"] <= tuple(map(int, glibc.split(".")))
    assert newest["GLIBCXX"] <= tuple(map(int, libstdcxx.split(".")))
    assert newest["CXXABI"] <= (1, 3, 13)  # of GCC 12, too


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """As `make wheel` makes it; Bazel finds the library built."""
    if not (shutil.which("bazelisk") or Path("/usr/bin/bazel-4").exists()):
        pytest.skip("no Bazel")
    place = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "-q", "wheel", "--no-build-isolation", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", place, ROOT], check=True)
    (path,) = place.glob("*.whl")
    return path


def test_its_name_and_content(wheel):
    assert re.fullmatch(r"tf_blockdnn-[\d.]+\+tf2\.\d+-py3-none-linux_x86_64\.whl", wheel.name)
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("_native/libtf_blockdnn.so", "_native/_build_info.json", "python/threads.py"):
        assert f"tf_blockdnn/{name}" in names
    assert "tensorflow-plugins/libtf_blockdnn_plugin.so" in names
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "python").rglob("*.py")}
    inside = {name.removeprefix("tf_blockdnn/") for name in names if "/python/" in name}
    assert {name for name in inside if name.endswith(".py")} == sources
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "docs", "cc"))]


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13"])
def test_pip_takes_it_for_every_python(wheel, python, tmp_path):
    options = ["--python-version", python, "--only-binary=:all:", "--target", tmp_path]
    subprocess.run([*INSTALL, wheel, *options], check=True)
    assert (tmp_path / "tf_blockdnn" / "_native" / "libtf_blockdnn.so").exists()


def test_it_installs_and_runs_without_a_compiler(wheel, tmp_path):
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environ |= {"PATH": str(tmp_path), "CC": "no-compiler", "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([*INSTALL, wheel, "--target", tmp_path / "here"], check=True, env=environ)
    program = """
import sys; sys.path.insert(0, sys.argv[1])
import tensorflow as tf, tf_blockdnn as bd
y = bd.ops.conv(tf.ones((1, 1, 4, 4, 16)), tf.ones((1, 1, 16, 16)), padding="SAME")
print(bd.info()["library"], float(tf.reduce_max(y)))
"""
    command = [sys.executable, "-c", program, tmp_path / "here"]
    out = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
    library, value = out.stdout.split()[-2:]
    assert Path(library).is_relative_to(tmp_path / "here") and value == "16.0", out.stderr


@pytest.fixture
def installed(wheel, tmp_path):
    """Its site-packages in an environment of its own, and what runs a program there."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    (site,) = (tmp_path / "venv").glob("lib/python3*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    (site / "others.pth").write_text(os.path.dirname(os.path.dirname(tf.__file__)))

    def run(program: str, **more) -> str:
        environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | more
        command = [tmp_path / "venv/bin/python", "-c", program]
        done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return site, run


SERVE = """
import tensorflow as tf
model = tf.saved_model.load("fast")
print(float(tf.reduce_max(model.signatures["serving_default"](tf.ones((1, 8, 8, 3)))["output_0"])))
import tf_blockdnn as bd
image = tf.ones((1, 1, 4, 4, 16))
print(float(tf.reduce_max(bd.ops.conv(image, tf.ones((1, 1, 16, 16)), padding="SAME"))))
print(bd.load("fast").report.blocked[0][1])
"""
# As TensorFlow loads what lies in its folder of plug-ins, without the seconds of its import.
LOADS_OPS = """
import ctypes, glob, importlib.util, sys
(folder,) = importlib.util.find_spec("tensorflow").submodule_search_locations
ctypes.CDLL(folder + "/libtensorflow_cc.so.2")
for path in sys.path:
    for plugin in glob.glob(path + "/tensorflow-plugins/*.so"):
        ctypes.CDLL(plugin)
print("libtf_blockdnn.so" in open("/proc/self/maps").read())
"""


def test_a_server_imports_tensorflow_alone(installed, tmp_path):
    kernel = tf.Variable(tf.ones((3, 3, 3, 4)))
    image = tf.TensorSpec((None, 8, 8, 3))
    network = tf.function(lambda x: tf.nn.conv2d(x, kernel, 1, "SAME"), input_signature=[image])
    bd.optimize(network).save(tmp_path / "fast")
    _, run = installed
    assert run(SERVE).split() == ["27.0", "16.0", "BlockdnnConv"]


def test_the_plug_in_never_stops_an_import(installed):
    """For another TensorFlow, with a library that does not load, or unwanted it does nothing."""
    site, run = installed
    native = site / "tf_blockdnn/_native"
    assert run(LOADS_OPS).endswith("True")
    assert run(LOADS_OPS, TF_BLOCKDNN_PLUGIN="0").endswith("False")
    (native / "_build_info.json").write_text('{"tensorflow": "2.20.0"}\n')
    assert run(LOADS_OPS).endswith("False")
    (native / "_build_info.json").write_text(f'{{"tensorflow": "{tf.__version__}"}}\n')
    (native / "libtf_blockdnn.so").write_bytes(b"no library")
    assert run(LOADS_OPS).endswith("False")
    shutil.rmtree(native)
    assert run(LOADS_OPS).endswith("False")


def test_another_library_of_ours_is_named(installed):
    """A checkout's beside that of the wheel: TensorFlow would end for ops registered twice."""
    _, run = installed
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nimport tf_blockdnn"
    said = run(f"try:\n exec({program!r})\nexcept ImportError as error: print(error)")
    assert "set TF_BLOCKDNN_PLUGIN=0" in said and str(LIBRARY_PATH) in said
    run(program, TF_BLOCKDNN_PLUGIN="0")
