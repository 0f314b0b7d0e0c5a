#!/bin/bash
# symbols_test.sh accepts|rejects ARCHIVE...: what check_symbols.sh has to say
# of the archives, each by itself.
set -eu
expected=$1
shift
check=$(dirname "$0")/check_symbols.sh
for archive in "$@"; do
  if bash "$check" "$archive"; then verdict=accepts; else verdict=rejects; fi
  [ "$verdict" = "$expected" ] || { echo "check_symbols.sh $verdict $archive"; exit 1; }
done
[ $# -gt 0 ]
