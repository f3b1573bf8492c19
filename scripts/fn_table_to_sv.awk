# SPDX-License-Identifier: Apache-2.0
#
# rtl/fp/ct_fn_table.def to a Verilog header: one flat constant, row 0 in the lowest 64 bits.
#
#   awk -f scripts/fn_table_to_sv.awk rtl/fp/ct_fn_table.def > build/gen/ct_fn_table.svh
/^X\(/ { row[rows++] = substr($0, index($0, "0x") + 2, 16) }
END {
  printf "localparam logic [%d*64-1:0] FnTable = {\n", rows
  for (i = rows - 1; i >= 0; i--) printf "  64'h%s%s\n", row[i], i ? "," : ""
  print "};"
}
