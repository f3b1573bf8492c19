# SPDX-License-Identifier: Apache-2.0
#
# The unit benches, one line each; tb/harness/rules.mk says what the lines mean.

$(call dut,ct_fifo_d1,ct_fifo,rtl/prim/ct_fifo.sv,-GWidth=32 -GDepth=1)
$(call dut,ct_fifo_d4,ct_fifo,rtl/prim/ct_fifo.sv,-GWidth=32 -GDepth=4)
$(call dut,ct_fifo_d5,ct_fifo,rtl/prim/ct_fifo.sv,-GWidth=32 -GDepth=5)
$(call bench,test_fifo,ct_fifo_d1 ct_fifo_d4 ct_fifo_d5)
$(call unit_bench,test_skid,ct_skid,rtl/prim/ct_skid.sv,-GWidth=32)
