#!/bin/bash
# setup.sh system|java|venv|install|buildifier ...: the steps that turn a bare Debian into one that
# builds and tests this project. Each does only what is missing; the Makefile calls them in order.
set -eu -o pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
venv=${VENV:-.venv}
log=.build/setup.log

say() { printf '==> %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 2; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done
}

# Reads APT::Status-Fd lines ("pmstatus:package:percent:text"), prints every tenth per cent.
apt_progress() {
  awk -F: '$1 ~ /^(dl|pm)status$/ {
    phase = $1 == "dlstatus" ? "downloading" : "installing"
    step = int($3 / 10) * 10
    if (phase != last_phase || step > last_step) {
      printf "    %s %3d %%\n", phase, step
      fflush()
      last_phase = phase; last_step = step
    }
  }'
}

install_packages() {
  [ $# -gt 0 ] || return 0
  command -v apt-get >/dev/null || fail "needs g++, GoogleTest and Bazel; on Debian: $*"
  [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null ||
    fail "as root, run: apt-get update && apt-get install -y --no-install-recommends $*"
  say "Debian packages: $*"
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o Dpkg::Use-Pty=0 -o APT::Status-Fd=3)
  # Only the progress comes back; sudo would not let descriptor 3 through.
  local logged='exec "$@" 3>&1 >>"$0" 2>&1'
  { as_root bash -c "$logged" "$log" "${apt[@]}" update &&
    as_root bash -c "$logged" "$log" "${apt[@]}" install --no-install-recommends "$@"; } |
    apt_progress || { tail -n 8 "$log" >&2; fail "apt-get failed; all it said is in $log"; }
}

# First of all, and all at once: without root nothing else should have been done in vain.
system() {
  mkdir -p .build
  say "The first run takes about 8 minutes on two cores, 5 of them compiling: Debian packages, Python's, the C++ library, then what you asked for"
  local lacking=()
  if command -v dpkg-query >/dev/null; then
    # shellcheck disable=SC2046
    mapfile -t lacking < <(missing_packages $(grep -v '^#' build_tools/debian-packages.txt))
  fi
  "${PYTHON:-python3}" -c 'import ensurepip' 2>/dev/null || lacking+=(python3-venv)
  build_tools/bazel --choose 2>/dev/null || lacking+=(bazel-bootstrap)
  install_packages "${lacking[@]}"
  build_tools/bazel --choose
  say "Bazel: $(cat .build/bazel-command)"
}

# For Spark, which needs 17 or newer.
java_runtime() {
  command -v "${JAVA_HOME:+$JAVA_HOME/bin/}java" >/dev/null || install_packages openjdk-17-jre-headless
}

make_venv() {
  say "Python environment: $venv"
  "${PYTHON:-python3}" -m venv "$venv" || fail "python3 -m venv failed; on Debian: apt-get install python3-venv"
}

# pip draws its own progress on a terminal; elsewhere a line a download is enough.
install() {
  local pip=("$venv/bin/python" -m pip --disable-pip-version-check install "$@")
  say "pip install $*"
  if [ -t 1 ]; then
    "${pip[@]}"
  else
    "${pip[@]}" | sed -unE 's/^ *Downloading ([^ ]*).*(\(.*\)).*/    \1 \2/p; s/^(Installing collected|Building|Successfully).*/    \1 .../p'
  fi
}

# npm trusts what the system trusts.
buildifier() {
  local prefix=$venv/buildifier npm
  npm=$(command -v npm || echo "$PWD/$venv/bin/npm")
  say "buildifier $1"
  NODE_EXTRA_CA_CERTS=${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt} \
    PATH="$PWD/$venv/bin:$PATH" "$npm" install --silent --no-fund --no-audit --prefix "$prefix" "@bazel/buildifier@$1" ||
    say "buildifier cannot be had from npm: BUILD files stay unchecked"
}

step=${1:?usage: setup.sh system|java|venv|install|buildifier}
shift
case $step in
  system) system ;;
  java) java_runtime ;;
  venv) make_venv ;;
  install) install "$@" ;;
  buildifier) buildifier "$@" ;;
  *) fail "no step '$step'" ;;
esac
