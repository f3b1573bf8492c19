# SPDX-License-Identifier: Apache-2.0
#
# The tests of host code, one line each; tb/harness/rules.mk says what the line means. Every one also runs under the sanitizers.

ifneq ($(USB_SRCS),)
$(BUILD)/tb/test_calls $(BUILD)/tb/test_calls.san $(BUILD)/tb/test_cli $(BUILD)/tb/test_cli.san: | $(BUILD)/lib/coltrain/usb.so $(BUILD)/lib/coltrain/serial.so
endif

$(call host_test,test_npy,tb/host/test_npy.c host/tools/data/ct_npy.c host/tools/data/ct_fault.c)
$(call host_test,test_dataset,tb/host/test_dataset.c tb/host/data_folder.c $(DATA_SRCS),-lz)
$(call host_test,test_folders,tb/host/test_folders.c tb/host/data_folder.c $(DATA_SRCS),-lz)
$(call host_test,test_arrivals,tb/host/test_arrivals.c host/tools/data/ct_arrivals.c host/tools/data/ct_rand.c)
$(call host_test,test_act,tb/host/test_act.c)
$(call host_test,test_stats,tb/host/test_stats.c host/tools/measure/ct_stats.c)
$(call host_test,test_progress,tb/host/test_progress.c host/tools/cli/ct_progress.c)
$(call host_test,test_gemm,tb/host/test_gemm.c tb/host/ct_racecheck.c)

# One training step against the double-precision oracle, on the emulator and on the simulated cores.
$(call host_test,test_oracle,tb/oracle/test_oracle.c tb/oracle/ct_oracle.c)
$(BUILD)/tb/test_oracle $(BUILD)/tb/test_oracle.san: | $(BUILD)/lib/coltrain/sim.so

# The coltrain command, as users run it: test_cli starts bin/coltrain, test_cli.san the same under the sanitizers. test_cli_sim needs
# the simulator, so test-system runs it.
TOOL_PARTS := $(filter-out host/tools/main.c,$(foreach s,$(TOOL_SRCS),$(if $(findstring /verb_,$(s)),,$(s))))
$(call host_test,test_cli,tb/host/test_cli.c tb/host/cli_run.c,-ljansson)
$(call host_test,test_cli_networks,tb/host/test_cli_networks.c tb/host/cli_run.c,-ljansson)
$(BUILD)/tb/test_cli_networks: | $(BUILD)/lib/coltrain/sim.so $(BUILD)/bin/coltrain-report
$(BUILD)/tb/test_cli_networks.san: | $(BUILD)/lib/coltrain/sim.so $(BUILD)/san/bin/coltrain-report
$(BUILD)/tb/test_cli_networks: $(BUILD)/bin/coltrain
$(BUILD)/tb/test_cli_networks.san: $(BUILD)/san/bin/coltrain
$(call host_test,test_cli_sweep,tb/host/test_cli_sweep.c tb/host/cli_run.c,-ljansson)
$(BUILD)/tb/test_cli_sweep $(BUILD)/tb/test_cli_sweep.san: | $(BUILD)/lib/coltrain/sim.so
$(BUILD)/tb/test_cli_sweep: $(BUILD)/bin/coltrain
$(BUILD)/tb/test_cli_sweep.san: $(BUILD)/san/bin/coltrain
$(call host_test,test_cli_serve,tb/host/test_cli_serve.c tb/host/cli_run.c,-ljansson)
$(BUILD)/tb/test_cli_serve $(BUILD)/tb/test_cli_serve.san: | $(BUILD)/lib/coltrain/sim.so
$(BUILD)/tb/test_cli_serve: $(BUILD)/bin/coltrain
$(BUILD)/tb/test_cli_serve.san: $(BUILD)/san/bin/coltrain
$(call host_test,test_cli_faults,tb/host/test_cli_faults.c tb/host/cli_run.c,-ljansson)
$(call host_test,test_colocate,tb/host/test_colocate.c $(TOOL_PARTS),$(TOOLS_LDLIBS))
$(call host_test,test_load,tb/host/test_load.c tb/host/tiny_program.c $(TOOL_PARTS),$(TOOLS_LDLIBS))
$(BUILD)/tb/test_load $(BUILD)/tb/test_load.san: | $(BUILD)/lib/coltrain/sim.so
$(eval $(call bench_rules,test_cli_sim,tb/host/test_cli_sim.c,,tb/host/cli_run.c,-ljansson))
SYSTEM_TESTS += $(BUILD)/tb/test_cli_sim
$(call host_test,test_checkpoint,tb/host/test_checkpoint.c tb/host/cli_run.c,-ljansson)
$(BUILD)/tb/test_cli $(BUILD)/tb/test_cli_faults $(BUILD)/tb/test_cli_sim: | $(BUILD)/bin/coltrain-report
$(BUILD)/tb/test_cli.san $(BUILD)/tb/test_cli_faults.san: | $(BUILD)/san/bin/coltrain-report
$(BUILD)/tb/test_cli $(BUILD)/tb/test_cli_faults $(BUILD)/tb/test_checkpoint: $(BUILD)/bin/coltrain
$(BUILD)/tb/test_cli.san $(BUILD)/tb/test_cli_faults.san $(BUILD)/tb/test_checkpoint.san: $(BUILD)/san/bin/coltrain

