#!/bin/bash
# test.sh: C++ tests, Python tests, format checks; all of them run, then a summary. Fails when one
# of them failed.
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
summary=""

stage() {
  local name=$1 start=$SECONDS result=passed
  shift
  printf '\n==> %s\n' "$name"
  "$@" || { result=FAILED; failed=1; }
  summary+=$(printf '  %-16s %-8s %4d s' "$name" "$result" $((SECONDS - start)))$'\n'
}

cpp_tests() { build_tools/bazel test --build_tests_only --test_tag_filters=-tsan_kernels //...; }

stage "C++ tests" cpp_tests
# Most of a test is tracing and rewriting, which one thread does: a process a CPU, whole files each.
stage "Python tests" .venv/bin/python -m pytest -q --maxfail=20 -n auto --dist loadfile --no-loadscope-reorder
stage "Format" build_tools/format.sh check

printf '\n%s' "$summary"
exit "$failed"
