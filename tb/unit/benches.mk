# SPDX-License-Identifier: Apache-2.0
#
# The unit benches, one line each; tb/harness/rules.mk says what the lines mean.

$(call dut,ct_fifo_d1,ct_fifo,rtl/prim/ct_fifo.sv,-GWidth=32 -GDepth=1)
$(call dut,ct_fifo_d4,ct_fifo,rtl/prim/ct_fifo.sv,-GWidth=32 -GDepth=4)
$(call dut,ct_fifo_d5,ct_fifo,rtl/prim/ct_fifo.sv,-GWidth=32 -GDepth=5)
$(call bench,test_fifo,ct_fifo_d1 ct_fifo_d4 ct_fifo_d5)
$(call dut,ct_async_fifo_d2,ct_async_fifo,rtl/prim/ct_async_fifo.sv,-GWidth=32 -GDepth=2)
$(call dut,ct_async_fifo_d8,ct_async_fifo,rtl/prim/ct_async_fifo.sv,-GWidth=32 -GDepth=8)
$(call dut,ct_async_fifo_s3,ct_async_fifo,rtl/prim/ct_async_fifo.sv,-GWidth=32 -GDepth=16 -GSyncStages=3)
$(call bench,test_async_fifo,ct_async_fifo_d2 ct_async_fifo_d8 ct_async_fifo_s3)
$(call unit_bench,test_skid,ct_skid,rtl/prim/ct_skid.sv,-GWidth=32)