$(BUILD)/san/bin/coltrain: $(TOOL_SRCS:%.c=$(BUILD)/san/obj/%.o) $(BUILD)/san/lib/libcoltrain.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -rdynamic $(SANITIZE) -o $@ $^ $(LIB_LDLIBS) $(TOOLS_LDLIBS)
$(call host_test,test_network_batches,tb/host/test_network_batches.c)
$(BUILD)/tb/test_network_batches $(BUILD)/tb/test_network_batches.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_network_same,tb/host/test_network_same.c)
$(BUILD)/tb/test_network_same $(BUILD)/tb/test_network_same.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_perceptrons,tb/host/test_perceptrons.c tb/host/ct_racecheck.c)
$(BUILD)/tb/test_perceptrons $(BUILD)/tb/test_perceptrons.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_mlp,tb/host/test_mlp.c tb/host/ct_racecheck.c)
$(BUILD)/tb/test_mlp $(BUILD)/tb/test_mlp.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_lib,tb/host/test_lib.c)
$(call host_test,test_mxint8,tb/host/test_mxint8.c,-lm)
$(call host_test,test_uri,tb/host/test_uri.c)
$(BUILD)/tb/test_uri $(BUILD)/tb/test_uri.san: | $(BUILD)/lib/coltrain/sim.so
# Calls that are refused, and jobs in flight, on emu: and sim:.
$(call host_test,test_calls,tb/host/test_calls.c)
$(call host_test,test_handles,tb/host/test_handles.c tb/host/tiny_program.c)
$(BUILD)/tb/test_handles $(BUILD)/tb/test_handles.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_async,tb/host/test_async.c tb/host/tiny_program.c tb/host/flaky.c)
# A device with a fault: a transport of its own, in front of emu:.
$(BUILD)/tb/plugins/faulty.so: tb/host/faulty.c | $(GEN_H)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(CPPFLAGS) $(HOST_CPPFLAGS) -shared -fPIC -o $@ $<
$(BUILD)/tb/test_cli $(BUILD)/tb/test_cli.san: | $(BUILD)/tb/plugins/faulty.so
$(call host_test,test_memory,tb/host/test_memory.c tb/host/tiny_program.c)
$(BUILD)/tb/test_memory $(BUILD)/tb/test_memory.san: | $(BUILD)/tb/plugins/faulty.so $(BUILD)/lib/coltrain/sim.so
# Allocations of the library come to the test, which refuses some.
$(call host_test,test_nomemory,tb/host/test_nomemory.c,-Wl$(comma)--wrap=malloc$(comma)--wrap=calloc$(comma)--wrap=realloc$(comma)--wrap=aligned_alloc$(comma)--wrap=strdup$(comma)--wrap=free$(comma)--wrap=mmap$(comma)--wrap=munmap)
$(call host_test,test_endless,tb/host/test_endless.c)
$(BUILD)/tb/test_endless $(BUILD)/tb/test_endless.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_gradients,tb/host/test_gradients.c tb/host/ct_racecheck.c tb/host/tiny_program.c,-lm)
$(BUILD)/tb/test_gradients $(BUILD)/tb/test_gradients.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_training,tb/host/test_training.c tb/host/tiny_program.c)
$(BUILD)/tb/test_training $(BUILD)/tb/test_training.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_server,tb/host/test_server.c tb/host/server_bed.c)
$(call host_test,test_server_faults,tb/host/test_server_faults.c tb/host/server_bed.c tb/host/flaky.c)
$(call host_test,test_server_neighbours,tb/host/test_server_neighbours.c tb/host/server_bed.c tb/host/flaky.c)
$(call host_test,test_server_reset,tb/host/test_server_reset.c tb/host/server_bed.c)
$(BUILD)/tb/test_server_reset $(BUILD)/tb/test_server_reset.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_deadlines,tb/host/test_deadlines.c tb/host/server_bed.c)
$(BUILD)/tb/test_deadlines $(BUILD)/tb/test_deadlines.san: | $(BUILD)/lib/coltrain/sim.so
$(BUILD)/tb/test_server $(BUILD)/tb/test_server.san: | $(BUILD)/lib/coltrain/sim.so
$(BUILD)/tb/test_server_faults $(BUILD)/tb/test_server_faults.san: | $(BUILD)/lib/coltrain/sim.so
$(BUILD)/tb/test_server_neighbours $(BUILD)/tb/test_server_neighbours.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_threads,tb/host/test_threads.c)
$(call thread_test,test_threads,tb/host/test_threads.c)
$(BUILD)/tb/test_threads $(BUILD)/tb/test_threads.san $(BUILD)/tb/test_threads.tsan: | $(BUILD)/lib/coltrain/sim.so
$(BUILD)/tb/test_calls $(BUILD)/tb/test_calls.san $(BUILD)/tb/test_async $(BUILD)/tb/test_async.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_sequences,tb/host/test_sequences.c tb/host/ct_racecheck.c)
$(BUILD)/tb/test_sequences $(BUILD)/tb/test_sequences.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_chain,tb/host/test_chain.c)
$(call host_test,test_lower,tb/host/test_lower.c tb/host/lower_kernels.c tb/host/ct_racecheck.c)
$(BUILD)/tb/test_lower $(BUILD)/tb/test_lower.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_streamed,tb/host/test_streamed.c tb/host/ct_racecheck.c)
$(BUILD)/tb/test_streamed $(BUILD)/tb/test_streamed.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_shapes,tb/host/test_shapes.c)
$(BUILD)/tb/test_shapes $(BUILD)/tb/test_shapes.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_infer,tb/host/test_infer.c tb/host/ct_racecheck.c)
$(BUILD)/tb/test_infer $(BUILD)/tb/test_infer.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_racecheck,tb/host/test_racecheck.c tb/host/ct_racecheck.c tb/system/ct_gen.c)

