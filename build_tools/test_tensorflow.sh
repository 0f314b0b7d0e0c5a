#!/bin/bash
# test_tensorflow.sh VERSION [KERAS]: builds the package against a minor of TensorFlow, such as 2.19
# (2 is the newest that there is), installs it beside that TensorFlow and that Keras, or the newest,
# into .build/tensorflow-2.19, and runs there the Python tests of what knows TensorFlow: its C++
# interface, its private names, its graphs, SavedModels and both Keras.
# The checkout's own library stays; $PYTHON must be one that this TensorFlow supports.
set -eu -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=${1:?usage: test_tensorflow.sh VERSION [KERAS]}
keras=${2:-3.*}
export VENV=.build/tensorflow-$version
wheels=.build/wheel-tensorflow-$version
tests=(test_native.py graph ops gradients targets layers test_callbacks.py test_enable.py saved_model
  rewriter/patterns)

build_tools/setup.sh system
[ -x "$VENV/bin/pip" ] || build_tools/setup.sh venv
build_tools/setup.sh install "tensorflow==$version.*" "tf_keras==$version.*" "keras==$keras" \
  -r requirements-tensorflow.txt
printf '==> C++ library, package and tests against TensorFlow %s\n' "$version"
rm -rf "$wheels"
"$VENV/bin/python" -m pip -q wheel --no-build-isolation --no-deps --wheel-dir "$wheels" .
build_tools/setup.sh install --no-deps --force-reinstall "$wheels"/*.whl
# The package of the environment, not that of the checkout: neither pytest nor the processes that
# tests start may have the checkout on their path.
export PYTHON_BIN_PATH=$PWD/$VENV/bin/python
root=$PWD
cd "$VENV"
bin/pytest -q -p no:cacheprovider -c "$root/pyproject.toml" --rootdir "$root" \
  "${tests[@]/#/$root/tests/python/}"
