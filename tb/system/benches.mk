# SPDX-License-Identifier: Apache-2.0
#
# The whole-core benches, one line each; tb/harness/rules.mk says what the lines mean.

# The supported cores, with assertions.
$(call dut,ct_core,ct_core,rtl/ct_core.sv)
$(call dut,ct_core_16x8,ct_core,rtl/ct_core.sv,-GCols=8 -GVpuLanes=4 -GSpmWords=8192)

# A core behind the simulator's transport, beside the emulator.
CORES     := ct_core ct_core_16x8
CORE_SRCS := $(wildcard host/transports/sim/ct_sim.c host/transports/sim/ct_sim_16x8.c host/transports/sim/ct_axi_mem.c \
  host/transports/sim/ct_sim_probe.c) \
  tb/system/ct_pair.c tb/system/ct_rig.c tb/system/ct_gen.c
$(call system_bench,test_programs,$(CORES),$(CORE_SRCS),$(BUILD)/lib/libcoltrain.a -ldl)
$(call system_bench,test_smoke,$(CORES),$(CORE_SRCS),$(BUILD)/lib/libcoltrain.a -ldl)
$(call system_bench,test_errors,$(CORES),$(CORE_SRCS),$(BUILD)/lib/libcoltrain.a -ldl)
$(call system_bench,test_sim,$(CORES),$(CORE_SRCS),$(BUILD)/lib/libcoltrain.a -ldl)
$(BUILD)/tb/test_sim: | $(BUILD)/lib/coltrain/sim.so

# The emulator by itself, also under the sanitizers.
$(call host_test,test_emu,tb/system/test_emu.c tb/system/ct_rig.c tb/system/ct_gen.c,-lm)
$(call host_test,test_paths,tb/system/test_paths.c tb/system/ct_rig.c tb/system/ct_gen.c tb/unit/fp_ref.c,-lm)