# The model of time against the simulated cores.
$(call host_test,test_cycles,tb/host/test_cycles.c tb/host/cycles_bed.c tb/system/ct_conv.c tb/system/ct_gen.c)
$(BUILD)/tb/test_cycles $(BUILD)/tb/test_cycles.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_cycles_kernels,tb/host/test_cycles_kernels.c tb/host/cycles_bed.c)
$(BUILD)/tb/test_cycles_kernels $(BUILD)/tb/test_cycles_kernels.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_cycles_networks,tb/host/test_cycles_networks.c)
$(BUILD)/tb/test_cycles_networks $(BUILD)/tb/test_cycles_networks.san: | $(BUILD)/lib/coltrain/sim.so

# What inference and training cost each other, by the coltrain command on the simulator.
$(eval $(call bench_rules,test_interference,tb/host/test_interference.c,,tb/host/cli_run.c,-ljansson))
SYSTEM_TESTS += $(BUILD)/tb/test_interference
$(call host_test,test_probe,tb/host/test_probe.c host/transports/sim/ct_sim_probe.c)

# Traces, made up and of the simulated cores.
$(call host_test,test_trace,tb/host/test_trace.c $(TOOL_PARTS),$(TOOLS_LDLIBS))
$(BUILD)/tb/test_trace $(BUILD)/tb/test_trace.san: | $(BUILD)/lib/coltrain/sim.so

