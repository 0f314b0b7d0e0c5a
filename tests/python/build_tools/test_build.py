"""What a build says when it cannot succeed: one line with the remedy, not a traceback."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

BUILD_TOOLS = pathlib.Path(__file__).resolve().parents[3] / "build_tools"
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


def test_npm_can_fetch_bazelisk(tools):
    assert native.missing(tools("gcc", "npm"), NOWHERE) == ""


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


def test_an_old_tensorflow_is_refused():
    native.check("2.18.0")
    native.check("2.100.0rc1")
    with pytest.raises(
        RuntimeError, match=r"2\.18 or newer, but 2\.9\.3 is installed: pip install"
    ):
        native.check("2.9.3")


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


def test_pip_shows_that_line_last(tmp_path):
    """Of what the build says; pip's own remarks follow."""
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-build-isolation",
        "--no-deps",
        "--no-index",
    ]
    result = subprocess.run(
        [*pip, "--target", tmp_path, BUILD_TOOLS.parent],
        env=os.environ | {"CC": "no-compiler"},
        capture_output=True,
        text=True,
    )
    said = (result.stdout + result.stderr).partition("[end of output]")[0].strip().splitlines()
    assert result.returncode == 1
    assert "cannot be built without a C++ compiler; on Debian 12, run:" in said[-1]
    assert "Traceback" not in result.stderr


@pytest.fixture
def choose(tools, tmp_path):
    """Runs `build_tools/bazel --choose` in a checkout of its own, with some programs more."""
    checkout = tmp_path / "checkout"
    (checkout / "build_tools").mkdir(parents=True)
    for name in ("build_tools/bazel", ".bazelversion"):
        (checkout / name).write_bytes((BUILD_TOOLS.parent / name).read_bytes())
    (checkout / "build_tools" / "bazel").chmod(0o755)

    def run(**programs):
        tools(*programs)
        for name, script in programs.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", "DEBIAN_BAZEL": NOWHERE}
        command = [checkout / "build_tools" / "bazel", "--choose"]
        result = subprocess.run(command, env=environ, capture_output=True, text=True)
        chosen = checkout / ".build" / "bazel-command"
        return result, chosen.read_text().strip() if chosen.exists() else ""

    return run


NPM = """
while [ "$1" != --prefix ]; do shift; done
mkdir -p "$2/node_modules/.bin"
printf '#!/bin/sh\\nexit %s\\n' {code} >"$2/node_modules/.bin/bazelisk"
chmod +x "$2/node_modules/.bin/bazelisk"
"""


def test_bazelisk_comes_from_npm(choose, tmp_path):
    result, chosen = choose(npm=NPM.format(code=0), bazelisk="exit 1")
    assert result.returncode == 0, result.stderr
    assert chosen == str(tmp_path / "checkout/.build/bazelisk/node_modules/.bin/bazelisk")


@pytest.mark.parametrize("npm", ["exit 1", NPM.format(code=1)])
def test_a_bazelisk_that_cannot_fetch_is_named(choose, npm):
    result, chosen = choose(npm=npm)
    assert result.returncode == 2 and chosen == ""
    (line,) = result.stderr.splitlines()
    assert "without Bazel 4.2.3" in line and "apt-get install bazel-bootstrap" in line


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


def test_everything_that_is_missing_is_named_at_once(tmp_path):
    """Before anything else is installed, where neither root nor sudo is there."""
    tools, root = tmp_path / "tools", tmp_path / "checkout"
    shutil.copytree(BUILD_TOOLS, root / "build_tools", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(BUILD_TOOLS.parent / ".bazelversion", root)
    tools.mkdir()
    for name in ("bash", "cat", "dirname", "env", "grep", "mkdir"):
        (tools / name).symlink_to(shutil.which(name))
    for name, line in {
        "id": "echo 1000",
        "dpkg-query": "",
        "apt-get": "",
        "python3": "exit 1",
    }.items():
        (tools / name).write_text(f"#!{shutil.which('bash')}\n{line}\n")
        (tools / name).chmod(0o755)
    environ = {"PATH": str(tools), "DEBIAN_BAZEL": NOWHERE}
    setup = [root / "build_tools/setup.sh", "system"]
    result = subprocess.run(setup, env=environ, capture_output=True, text=True)
    packages = "binutils g++ libgtest-dev python3-venv bazel-bootstrap"
    command = f"apt-get update && apt-get install -y --no-install-recommends {packages}"
    assert (result.returncode, result.stderr) == (2, f"setup: as root, run: {command}\n")
    assert "takes about 8 minutes" in result.stdout


def test_the_tests_of_other_versions_of_tensorflow_are_there():
    (names,) = re.findall(
        r"^tests=\(([^)]*)", (BUILD_TOOLS / "test_tensorflow.sh").read_text(), re.M
    )
    folder = BUILD_TOOLS.parent / "tests" / "python"
    assert len(names.split()) > 5 and all((folder / name).exists() for name in names.split())
