#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Verilates one module and packs it, with its C interface, into DIR/NAME.a and DIR/NAME_dut.h.
#
#   verilate.sh NAME TOP DIR SOURCES... -- FLAGS...
#
# NAME names the model (several models of one module with different parameters have different names). The first source is the
# one with the module TOP; modules it instantiates are found by name in the folders of $RTL_DIRS.
# Environment: VERILATOR, MODEL_CXX, OBJCACHE, RTL_DIRS, RTL_INCLUDES, RTL_PKGS, WAIVERS, TRACE=1,
# OPT (for the C++, default -O2), MODEL_JOBS (compilers at once, default 1).
set -eu
name=$1 top=$2 dir=$3
shift 3
sources=
while [ $# -gt 0 ] && [ "$1" != -- ]; do sources="$sources $1"; shift; done
[ $# -eq 0 ] || shift

for d in $RTL_DIRS; do set -- "$@" -y "$d"; done
for d in $RTL_INCLUDES; do set -- "$@" "-I$d"; done
[ -z "${TRACE:-}" ] || set -- "$@" --trace-fst

mkdir -p "$dir/model"
# shellcheck disable=SC2086  # lists of words
# SYNCASYNCNET: the asynchronous reset is also read by "disable iff" of every assertion. The lint, without --assert, keeps it.
${VERILATOR:-verilator} --cc --assert -Wall -Wno-SYNCASYNCNET -O3 --Mdir "$dir/model" --prefix "V$name" --top-module "$top" "$@" \
  $WAIVERS ${RTL_PKGS:-} $sources >"$dir/model/verilator.log"
MAKEFLAGS='' make -s -j "${MODEL_JOBS:-1}" -C "$dir/model" -f "V$name.mk" CXX="${MODEL_CXX:-c++}" OBJCACHE="${OBJCACHE:-}" \
  OPT_FAST="${OPT:--O2}" OPT_SLOW=-O0 OPT_GLOBAL=-O2 "V${name}__ALL.a" >"$dir/model/make.log"
awk -v name="$name" -v prefix="V$name" -v dir="$dir" -v trace="${TRACE:-0}" -f "$(dirname "$0")/vshim.awk" "$dir/model/V$name.h"
# shellcheck disable=SC2086
${OBJCACHE:-} ${MODEL_CXX:-c++} -std=gnu++17 -faligned-new ${OPT:--O2} -w -I"$dir/model" -I"$dir" -isystem "$VERILATOR_INC" \
  -c -o "$dir/${name}_dut.o" "$dir/${name}_dut.cpp"
rm -f "$dir/$name.a.new"
cp "$dir/model/V${name}__ALL.a" "$dir/$name.a.new"
ar rs "$dir/$name.a.new" "$dir/${name}_dut.o" 2>/dev/null
mv "$dir/$name.a.new" "$dir/$name.a"
# What was read, for make: the model is built again when any of it changes.
sed -n "s|^.* : |$dir/$name.a: |p" "$dir/model/V${name}__ver.d" >"$dir/$name.d"
sed -n 's|.*: ||p' "$dir/$name.d" | tr ' ' '\n' | sed '/./s/$/:/' >>"$dir/$name.d"