# The same work by the library from several compilers: scripts/same-bytes runs them and compares. What is not installed is left out.
# gcc-O2 is the library as everybody gets it. The others are builds of all of it, so the tests have one of another compiler and one of another
# processor; SAME=all, as in the campaign, has more.
SAME_gcc-O0   := gcc -O0
SAME_gcc-O3   := gcc -O3
SAME_clang-O0 := clang -O0
SAME_clang-O3 := clang -O3
SAME_arm64-O2 := aarch64-linux-gnu-gcc -O2
SAME_OTHERS   := $(foreach b,clang-O3 arm64-O2 $(if $(filter all,$(SAME)),gcc-O0 gcc-O3 clang-O0),$(if $(shell command -v $(firstword $(SAME_$(b)))),$(b)))
SAME_BUILDS   := gcc-O2 $(SAME_OTHERS)
SAME_PROGRAMS := $(SAME_BUILDS:%=$(BUILD)/same/%/same_bytes)
SAME_SRCS     := tb/host/same_bytes.c $(LIB_SRCS)

define same_rules
$(BUILD)/same/$(1)/obj/%.o: %.c | $(GEN_H)
	$$(call say,CC,$$< ($(1)))
	$$(Q)mkdir -p $$(@D)
	$$(Q)$(OBJCACHE) $(SAME_$(1)) -std=c11 -ffp-contract=off $(CPPFLAGS) $(HOST_CPPFLAGS) -MMD -MP -c -o $$@ $$<
$(BUILD)/same/$(1)/same_bytes: $(SAME_SRCS:%.c=$(BUILD)/same/$(1)/obj/%.o)
	$$(call say,LINK,$$@)
	$$(Q)$(SAME_$(1)) -rdynamic -o $$@ $$^ $(LIB_LDLIBS) -lm
-include $(SAME_SRCS:%.c=$(BUILD)/same/$(1)/obj/%.d)
endef
$(foreach b,$(SAME_OTHERS),$(eval $(call same_rules,$(b))))
$(BUILD)/same/gcc-O2/same_bytes: $(BUILD)/tb/obj/tb/host/same_bytes.o $(BUILD)/lib/libcoltrain.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -rdynamic -o $@ $^ $(LIB_LDLIBS) -lm
-include $(BUILD)/tb/obj/tb/host/same_bytes.d

same-bytes: $(SAME_PROGRAMS) $(BUILD)/lib/libcoltrain.so $(BUILD)/lib/coltrain/sim.so  ## The same work by several compilers, for several processors, on the simulated cores (SAME=all: by more)
	$(RUN) "scripts/same-bytes $(SAME_BUILDS)"

HOST_STEPS      += "scripts/same-bytes $(SAME_BUILDS)"
HOST_STEP_FILES += $(SAME_PROGRAMS) $(BUILD)/lib/libcoltrain.so $(BUILD)/lib/coltrain/sim.so

# The examples, as a reader would run them.
HOST_STEPS      += scripts/run-examples
HOST_STEP_FILES += $(EXAMPLE_SRCS:host/examples/%.c=$(BUILD)/bin/examples/%)

# coltrain top beside jobs, one of them on the simulator.
$(eval $(call bench_rules,test_live,tb/host/test_live.c,,tb/host/cli_run.c $(TOOL_PARTS),$(BUILD)/lib/libcoltrain.a $(TOOLS_LDLIBS) $(LIB_LDLIBS) -rdynamic))
SYSTEM_TESTS += $(BUILD)/tb/test_live

