# SPDX-License-Identifier: Apache-2.0
#
# The RTL: the one list that the benches, the lint, the Yosys checks, synthesis and coltrain.core use.
# A file put into one of these folders belongs to it (one module per file, the file named after the module). `make lint` checks
# that coltrain.core lists the same files, in the same order.

# Folders in which a tool finds a module by its name.
RTL_DIRS     := rtl/prim rtl/fp rtl/mxu rtl/spm rtl/vpu rtl/dma rtl/mem rtl/usb rtl/ctrl rtl/boards rtl
# Folders for `include: written by hand, and generated from the tables.
RTL_INCLUDES := rtl/include $(BUILD)/gen
# Packages: read before everything else.
# (The packages include tables made by host/spec/ct_specgen.c, so they count once that is here.)
RTL_PKGS     := $(if $(wildcard host/spec/ct_specgen.c),$(sort $(wildcard rtl/pkg/*_pkg.sv)))
RTL_MODULES  := $(filter-out $(RTL_PKGS),$(foreach d,$(RTL_DIRS),$(sort $(wildcard $(d)/*.sv))))
RTL          := $(RTL_PKGS) $(RTL_MODULES)
RTL_HEADERS  := $(sort $(wildcard rtl/include/*.svh rtl/include/*.vh))
WAIVERS      := rtl/waivers.vlt

# Parameter values that every tool must refuse at elaboration: $(call refuses,MODULE,Parameter=Value ...), one combination a line.
refuses = $(eval REFUSED += $(1)/$(subst $(space),/,$(strip $(2))))

$(call refuses,ct_fifo,Depth=0)
$(call refuses,ct_fifo,Width=0)
$(call refuses,ct_async_fifo,Depth=6)
$(call refuses,ct_async_fifo,Depth=1)
$(call refuses,ct_async_fifo,SyncStages=1)
$(call refuses,ct_skid,Width=0)
$(call refuses,ct_reset,Stages=1)
$(call refuses,ct_sync,Stages=1)
$(call refuses,ct_spm,Words=64)
$(call refuses,ct_spm,Words=1000)
$(call refuses,ct_spm,Banks=1)
$(call refuses,ct_fp_add,Lanes=0)
$(call refuses,ct_fp_mul,Lanes=0)
$(call refuses,ct_fp_term,Lanes=0)
$(call refuses,ct_fn,Lanes=0)
$(call refuses,ct_hbfp_quant,Lanes=0)
$(call refuses,ct_hbfp_dequant,Lanes=0)
$(call refuses,ct_ctx,QueueDepth=1)
$(call refuses,ct_core,Cols=2)
$(call refuses,ct_core,VpuLanes=8)
$(call refuses,ct_core,SpmWords=1000)
$(call refuses,ct_core,DramMib=0)
$(call refuses,ct_mxu,Cols=12)
$(call refuses,ct_mxu,VpuLanes=8)
$(call refuses,ct_vpu,VpuLanes=8)
$(call refuses,ct_vpu,FnLanes=1)
$(call refuses,ct_vpu,VpuLanes=4 FnLanes=2)
$(call refuses,ct_dma_rd,Clients=0)
$(call refuses,ct_dma_rd,Clients=9)
$(call refuses,ct_dma_wr,Clients=0)
$(call refuses,ct_dma_wr,Clients=9)
$(call refuses,ct_act_pages,Pages=100)
$(call refuses,ct_sdram,CasLatency=4)
$(call refuses,ct_sdram,MaxBeats=33)
$(call refuses,ct_sdram,ReadDelay=4)
$(call refuses,ct_sdram,ClockHz=5000000)
$(call refuses,ct_sdram,RasNs=200)
$(call refuses,ct_sdram_seq,ColBits=11)
$(call refuses,ct_ft245,Width=9)
$(call refuses,ct_ft245,Turn=0)
$(call refuses,ct_ft245,Linger=0)
$(call refuses,ct_usb_bridge,TimeoutLog2=3)
$(call refuses,ct_sdram,IdW=0)
$(call refuses,ct_axi_mux,Patience=0)
$(call refuses,ct_axi_mux,Patience=16)
$(call refuses,ct_uart,ClockHz=20000000)
$(call refuses,ct_link,Quiet=1)
$(call refuses,ct_leds,Lamps=0)
