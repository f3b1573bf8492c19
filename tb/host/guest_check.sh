# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# What the first process of every guest reads, as /check.sh (scripts/guest.sh).

check() { # NAME COMMAND...
  name=$1
  shift
  if "$@" >out 2>&1; then echo "ok - $name ($(cut -d' ' -f1 /proc/uptime) s)"; else
    sed 's/^/# /' out
    echo "not ok - $name"
  fi
}