# Hardware in the address space: the library and the command, unmodified, on a simulated core in another process. mmio_trap.so
# (preloaded) carries their loads and stores to mmio_core.
$(BUILD)/tb/mmio_trap.so: tb/host/mmio_trap.c tb/host/mmio_wire.h
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(CPPFLAGS) -shared -fPIC -o $@ $< -ldl -pthread
$(BUILD)/tb/mmio_core: tb/host/mmio_core.c tb/host/mmio_wire.h | $(GEN_H)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(CPPFLAGS) $(HOST_CPPFLAGS) -o $@ $< -ldl
$(call host_test,test_mmio,tb/host/test_mmio.c tb/host/mmio_rig.c tb/host/cli_run.c tb/host/tiny_program.c,-ljansson)
$(BUILD)/tb/test_mmio $(BUILD)/tb/test_mmio.san: | $(BUILD)/tb/mmio_trap.so $(BUILD)/tb/mmio_core $(BUILD)/lib/coltrain/sim.so
$(BUILD)/tb/test_mmio: $(BUILD)/bin/coltrain
$(BUILD)/tb/test_mmio.san: $(BUILD)/san/bin/coltrain
# What every way to a device must do: on sim: and emu:, in the address space, and (tb/usb/benches.mk) on USB.
$(call host_test,conform_mmio,tb/host/conform.c tb/host/ct_modes.c tb/host/conform_mmio.c tb/host/mmio_rig.c tb/host/cli_run.c,-ljansson -pthread)
$(BUILD)/tb/conform_mmio $(BUILD)/tb/conform_mmio.san: | $(BUILD)/tb/mmio_trap.so $(BUILD)/tb/mmio_core $(BUILD)/lib/coltrain/sim.so
$(BUILD)/tb/conform: $(patsubst %.c,$(BUILD)/tb/obj/%.o,tb/host/conform.c tb/host/ct_modes.c tb/host/conform_plain.c) $(TB_OBJS) $(BUILD)/lib/libcoltrain.a | $(BUILD)/lib/coltrain/sim.so
	$(call say,LINK,$@)
	$(Q)$(CC) -rdynamic -o $@ $(filter %.o %.a,$^) $(LIB_LDLIBS) -lcmocka -lm -pthread
HOST_STEPS      += "$(BUILD)/tb/conform sim:core=16x8,stall=25" "$(BUILD)/tb/conform sim:core=16x4" "$(BUILD)/tb/conform emu:"
HOST_STEP_FILES += $(BUILD)/tb/conform
# For scripts/mmio-guest.
$(BUILD)/tb/mmio_pci: tb/host/mmio_pci.c tb/host/mmio_wire.h
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(CPPFLAGS) -o $@ $<

# What make install puts down, used from there.
HOST_STEPS      += scripts/install-check
HOST_STEP_FILES += $(PRODUCTS) $(BUILD)/manual/bash-completion/coltrain

# Graphs: built, refused; what operators and training compute; gradients against differences.
$(call host_test,test_graph,tb/host/test_graph.c tb/host/graph_bed.c)
$(call host_test,test_graph_refusals,tb/host/test_graph_refusals.c tb/host/graph_bed.c)
$(call host_test,test_graph_values,tb/host/test_graph_values.c tb/host/graph_bed.c)
$(call host_test,test_graph_training,tb/host/test_graph_training.c tb/host/graph_bed.c)
$(call host_test,test_graph_gradients,tb/host/test_graph_gradients.c tb/host/graph_bed.c)
$(call host_test,test_graph_file,tb/host/test_graph_file.c tb/host/graph_bed.c)

