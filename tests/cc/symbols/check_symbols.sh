#!/bin/bash
# check_symbols.sh ARCHIVE...: fails when a per-ISA archive (lib..._<isa>.a or
# .pic.a) could lend the linker code compiled with its flags. Of what an archive
# defines, only its tables bd::<isa>::k...Kernels may be global;
# nothing may be weak or unique, and nothing may run when it is loaded.
set -eu -o pipefail
[ $# -gt 0 ] || { echo "no archives to check" >&2; exit 2; }

failed=0
for archive in "$@"; do
  isa=$(sed -E 's/^.*_(generic|avx2|avx2_vnni|avx512|avx512_[a-z0-9]+)(\.pic)?\.a$/\1/' <<<"$archive")
  # nm: [value] type name. Upper case is global; W, V, w, v weak; u unique.
  defined=$(nm --demangle "$archive" | sed -nE 's/^[0-9a-f]{16} ([A-Za-z]) (.*)$/\1 \2/p')
  table="^[DR] bd::${isa}::k[A-Za-z0-9]+Kernels$"
  tables=$(grep -cE "$table" <<<"$defined" || true)
  leaks=$(grep -E '^[A-ZuvwiN] |_GLOBAL__sub_I_' <<<"$defined" |
    grep -vE "$table" || true)
  if [ -n "$leaks" ]; then
    echo "$archive: defines symbols beside its tables:"
    sed 's/^/    /' <<<"$leaks"
    failed=1
  fi
  if [ "$tables" -eq 0 ]; then
    echo "$archive: defines no table bd::${isa}::k...Kernels"
    failed=1
  fi
done
[ "$failed" -eq 0 ] && echo "$# archives: tables only"
exit "$failed"
