"""Builds libtf_blockdnn.so with Bazel and puts it where the package loads it from.

Run by itself, it builds into the checkout's tf_blockdnn/_native/; with --stamp it prints what
identifies this Python's TensorFlow. setup.py builds into the wheel.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("tf_blockdnn", "_native")
TENSORFLOW_REQUIREMENT = "tensorflow==2.21.*"
# The oldest minor that the sources compile against; `make test-tensorflow` tries others.
OLDEST_TENSORFLOW = (2, 18)

# What TensorFlow loads when it is imported, in the same site-packages.
PLUGINS = Path("tensorflow-plugins")

_TARGETS = ("libtf_blockdnn.so", "_build_info.json")
_PLUGIN = "libtf_blockdnn_plugin.so"
_DEBIAN_BAZEL = (
    "/usr/bin/bazel-4"  # What Debian's bazel-bootstrap installs; build_tools/bazel uses it.
)
_PRINT_VERSION = (
    "from importlib.metadata import packages_distributions as found, version;"
    "print(version(found()['tensorflow'][0]))"
)


def _users_environ() -> dict[str, str]:
    """The environment without what build isolation adds to hide the user's packages."""
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONNOUSERSITE")}


def _version_seen_with(environ: dict[str, str]) -> str | None:
    command = [sys.executable, "-c", _PRINT_VERSION]
    found = subprocess.run(command, env=environ, cwd="/", capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else None


def users_tensorflow() -> str | None:
    """Version of the TensorFlow next to this Python, even when a build is isolated from it."""
    return _version_seen_with(_users_environ())


def tensorflow() -> tuple[str, dict[str, str]]:
    """Version of the TensorFlow to build against, and the environment that sees it.

    The user's own comes first: it is the one that will load the library. An isolated build
    without one has the pinned version in its own environment.
    """
    for environ in (_users_environ(), dict(os.environ)):
        version = _version_seen_with(environ)
        if version:
            check(version)
            return version, environ
    raise RuntimeError(f"no TensorFlow to build against: pip install '{TENSORFLOW_REQUIREMENT}'")


def check(version: str) -> None:
    """Raises RuntimeError with one line if that TensorFlow is too old to build against."""
    oldest = ".".join(map(str, OLDEST_TENSORFLOW))
    if tuple(map(int, version.split(".")[:2])) < OLDEST_TENSORFLOW:
        raise RuntimeError(
            f"tf_blockdnn needs TensorFlow {oldest} or newer, but {version} is installed: "
            f"pip install '{TENSORFLOW_REQUIREMENT}'"
        )


def missing(environ: Mapping[str, str] = os.environ, debian_bazel: str = _DEBIAN_BAZEL) -> str:
    """One line that names the tools that a build lacks, and how to get them; "" if it has all."""

    def found(*names: str) -> bool:
        return any(shutil.which(name, path=environ.get("PATH", os.defpath)) for name in names)

    lacking = {}
    if not found(environ.get("CC") or "gcc"):
        lacking["a C++ compiler"] = "g++"
    if not found(environ.get("BAZEL") or "bazelisk", debian_bazel, "npm"):
        version = (ROOT / ".bazelversion").read_text().strip()
        lacking[f"Bazel {version}"] = "bazel-bootstrap"
    if not lacking:
        return ""
    remedy = f"on Debian 12, run: sudo apt-get install {' '.join(lacking.values())}"
    if "bazel-bootstrap" in lacking.values():
        remedy += " (elsewhere bazelisk or npm will do: npm install -g @bazel/bazelisk)"
    return f"tf_blockdnn cannot be built without {' and '.join(lacking)}; {remedy}"


def build(folder: Path, plugins: Path | None = None) -> list[Path]:
    """Builds the library and its _build_info.json into `folder`; returns their paths.

    Where `plugins` is a folder, too, it gets what loads the library with TensorFlow.

    A file that did not change is left alone, one that did is replaced at once: a process that
    has the old library open keeps it.
    """
    if lack := missing():
        raise RuntimeError(lack)
    _, environ = tensorflow()
    environ["PYTHON_BIN_PATH"] = sys.executable
    bazel = ROOT / "build_tools" / "bazel"
    chosen = subprocess.run([bazel, "--choose"], env=environ, capture_output=True, text=True)
    if chosen.returncode:
        raise RuntimeError(chosen.stderr.strip().splitlines()[-1])
    placed_in = dict.fromkeys(_TARGETS, folder) | ({_PLUGIN: plugins} if plugins else {})
    labels = ["//cc:build_info", *(f"//cc:{name}" for name in placed_in if name.endswith(".so"))]
    subprocess.run([bazel, "build", *labels], env=environ, check=True)

    for name, target in placed_in.items():
        target.mkdir(parents=True, exist_ok=True)
        built, placed = ROOT / ".build" / "bazel-bin" / "cc" / name, target / name
        if placed.exists() and placed.read_bytes() == built.read_bytes():
            continue
        fresh = target / f".{name}.new"
        shutil.copyfile(built, fresh)
        fresh.chmod(0o755 if name.endswith(".so") else 0o644)
        fresh.replace(placed)
    return [target / name for name, target in placed_in.items()]


def _stamp() -> str:
    package = importlib.util.find_spec("tensorflow")
    if package is None or package.origin is None:
        return "none"
    return f"{package.origin}@{Path(package.origin).stat().st_mtime_ns}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--stamp", action="store_true")
    if parser.parse_args().stamp:
        print(_stamp())
        return 0
    try:
        build(ROOT / FOLDER)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
