"""setuptools' PEP 517 backend, which asks for TensorFlow only where there is none.

The library is built against the TensorFlow that will load it. Where the environment to install
into has one, an isolated build uses that; otherwise it gets the pinned minor. A build that cannot
succeed, or did not, ends with one line that says what to do, not with a traceback.
"""

import subprocess

import native
from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403


def _requirements() -> list[str]:
    """Beside setuptools. Refuses here what would fail after minutes of downloads."""
    if lack := native.missing():
        raise SystemExit(lack)
    return [] if native.users_tensorflow() else [native.TENSORFLOW_REQUIREMENT]


def get_requires_for_build_wheel(config_settings=None):
    """What an isolated build needs; ends with one line where it cannot succeed."""
    return build_meta.get_requires_for_build_wheel(config_settings) + _requirements()


def get_requires_for_build_editable(config_settings=None):
    """The same for an editable installation."""
    return build_meta.get_requires_for_build_editable(config_settings) + _requirements()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds the wheel, or ends with one line."""
    return _build(build_meta.build_wheel, wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds an editable wheel, or ends with one line."""
    return _build(build_meta.build_editable, wheel_directory, config_settings, metadata_directory)


def _build(build, *arguments):
    try:
        return build(*arguments)
    except RuntimeError as error:  # No TensorFlow, or a tool is missing: native.py says which.
        raise SystemExit(str(error)) from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(
            f"tf_blockdnn: Bazel ended with exit code {error.returncode}; its first line with "
            "ERROR or error: above says why."
        ) from None
