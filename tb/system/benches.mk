# SPDX-License-Identifier: Apache-2.0
#
# The whole-core benches, one line each; tb/harness/rules.mk says what the lines mean.

# The supported cores as the simulator has them, but with assertions.
SAMPLED := host/transports/sim/ct_core_sampled.sv
$(call dut,ct_core,ct_core_sampled,$(SAMPLED))
$(call dut,ct_core_16x8,ct_core_sampled,$(SAMPLED),-GCols=8 -GVpuLanes=4 -GSpmWords=8192)
$(call dut,ct_core_16x4,ct_core_sampled,$(SAMPLED),$(SIM_PARAMS_ct_core_16x4))

# A core behind the simulator's transport, beside the emulator.
CORES     := ct_core ct_core_16x8 ct_core_16x4
CORE_SRCS := $(wildcard host/transports/sim/ct_sim.c host/transports/sim/ct_sim_16x8.c host/transports/sim/ct_sim_16x4.c host/transports/sim/ct_axi_mem.c \
  host/transports/sim/ct_sim_probe.c host/transports/sim/ct_sim_mem.c) \
  tb/system/ct_pair.c tb/system/ct_rig.c tb/system/ct_gen.c
$(call system_bench,test_programs,$(CORES),$(CORE_SRCS),$(BUILD)/lib/libcoltrain.a $(SDRAM_LIBS) -ldl)
$(call system_bench,test_conv,$(CORES),$(CORE_SRCS) tb/system/ct_conv.c,$(BUILD)/lib/libcoltrain.a $(SDRAM_LIBS) -ldl)
$(call system_bench,test_smoke,$(CORES),$(CORE_SRCS),$(BUILD)/lib/libcoltrain.a $(SDRAM_LIBS) -ldl)
$(call system_bench,test_policies,$(CORES),$(CORE_SRCS) tb/system/ct_waits.c,$(BUILD)/lib/libcoltrain.a $(SDRAM_LIBS) -ldl)
$(call system_bench,test_errors,$(CORES),$(CORE_SRCS),$(BUILD)/lib/libcoltrain.a $(SDRAM_LIBS) -ldl)
$(call system_bench,test_requests,$(CORES),$(CORE_SRCS),$(BUILD)/lib/libcoltrain.a $(SDRAM_LIBS) -ldl)
$(call system_bench,test_sim,$(CORES),$(CORE_SRCS),$(BUILD)/lib/libcoltrain.a $(SDRAM_LIBS) -ldl)
$(BUILD)/tb/test_sim: | $(BUILD)/lib/coltrain/sim.so

$(call system_bench,test_comp,$(CORES),$(CORE_SRCS) tb/system/ct_comp.c tb/unit/act_gen.c,$(BUILD)/lib/libcoltrain.a $(SDRAM_LIBS) -ldl)

# A core with one context, inference alone.
$(call dut,ct_core_one,ct_core_sampled,$(SAMPLED),-GCols=8 -GVpuLanes=4 -GSpmWords=8192 -GContexts=1)
$(call system_bench,test_one_context,$(CORES) ct_core_one,$(CORE_SRCS) tb/system/ct_sim_one.c,$(BUILD)/lib/libcoltrain.a $(SDRAM_LIBS) -ldl)

# Faults: flipped bits in a core whose scratchpad is watched, random commands in the plain ones. The mutants, models of RTL copies
# with faults built in, show that both would notice; they are part of the campaign.
FAULT_SRCS := $(CORE_SRCS) tb/system/ct_work.c tb/system/ct_kept.c tb/system/ct_flips.c tb/system/ct_damage.c tb/system/ct_fuzz.c tb/system/ct_commands.c
MUTANTS    := $(addprefix $(BUILD)/mutant/,ct_spm.sv ct_dma_ld.sv ct_dma_seq.sv ct_vpu_front.sv ct_act_st.sv ct_act_dec.sv)
MUTATED    := rtl/spm/ct_spm.sv rtl/dma/ct_dma_ld.sv rtl/dma/ct_dma_seq.sv rtl/vpu/ct_vpu_front.sv rtl/dma/ct_act_st.sv rtl/dma/ct_act_dec.sv
$(call dut,ct_core_watch,ct_core_watch,tb/system/ct_core_watch.sv $(SAMPLED))
$(call system_bench,test_faults,$(CORES) ct_core_watch,$(FAULT_SRCS) tb/system/ct_sim_watch.c,$(BUILD)/lib/libcoltrain.a $(SDRAM_LIBS) -ldl)
$(MUTANTS) &: tb/system/mutants.sh $(MUTATED)
	$(Q)tb/system/mutants.sh $(BUILD)/mutant
$(call dut,ct_core_mutant,ct_core_watch,tb/system/ct_mutant.sv tb/system/ct_core_watch.sv $(SAMPLED) $(MUTANTS),-DCT_MUTANT)
$(eval $(call bench_rules,fault_mutants,tb/system/fault_mutants.c,$(CORES) ct_core_mutant,$(FAULT_SRCS) tb/system/ct_sim_mutant.c,$(BUILD)/lib/libcoltrain.a $(SDRAM_LIBS) -ldl))

# The emulator by itself, also under the sanitizers.
$(call host_test,test_emu,tb/system/test_emu.c tb/system/ct_rig.c tb/system/ct_gen.c,-lm)
$(call host_test,test_emu_batch,tb/system/test_emu_batch.c tb/system/ct_rig.c tb/system/ct_gen.c,-lm)
$(call host_test,test_emu_comp,tb/system/test_emu_comp.c tb/system/ct_comp.c tb/unit/act_gen.c tb/system/ct_rig.c tb/system/ct_gen.c,-lm)
$(call host_test,test_emu_conv,tb/system/test_emu_conv.c tb/system/ct_conv.c tb/system/ct_rig.c tb/host/ct_racecheck.c,-lm)
$(call host_test,test_paths,tb/system/test_paths.c tb/system/ct_rig.c tb/system/ct_gen.c tb/unit/fp_ref.c,-lm)

# The memory of a board behind the simulated cores.
$(eval $(call bench_rules,test_board_memory,tb/system/test_board_memory.c,,,$(BUILD)/lib/libcoltrain.a -ldl))
SYSTEM_TESTS += $(BUILD)/tb/test_board_memory
$(BUILD)/tb/test_board_memory: | $(BUILD)/lib/coltrain/sim.so

# Jobs one after the other, through the library and the plug-in.
$(eval $(call bench_rules,test_jobs,tb/system/test_jobs.c,,,$(BUILD)/lib/libcoltrain.a -ldl))
SYSTEM_TESTS += $(BUILD)/tb/test_jobs
$(BUILD)/tb/test_jobs: | $(BUILD)/lib/coltrain/sim.so
