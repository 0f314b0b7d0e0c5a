"""The part of the packaging that pyproject.toml cannot say: the library is built by Bazel."""

import runpy
import shutil
import sys
from pathlib import Path

from setuptools import Command, Distribution, find_namespace_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build import build

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "build_tools"))

import native  # noqa: E402

VERSION = runpy.run_path(str(ROOT / "python" / "version.py"))["VERSION"]


def version() -> str:
    """The version with the TensorFlow minor that the library is built against: 0.2.0+tf2.21."""
    try:
        tensorflow, _ = native.tensorflow()
    except RuntimeError:
        return VERSION  # The build says why it cannot go on.
    return f"{VERSION}+tf{'.'.join(tensorflow.split('.')[:2])}"


class build_native(Command):
    """Builds libtf_blockdnn.so into the package: of the wheel, or of the checkout (-e)."""

    description = "build libtf_blockdnn.so with Bazel"
    user_options = []
    editable_mode = False

    def initialize_options(self):
        self.build_lib = None

    def finalize_options(self):
        self.set_undefined_options("build", ("build_lib", "build_lib"))

    def run(self):
        if self.editable_mode:
            native.build(ROOT / native.FOLDER)
        else:
            lib = Path(self.build_lib)
            native.build(lib / native.FOLDER, lib / native.PLUGINS)

    def get_outputs(self):
        return []

    def get_output_mapping(self):
        return {}

    def get_source_files(self):
        return []


class BuildWithNative(build):
    sub_commands = [*build.sub_commands, ("build_native", None)]

    def initialize_options(self):
        super().initialize_options()
        self.build_base = str(ROOT / ".build" / "setuptools")

    def run(self):
        # What an earlier build left, and the sources no longer have, stays out of the wheel.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class PlatformWheel(bdist_wheel):
    """Any Python 3, this platform: the library is loaded by TensorFlow, not by Python."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])

    def run(self):
        # A build that was interrupted leaves its folder behind, which would stop this one.
        shutil.rmtree(self.bdist_dir, ignore_errors=True)
        super().run()


class NativeDistribution(Distribution):
    def has_ext_modules(self):
        return True


python_folders = find_namespace_packages("python", exclude=["__pycache__", "*.__pycache__"])

setup(
    version=version(),
    packages=[
        "tf_blockdnn",
        "tf_blockdnn.python",
        *(f"tf_blockdnn.python.{folder}" for folder in python_folders),
    ],
    package_dir={"tf_blockdnn": "tf_blockdnn", "tf_blockdnn.python": "python"},
    package_data={"tf_blockdnn": ["py.typed"]},
    include_package_data=False,
    cmdclass={
        "bdist_wheel": PlatformWheel,
        "build": BuildWithNative,
        "build_native": build_native,
    },
    distclass=NativeDistribution,
)
