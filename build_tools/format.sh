#!/bin/bash
# format.sh check|fix: clang-format, buildifier and ruff over the sources under version control, and
# clang-tidy over what differs from the last commit, where it is installed: it takes half a minute a file.
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=$PWD/.venv/bin
buildifier=.venv/buildifier/node_modules/.bin/buildifier
# Rules of Bazel releases later than .bazelversion.
lint=(-lint=warn -warnings=-native-sh-test)
mode=${1:?usage: format.sh check|fix}

sources() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ ! -f "$f" ] || echo "$f"; done; }
mapfile -t cpp < <(sources '*.cc' '*.h')
mapfile -t starlark < <(sources '*.bzl' '*BUILD' 'WORKSPACE' '*/WORKSPACE')

# One line a file; clang-format itself prints three a change.
clang_format_check() {
  local file clean=0
  for file in "${cpp[@]}"; do
    "$bin/clang-format" --dry-run -Werror "$file" 2>/dev/null || { echo "Would reformat: $file"; clean=1; }
  done
  return "$clean"
}

clang_tidy_check() {
  local file clean=0
  for file in $(git diff --name-only --diff-filter=d HEAD -- 'cc/base/*.cc' 'cc/layout/*.cc' 'cc/core/*.cc' ':!*_kernel.cc'); do
    "$bin/clang-tidy" --quiet "$file" -- -std=c++17 -I. 2>/dev/null || clean=1
  done
  return "$clean"
}

status=0
run() { "$@" || status=1; }
if [ "$mode" = fix ]; then
  run "$bin/clang-format" -i "${cpp[@]}"
  run "$bin/ruff" check --fix .
  run "$bin/ruff" format .
  [ ! -x "$buildifier" ] || PATH="$bin:$PATH" run "$buildifier" -mode=fix "${lint[@]}" "${starlark[@]}"
else
  run clang_format_check
  [ ! -x "$bin/clang-tidy" ] || run clang_tidy_check
  run "$bin/ruff" check .
  run "$bin/ruff" format --check .
  if [ -x "$buildifier" ]; then
    PATH="$bin:$PATH" run "$buildifier" -mode=check "${lint[@]}" "${starlark[@]}"
  else
    echo "buildifier is not installed: BUILD files were not checked"
  fi
fi
[ "$status" -eq 0 ] || [ "$mode" = fix ] || echo "make format puts layout right."
exit "$status"
