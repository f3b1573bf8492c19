#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Copies of RTL files with faults that can be switched on one at a time while the model runs (ct_mutant::which, see
# ct_core_watch.sv): what the fault campaign has to notice. tb/system/fault_mutants.c says which is for whom.
#
#   mutants.sh DIR
set -eu
dir=$1
mkdir -p "$dir"
rm -f "$dir"/*.part "$dir"/*.new

mutate() {  # FILE LINE REPLACEMENT: exactly one line of the file must be LINE (leading spaces aside)
  out=$dir/$(basename "$1")
  [ -f "$out.part" ] || cp "$1" "$out.part"
  LINE=$2 NEW=$3 awk '
    { text = $0; sub(/^ */, "", text) }
    text == ENVIRON["LINE"] { print ENVIRON["NEW"]; n++; next }
    { print }
    END { if (n != 1) { print FILENAME ": " n + 0 " lines are: " ENVIRON["LINE"] > "/dev/stderr"; exit 1 } }' "$out.part" >"$out.new"
  mv "$out.new" "$out.part"
}

# 1 a parity bit that is never checked; 2 a read port (VL) that reports nothing
mutate rtl/spm/ct_spm.sv "assign bad[p] = parity(data_q[127:0], data_q[135:128]) != data_q[143:136];" \
  "    assign bad[p] = (p != 4 || ct_mutant::which != 8'd2) && ((parity(data_q[127:0], data_q[135:128]) ^ data_q[143:136]) & (ct_mutant::which == 8'd1 ? 8'hf7 : 8'hff)) != 8'd0;"
# 3 loads, 4 VL and VS may leave the scratchpad window; 5 loads and stores may leave the DRAM windows
mutate rtl/dma/ct_dma_ld.sv \
  "assign w_out          = w_v_q && !drop[w_ctx_q] && w_rel_q >= (w_ctx_q ? spm_size_i[SpmW +: SpmW] : spm_size_i[0 +: SpmW]);" \
  "  assign w_out          = w_v_q && !drop[w_ctx_q] && ct_mutant::which != 8'd3 && w_rel_q >= (w_ctx_q ? spm_size_i[SpmW +: SpmW] : spm_size_i[0 +: SpmW]);"
mutate rtl/vpu/ct_vpu_front.sv "assign bad_o = gnt[1] ? bad[1] : bad[0];" \
  "    assign bad_o = (gnt[1] ? bad[1] : bad[0]) && ct_mutant::which != 8'd4;"
mutate rtl/dma/ct_dma_seq.sv "assign outside = cut_addr_q < base_i || cut_end_q > {1'b0, limit_i};" \
  "  assign outside = (cut_addr_q < base_i || cut_end_q > {1'b0, limit_i}) && ct_mutant::which != 8'd5;"
# 6 a compressed store encodes words whose parity is wrong; 7 nobody looks whether the bytes of a group fold to 0
mutate rtl/dma/ct_act_st.sv "assign w_bad          = come_q[1] && spm_rd_perr_i && !clear;" \
  "  assign w_bad          = come_q[1] && spm_rd_perr_i && !clear && ct_mutant::which != 8'd6;"
mutate rtl/dma/ct_act_dec.sv \
  "assign bad   = short || (ready && (long || (last && wrong) || (first && bits[9:8] != tiles) || (phase_q == 5'd0 && head[36:33] > 4'd8)));" \
  "  assign bad   = short || (ready && (long || (last && wrong && ct_mutant::which != 8'd7) || (first && bits[9:8] != tiles) || (phase_q == 5'd0 && head[36:33] > 4'd8)));"

for f in "$dir"/*.part; do mv "$f" "${f%.part}"; done
