#!/bin/bash
# tiles_test.sh ARCHIVE...: the kernels of avx512_amx have all instructions of tiles that they are
# made of, with the operands of a product in their order (B, A, sums), and no other per-ISA kernel
# has one: the system saves tiles for those only that have asked.
set -eu -o pipefail

expected="ldtilecfg tdpbf16ps tdpbusd tileloadd tilerelease tilestored"
found_amx=0
for archive in "$@"; do
  code=$(objdump --disassemble --no-show-raw-insn "$archive" |
    sed -nE 's/^ *[0-9a-f]+:\s+((ldtilecfg|tile[a-z]+|tdp[a-z0-9]+)\b.*)/\1/p')
  names=$(cut -d' ' -f1 <<<"$code" | sort -u | xargs)
  case $archive in
  *_avx512_amx.a | *_avx512_amx.pic.a)
    found_amx=1
    [ "$names" = "$expected" ] || { echo "$archive: has $names; expected $expected"; exit 1; }
    if grep '^tdp' <<<"$code" | grep -vE '%tmm[67],%tmm[45],%tmm[0-3]$'; then
      echo "$archive: multiplies other tiles"
      exit 1
    fi
    ;;
  *) [ -z "$names" ] || { echo "$archive: has $names"; exit 1; } ;;
  esac
done
[ "$found_amx" = 1 ]