# Graphs on the device, beside the reference.
$(call host_test,test_network,tb/host/test_network.c tb/host/network_bed.c tb/host/graph_bed.c)
$(call host_test,test_network_kept,tb/host/test_network_kept.c tb/host/kept_bed.c tb/host/network_bed.c tb/host/graph_bed.c)
$(BUILD)/tb/test_network_kept $(BUILD)/tb/test_network_kept.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_network_kept_files,tb/host/test_network_kept_files.c tb/host/kept_bed.c tb/host/network_bed.c tb/host/graph_bed.c)
$(call host_test,test_accumulate,tb/host/test_accumulate.c tb/host/network_bed.c tb/host/graph_bed.c)
$(BUILD)/tb/test_accumulate $(BUILD)/tb/test_accumulate.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_network_differences,tb/host/test_network_differences.c tb/host/network_bed.c tb/host/graph_bed.c,-lm)
$(call host_test,test_network_serve,tb/host/test_network_serve.c)
$(BUILD)/tb/test_network_serve $(BUILD)/tb/test_network_serve.san: | $(BUILD)/lib/coltrain/sim.so
# Many of them at once, beside each alone.
$(call host_test,test_array,tb/host/test_array.c tb/host/array_bed.c)
$(BUILD)/tb/test_array $(BUILD)/tb/test_array.san: | $(BUILD)/lib/coltrain/sim.so
$(call host_test,test_network_bits,tb/host/test_network_bits.c tb/host/graph_bed.c)
$(call host_test,test_network_rows,tb/host/test_network_rows.c tb/host/graph_bed.c)
$(call host_test,test_network_random,tb/host/test_network_random.c tb/host/network_bed.c tb/host/graph_bed.c)
$(call host_test,test_network_bounds,tb/host/test_network_bounds.c tb/host/node_bounds.c tb/host/network_bed.c tb/host/graph_bed.c,-lm)
$(call host_test,test_network_members,tb/host/test_network_members.c tb/host/network_bed.c tb/host/graph_bed.c tb/host/ct_racecheck.c)
$(call host_test,test_network_operators,tb/host/test_network_operators.c tb/host/network_bed.c tb/host/graph_bed.c)
$(BUILD)/tb/test_network_random $(BUILD)/tb/test_network_random.san: | $(BUILD)/lib/coltrain/sim.so
$(BUILD)/tb/test_network_operators $(BUILD)/tb/test_network_operators.san: | $(BUILD)/lib/coltrain/sim.so

# Whole training steps of networks by name on the RTL.
$(eval $(call bench_rules,test_rtl_training,tb/host/test_rtl_training.c,,$(DATA_SRCS),$(BUILD)/lib/libcoltrain.a $(LIB_LDLIBS) -lz -rdynamic))
SYSTEM_TESTS += $(BUILD)/tb/test_rtl_training
$(BUILD)/tb/test_rtl_training: | $(BUILD)/lib/coltrain/sim.so

# Kernels of the vector unit, number by number.
$(call host_test,test_kernel_tile,tb/host/test_kernel_tile.c tb/host/kernel_bed.c tb/host/ct_racecheck.c)
$(BUILD)/tb/test_kernel_tile $(BUILD)/tb/test_kernel_tile.san: | $(BUILD)/lib/coltrain/sim.so

$(call host_test,test_kernel_conv,tb/host/test_kernel_conv.c tb/host/kernel_bed.c tb/host/ct_racecheck.c)
$(BUILD)/tb/test_kernel_conv $(BUILD)/tb/test_kernel_conv.san: | $(BUILD)/lib/coltrain/sim.so

$(call host_test,test_kernel_sum,tb/host/test_kernel_sum.c tb/host/kernel_bed.c tb/host/ct_racecheck.c)
$(call host_test,test_kernel_move,tb/host/test_kernel_move.c tb/host/kernel_bed.c tb/host/ct_racecheck.c)
$(call host_test,test_kernel_pack,tb/host/test_kernel_pack.c tb/host/kernel_bed.c tb/host/ct_racecheck.c)
$(call host_test,test_kernel_pool,tb/host/test_kernel_pool.c tb/host/kernel_bed.c tb/host/ct_racecheck.c)
$(call host_test,test_kernel_softmax,tb/host/test_kernel_softmax.c tb/host/kernel_bed.c tb/host/ct_racecheck.c)
$(BUILD)/tb/test_kernel_pool $(BUILD)/tb/test_kernel_pool.san: | $(BUILD)/lib/coltrain/sim.so
