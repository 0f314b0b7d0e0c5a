#!/bin/bash
# bench.sh: every Google Benchmark binary, then the models.
set -eu -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build_tools/bazel build //benchmarks/...
for benchmark in .build/bazel-bin/benchmarks/cc/*_bench; do
  "$benchmark"
done
.venv/bin/python benchmarks/run_models.py
