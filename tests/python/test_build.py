"""What a build says when it cannot succeed: one line with the remedy, not a traceback."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

BUILD_TOOLS = pathlib.Path(__file__).resolve().parents[2] / "build_tools"
spec = importlib.util.spec_from_file_location("build_native", BUILD_TOOLS / "native.py")
native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(native)


@pytest.fixture
def tools(tmp_path):
    """Makes programs that do nothing, and an environment that has them alone."""

    def make(*names):
        for name in names:
            (tmp_path / name).write_text("#!/bin/sh\n")
            (tmp_path / name).chmod(0o755)
        return {"PATH": str(tmp_path)}

    return make


NOWHERE = "/nowhere/bazel"


def test_nothing_is_missing(tools):
    assert native.missing(tools("gcc", "bazelisk"), NOWHERE) == ""


def test_a_bazel_of_ones_own(tools):
    environ = tools("clang", "my-bazel") | {"CC": "clang", "BAZEL": "my-bazel"}
    assert native.missing(environ, NOWHERE) == ""
    assert native.missing(tools("gcc"), str(tools("bazel-4")["PATH"]) + "/bazel-4") == ""


@pytest.mark.parametrize(
    "there, words, absent",
    [
        (["gcc"], ["Bazel 4.2.3", "apt-get install bazel-bootstrap", "@bazel/bazelisk"], "g++"),
        (["bazelisk"], ["a C++ compiler", "apt-get install g++"], "bazel-bootstrap"),
        ([], ["a C++ compiler and Bazel", "apt-get install g++ bazel-bootstrap"], "\n"),
    ],
)
def test_the_remedy_is_named(tools, there, words, absent):
    line = native.missing(tools(*there), NOWHERE)
    assert all(word in line for word in words), line
    assert absent not in line


HOOKS = (
    "get_requires_for_build_wheel()",
    "get_requires_for_build_editable()",
    "_build(native.build, native.ROOT / 'never')",
)


@pytest.mark.parametrize("hook", HOOKS)
def test_the_backend_ends_with_that_line(hook):
    patch = "import native; native.missing = lambda: 'no Bazel: get one'"
    result = subprocess.run(
        [sys.executable, "-c", f"{patch}; import backend; backend.{hook}"],
        env=os.environ | {"PYTHONPATH": str(BUILD_TOOLS)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert result.stderr.strip().splitlines()[-1] == "no Bazel: get one"
    assert "Traceback" not in result.stderr


def test_the_installer_prints_nothing_else(tmp_path):
    result = subprocess.run(
        [sys.executable, BUILD_TOOLS / "install.py"],
        env=os.environ | {"CC": "no-compiler"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    (line,) = (result.stdout + result.stderr).splitlines()
    assert result.returncode == 1
    assert line.startswith("tf_blockdnn cannot be built without a C++ compiler; on Debian 12, run:")


def test_the_installer_runs_pip(tmp_path):
    """With options that stop pip before it builds anything."""
    program = "import native; native.missing = lambda: ''; import install; install.main()"
    result = subprocess.run(
        [sys.executable, "-c", program, "--no-such-option"],
        env=os.environ | {"PYTHONPATH": str(BUILD_TOOLS)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 2 and "no such option: --no-such-option" in result.stderr


def test_a_failed_build_is_named_last():
    program = "import backend, subprocess as s; backend._build(lambda: s.run('false', check=True))"
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(BUILD_TOOLS)},
        capture_output=True,
        text=True,
    )
    assert "Bazel ended with exit code 1" in result.stderr.strip().splitlines()[-1]
    assert "Traceback" not in result.stderr