# The arithmetic: 16 lanes, so that ten million pairs take a second or two.
FP_SRCS := tb/unit/lane_pipe.c tb/unit/fp_ref.c host/emu/ct_num.c
$(call dut,ct_fp_add,ct_fp_add,rtl/fp/ct_fp_add.sv,-GLanes=16)
$(call dut,ct_fp_mul,ct_fp_mul,rtl/fp/ct_fp_mul.sv,-GLanes=16)
$(call bench,test_fp,ct_fp_add ct_fp_mul,$(FP_SRCS))
$(call bench,test_num,,$(FP_SRCS))
$(call dut,ct_hbfp_quant,ct_hbfp_quant,rtl/fp/ct_hbfp_quant.sv,-GLanes=16)
$(call dut,ct_hbfp_dequant,ct_hbfp_dequant,rtl/fp/ct_hbfp_dequant.sv,-GLanes=16)
$(call dut,ct_fp_term,ct_fp_term,rtl/fp/ct_fp_term.sv,-GLanes=16)
$(call bench,test_quant,ct_hbfp_quant ct_hbfp_dequant ct_fp_term,$(FP_SRCS))
$(call dut,ct_fn,ct_fn,rtl/fp/ct_fn.sv,-GLanes=16)
$(call bench,test_fn,ct_fn,$(FP_SRCS) tb/unit/fn_check.c)
# Classes of the requesters, the last one's first: 0 inference, 1 a host, 3 training.
$(call dut,ct_arbiter,ct_arbiter,rtl/ctrl/ct_arbiter.sv)
$(call dut,ct_arbiter_n3,ct_arbiter,rtl/ctrl/ct_arbiter.sv,-GN=3 -GClasses=6\'d52)
$(call dut,ct_arbiter_n4,ct_arbiter,rtl/ctrl/ct_arbiter.sv,-GN=4 -GClasses=8\'d220)
$(call dut,ct_arbiter_n8,ct_arbiter,rtl/ctrl/ct_arbiter.sv,-GN=8 -GClasses=16\'d50740)
$(call bench,test_arbiter,ct_arbiter ct_arbiter_n3 ct_arbiter_n4 ct_arbiter_n8,host/lib/isa/ct_bound.c)
$(call dut,ct_spm_8,ct_spm,rtl/spm/ct_spm.sv,-GWords=1024 -GBanks=8)
$(call dut,ct_spm_4,ct_spm,rtl/spm/ct_spm.sv,-GWords=1024 -GBanks=4)
$(call dut,ct_spm_2,ct_spm,rtl/spm/ct_spm.sv,-GWords=1024 -GBanks=2)
$(call bench,test_spm,ct_spm_8 ct_spm_4 ct_spm_2)
$(call unit_bench,test_sem,ct_sem,rtl/ctrl/ct_sem.sv)
$(call unit_bench,test_batch,ct_batch,rtl/ctrl/ct_batch.sv)
$(call dut,ct_fetch,ct_fetch,rtl/ctrl/ct_fetch.sv,-GConv=1 -GCompress=1)
$(call bench,test_fetch,ct_fetch,host/emu/ct_emu_prog.c host/lib/isa/ct_cmd.c host/lib/isa/ct_exec.c)
$(call dut,ct_ctx,ct_ctx,rtl/ctrl/ct_ctx.sv,-GQueueDepth=4)
$(call bench,test_ctx,ct_ctx,host/lib/isa/ct_cmd.c)
$(call unit_bench,test_regs,ct_regs,rtl/ctrl/ct_regs.sv,-GSpmWords=8192 -GCols=8 -GVpuLanes=4 -GDramMib=64 -GBatcher=1)

# The MXU: all widths, both reader widths, with a multiplier a product and with two products in one, with walks and without.
$(call dut,ct_mxu_c16,ct_mxu,rtl/mxu/ct_mxu.sv,-GCols=16 -GVpuLanes=16 -GConv=1)
$(call dut,ct_mxu_c8,ct_mxu,rtl/mxu/ct_mxu.sv,-GCols=8 -GVpuLanes=4)
$(call dut,ct_mxu_c16p,ct_mxu,rtl/mxu/ct_mxu.sv,-GCols=16 -GVpuLanes=4 -GPackDsp=1)
$(call dut,ct_mxu_c8p,ct_mxu,rtl/mxu/ct_mxu.sv,-GCols=8 -GVpuLanes=16 -GPackDsp=1 -GConv=1)
$(call dut,ct_mxu_c4,ct_mxu,rtl/mxu/ct_mxu.sv,-GCols=4 -GVpuLanes=4 -GConv=1)
$(call dut,ct_mxu_c4w,ct_mxu,rtl/mxu/ct_mxu.sv,-GCols=4 -GVpuLanes=16)
$(call bench,test_mxu,ct_mxu_c16 ct_mxu_c8 ct_mxu_c16p ct_mxu_c8p ct_mxu_c4 ct_mxu_c4w,tb/unit/mxu_tb.c tb/unit/mxu_model.c host/emu/ct_num.c host/lib/isa/ct_walk.c host/lib/isa/ct_cmd.c)
$(call dut,ct_mxu_walk,ct_mxu_walk,rtl/mxu/ct_mxu_walk.sv)
$(call bench,test_mxu_walk,ct_mxu_walk,host/lib/isa/ct_walk.c host/lib/isa/ct_cmd.c)

# The functions over every input: a campaign of some ten minutes, not part of test-unit.
$(BUILD)/tb/fn_exhaustive: tb/unit/fn_exhaustive.c tb/unit/fn_check.c host/emu/ct_num.c tb/unit/fn_check.h rtl/fp/ct_fn_table.def
	$(call say,BENCH,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(CPPFLAGS) $(HOST_CPPFLAGS) $(TB_CPPFLAGS) -o $@ $(filter %.c,$^) -lm

# The vector unit, with both numbers of lanes; with 4, with one function and with four.
$(call dut,ct_vpu_16,ct_vpu,rtl/vpu/ct_vpu.sv,-GVpuLanes=16)
$(call dut,ct_vpu_4,ct_vpu,rtl/vpu/ct_vpu.sv,-GVpuLanes=4)
$(call dut,ct_vpu_4f,ct_vpu,rtl/vpu/ct_vpu.sv,-GVpuLanes=4 -GFnLanes=4)
$(call bench,test_vpu,ct_vpu_16 ct_vpu_4 ct_vpu_4f,tb/unit/vpu_bench.c tb/unit/vpu_gen.c tb/unit/vpu_model.c host/emu/ct_num.c host/lib/lower/ct_chain.c host/lib/isa/ct_bound.c)
$(call dut,ct_dma,ct_dma,rtl/dma/ct_dma.sv,-GGather=1)
$(call bench,test_dma,ct_dma,tb/unit/dma_bench.c host/transports/sim/ct_axi_mem.c)
# What is chained is as in ct_dma: the first client.
$(call dut,ct_dma_rd_n1,ct_dma_rd,rtl/dma/ct_dma_rd.sv,-GClients=1 -GTagW=12 -GEndW=7)
$(call dut,ct_dma_rd_n2,ct_dma_rd,rtl/dma/ct_dma_rd.sv,-GClients=2 -GTagW=12 -GEndW=7 -GChained=2\'d1)
$(call dut,ct_dma_rd_n3,ct_dma_rd,rtl/dma/ct_dma_rd.sv,-GClients=3 -GTagW=12 -GEndW=7 -GChained=3\'d1)
$(call bench,test_dma_rd,ct_dma_rd_n1 ct_dma_rd_n2 ct_dma_rd_n3,host/transports/sim/ct_axi_mem.c)
$(call dut,ct_dma_wr_n1,ct_dma_wr,rtl/dma/ct_dma_wr.sv,-GClients=1 -GAtW=5 -GTagW=10 -GEndW=7)
$(call dut,ct_dma_wr_n2,ct_dma_wr,rtl/dma/ct_dma_wr.sv,-GClients=2 -GAtW=5 -GTagW=10 -GEndW=7)
$(call dut,ct_dma_wr_n3,ct_dma_wr,rtl/dma/ct_dma_wr.sv,-GClients=3 -GAtW=5 -GTagW=10 -GEndW=7)
$(call bench,test_dma_wr,ct_dma_wr_n1 ct_dma_wr_n2 ct_dma_wr_n3,host/transports/sim/ct_axi_mem.c)
# Compressed activations.
$(call dut,ct_act_enc,ct_act_enc,rtl/dma/ct_act_enc.sv)
$(call dut,ct_act_dec,ct_act_dec,rtl/dma/ct_act_dec.sv)
$(call bench,test_act_enc,ct_act_enc,tb/unit/act_gen.c host/emu/ct_act.c host/emu/ct_num.c)
$(call bench,test_act_dec,ct_act_dec,tb/unit/act_gen.c host/emu/ct_act.c host/emu/ct_num.c)
$(call dut,ct_act_pages,ct_act_pages,rtl/dma/ct_act_pages.sv,-GPages=32)
$(call bench,test_act_pages,ct_act_pages,host/emu/ct_act_pages.c)
$(call dut,ct_act_moves,ct_act,rtl/dma/ct_act.sv,-GPageW=5)
$(call bench,test_act_moves,ct_act_moves,tb/unit/act_gen.c host/emu/ct_act.c host/emu/ct_act_pages.c host/emu/ct_num.c)
$(call unit_bench,test_act_walk,ct_act_walk,rtl/dma/ct_act_walk.sv)
$(call bench,test_axi_mem,,host/transports/sim/ct_axi_mem.c)

# The SDRAM controller: at three clocks, one of them with CAS latency 2 and a register more on the way of read data.
SDRAM_SRCS := tb/unit/sdram_bench.c host/transports/sim/ct_sdram_chip.c
$(call dut,ct_sdram_100,ct_sdram,rtl/mem/ct_sdram.sv)
$(call dut,ct_sdram_133,ct_sdram,rtl/mem/ct_sdram.sv,-GClockHz=133000000)
$(call dut,ct_sdram_50,ct_sdram,rtl/mem/ct_sdram.sv,-GClockHz=50000000 -GCasLatency=2 -GReadDelay=1)
# Broken copies, which the bench must find out: $(call broken,NAME,TOP,FILE,SED,FLAGS), the model NAME of TOP with FILE changed by sed.
broken = $(eval $(call broken_rules,$(strip $(1)),$(strip $(2)),$(strip $(3)),$(4)))$(call dut,$(1),$(2),$(filter-out $(3),$(wildcard rtl/*/$(strip $(2)).sv)) $(BUILD)/broken/$(strip $(1))/$(notdir $(3)),-Wno-UNUSEDSIGNAL $(5))
define broken_rules
$(BUILD)/broken/$(1)/$(notdir $(3)): $(3)
	$$(Q)mkdir -p $$(@D)
	$$(Q)sed '$(4)' $(3) >$$@
	$$(Q)! cmp -s $(3) $$@ || { echo "the broken copy $(1) is none" >&2; exit 1; }
endef
$(call broken,ct_sdram_rcd,ct_sdram,rtl/mem/ct_sdram_seq.sv,s/5.(Rcd - 1)/5'"'"'(Rcd - 2)/)
$(call broken,ct_sdram_gap,ct_sdram,rtl/mem/ct_sdram_seq.sv,s/Turn    = 9 +/Turn    = 8 +/)
$(call broken,ct_sdram_wr,ct_sdram,rtl/mem/ct_sdram_seq.sv,s/KeepWr  = 7 +/KeepWr  = 6 +/)
$(call broken,ct_sdram_wr_ns,ct_sdram,rtl/mem/ct_sdram_seq.sv,s/most(cycles(WrNs)$(comma) 2)/cycles(WrNs)/,-GClockHz=50000000 -GCasLatency=2 -GReadDelay=1)
$(call broken,ct_sdram_row,ct_sdram,rtl/mem/ct_sdram_seq.sv,s/!hit/1'"'"'b0/)
$(call broken,ct_sdram_late,ct_sdram,rtl/mem/ct_sdram_seq.sv,s/1000 \* 64/1000 * 65/)
$(call broken,ct_sdram_strobe,ct_sdram,rtl/mem/ct_sdram.sv,s/~w_beat.143:130./14'"'"'d0/)
$(call broken,ct_sdram_dqm,ct_sdram,rtl/mem/ct_sdram.sv,s/5 + CasLatency/4 + CasLatency/)
$(call broken,ct_sdram_wild,ct_sdram,rtl/mem/ct_sdram.sv,s/ | {2{err_q}}//)
$(call broken,ct_sdram_room,ct_sdram,rtl/mem/ct_sdram.sv,s/(room_q > .*);/(room_q != 0);/)
$(call broken,ct_sdram_turn,ct_sdram,rtl/mem/ct_sdram.sv,s/ \&\& !(wr_can \&\& turn_q)//;s/!(rd_can \&\& !turn_q)/!rd_can/)
SDRAM_BROKEN := $(addprefix ct_sdram_,rcd gap wr wr_ns row late strobe dqm wild room turn)
$(call bench,test_sdram,ct_sdram_100 ct_sdram_133 ct_sdram_50 $(SDRAM_BROKEN),$(SDRAM_SRCS))

# USB: the pins of the chip, and the bridge against the model of docs/usb.md in C.
$(call dut,ct_ft245_8,ct_ft245,rtl/usb/ct_ft245.sv)
$(call dut,ct_ft245_16,ct_ft245,rtl/usb/ct_ft245.sv,-GWidth=16)
$(call dut,ct_ft245_32,ct_ft245,rtl/usb/ct_ft245.sv,-GWidth=32)
$(call bench,test_ft245,ct_ft245_8 ct_ft245_16 ct_ft245_32)
$(call dut,ct_usb_bridge,ct_usb_bridge,rtl/usb/ct_usb_bridge.sv,-GTimeoutLog2=10)
$(call bench,test_usb_bridge,ct_usb_bridge,tb/unit/usb_rig.c tb/usb/ct_usb_board.c host/transports/frames/ct_usb_frame.c host/transports/sim/ct_axi_mem.c,-lz)
$(BUILD)/tb/test_usb_bridge: private TB_CPPFLAGS += -Itb/usb
$(call unit_bench,test_axi_mux,ct_axi_mux,rtl/mem/ct_axi_mux.sv)

# The serial line, at clocks that boards have; broken copies sample each bit a cycle later, or earlier.
$(call dut,ct_uart_25,ct_uart,rtl/boards/ct_uart.sv,-GClockHz=25000000)
$(call dut,ct_uart_35,ct_uart,rtl/boards/ct_uart.sv,-GClockHz=35000000)
$(call dut,ct_uart_40,ct_uart,rtl/boards/ct_uart.sv,-GClockHz=40000000)
$(call broken,ct_uart_late,ct_uart,rtl/boards/ct_uart.sv,s/8000 + Step/8000/,-GClockHz=25000000)
$(call broken,ct_uart_early,ct_uart,rtl/boards/ct_uart.sv,s/8000 + Step/8000 + Step + Step/,-GClockHz=35000000)
$(call bench,test_uart,ct_uart_25 ct_uart_35 ct_uart_40 ct_uart_late ct_uart_early)

# The lamps, at clocks whose sixteenths of a second are short: the shortest there is, one of an odd number of cycles, one of a board's shape.
$(call dut,ct_leds_32,ct_leds,rtl/boards/ct_leds.sv,-GClockHz=32 -GLamps=1)
$(call dut,ct_leds_1000,ct_leds,rtl/boards/ct_leds.sv,-GClockHz=1000 -GLamps=7)
$(call dut,ct_leds_1600,ct_leds,rtl/boards/ct_leds.sv,-GClockHz=1600)
$(call bench,test_leds,ct_leds_32 ct_leds_1000 ct_leds_1600)
