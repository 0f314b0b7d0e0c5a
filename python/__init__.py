"""The Python sources of tf_blockdnn; the public face is `tf_blockdnn` itself."""

import importlib
import sys
from collections.abc import Callable, Mapping


def on_demand(package: str, homes: Mapping[str, str]) -> Callable:
    """The `__getattr__` of a package whose names load when somebody asks for them.

    To import the rewriter takes longer than to load a network and to call it.

    Args:
      homes: module, relative to the package -> the names that are its own, or that of itself.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def get(name: str):
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = importlib.import_module(home_of[name], package)
        value = home if home_of[name] == f".{name}" else getattr(home, name)
        setattr(sys.modules[package], name, value)
        return value

    return get
