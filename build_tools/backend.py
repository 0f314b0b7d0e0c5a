"""setuptools' PEP 517 backend, which asks for TensorFlow only where there is none.

The library is built against the TensorFlow that will load it. Where the environment to install
into has one, an isolated build uses that; otherwise it gets the pinned minor.
"""

import native
from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403


def _tensorflow_requirement() -> list[str]:
    return [] if native.users_tensorflow() else [native.TENSORFLOW_REQUIREMENT]


def get_requires_for_build_wheel(config_settings=None):
    return build_meta.get_requires_for_build_wheel(config_settings) + _tensorflow_requirement()


def get_requires_for_build_editable(config_settings=None):
    return build_meta.get_requires_for_build_editable(config_settings) + _tensorflow_requirement()
