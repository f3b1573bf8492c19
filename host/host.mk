# SPDX-License-Identifier: Apache-2.0
#
# Host code and generated files. Sources are taken by folder; whatever does not exist yet is left out of the products.
#
#   host/lib/*  host/emu host/transports  *.c, host/transports/mmio  -> build/lib/libcoltrain.{a,so}
#   host/tools host/tools/*            *.c   -> build/bin/coltrain, its workloads also -> build/lib/libcoltrain-data.so
#   host/examples/NAME.c                     -> build/bin/examples/NAME
#   host/transports/sim                *.c, *.sv + the Verilated cores  -> build/lib/coltrain/sim.so (a plug-in, opened by the library)
#   rtl/spec/*.def, host/spec/ct_specgen.c   -> build/gen/ct_spec.svh, build/gen/coltrain_spec.h, build/docs/spec.md
#   rtl/fp/ct_fn_table.def                   -> build/gen/ct_fn_table.svh

LIB_DIRS := $(sort $(wildcard host/lib/*/))
TOOL_DIRS := $(sort $(wildcard host/tools/*/))
HOST_CPPFLAGS := -Ihost/include $(LIB_DIRS:%/=-I%) $(TOOL_DIRS:%/=-I%) -Ihost/emu -Ihost/transports -Irtl/spec -I. -I$(BUILD)/gen
# No libm: what it computes differs from one machine to the next.
LIB_LDLIBS    := -ldl -pthread
TOOLS_LDLIBS  := -ljansson -lz -lm
LIB_MAP       := $(wildcard host/lib/libcoltrain.map)
PLUGIN_MAP    := host/transports/plugin.map
# The number rises when a program that was linked with the library before would no longer run with it (docs/install.md).
LIB_SONAME    := libcoltrain.so.0
MULTIARCH     := $(shell $(CC) -print-multiarch 2>/dev/null)

LIB_SRCS     := $(sort $(wildcard host/lib/*/*.c host/emu/*.c host/transports/*.c host/transports/mmio/*.c))
TOOL_SRCS    := $(sort $(wildcard host/tools/*.c host/tools/*/*.c))
TOOL_MAIN    := $(if $(TOOL_SRCS),$(shell grep -l '^int main\>' $(TOOL_SRCS)))
EXAMPLE_SRCS := $(sort $(wildcard host/examples/*.c))
# Of what plug-ins share with the library they have copies.
SHARED_SRCS  := $(sort $(wildcard host/transports/*.c))
SIM_SRCS     := $(sort $(wildcard host/transports/sim/*.c))
SPEC_DEFS    := $(sort $(wildcard rtl/spec/*.def))

# Generated files.
SPECGEN  := $(wildcard host/spec/ct_specgen.c)
FN_TABLE := $(and $(wildcard scripts/fn_table_to_sv.awk),$(wildcard rtl/fp/ct_fn_table.def))
GEN_SVH  := $(if $(SPECGEN),$(BUILD)/gen/ct_spec.svh) $(if $(FN_TABLE),$(BUILD)/gen/ct_fn_table.svh)
GEN_H    := $(if $(SPECGEN),$(BUILD)/gen/coltrain_spec.h)
COMMIT_H := $(BUILD)/gen/ct_commit.h
GEN_DOCS := $(if $(SPECGEN),$(BUILD)/docs/spec.md)

$(BUILD)/gen/ct_specgen: $(SPECGEN) $(SPEC_DEFS)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(CPPFLAGS) -Irtl/spec -I. -o $@ $<

$(BUILD)/gen/ct_spec.svh: $(BUILD)/gen/ct_specgen
	$(call say,GEN,$@)
	$(Q)$< sv >$@

$(BUILD)/gen/coltrain_spec.h: $(BUILD)/gen/ct_specgen
	$(call say,GEN,$@)
	$(Q)$< header >$@

$(BUILD)/docs/spec.md: $(BUILD)/gen/ct_specgen
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$< md >$@

$(BUILD)/gen/ct_fn_table.svh: $(FN_TABLE) scripts/fn_table_to_sv.awk
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)awk -f scripts/fn_table_to_sv.awk $(FN_TABLE) >$@

# The commit that is built, with a + behind it if files differ from it; "" outside a working copy. The file changes when that does.
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null)$(if $(shell git --no-optional-locks status --porcelain -uno 2>/dev/null | head -c 1),+)
$(BUILD)/gen/ct_commit.h: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)echo '#define CT_COMMIT "$(COMMIT)"' | cmp -s - $@ || echo '#define CT_COMMIT "$(COMMIT)"' >$@
.PHONY: FORCE
FORCE:
$(BUILD)/obj/host/tools/cli/cli.o $(BUILD)/tb/obj/host/tools/cli/cli.o $(BUILD)/san/obj/host/tools/cli/cli.o: | $(COMMIT_H)

# Objects: position independent, because the same ones make the static and the shared library.
$(BUILD)/obj/%.o: %.c | $(GEN_H)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(OBJCACHE) $(CC) $(CFLAGS) $(CPPFLAGS) $(HOST_CPPFLAGS) -fPIC -MMD -MP -c -o $@ $<

# Where plug-ins are found: beside the program and the library, else where they go by default.
$(BUILD)/obj/host/lib/device/ct_plugin.o: private CPPFLAGS += $(MULTIARCH:%=-DCT_MULTIARCH='"%"') -DCT_PLUGIN_DIR='"$(LIBDIR)/coltrain"'

# What the assembler takes in, no compiler lists.
$(BUILD)/obj/host/tools/data/ct_digits.o $(BUILD)/tb/obj/host/tools/data/ct_digits.o $(BUILD)/san/obj/host/tools/data/ct_digits.o: host/data/digits/digits.csv.gz

LIB_OBJS  := $(LIB_SRCS:%.c=$(BUILD)/obj/%.o)
TOOL_OBJS := $(TOOL_SRCS:%.c=$(BUILD)/obj/%.o)
-include $(LIB_OBJS:.o=.d) $(TOOL_OBJS:.o=.d) $(patsubst %.c,$(BUILD)/san/obj/%.d,$(LIB_SRCS) $(TOOL_SRCS)) $(EXAMPLE_SRCS:%.c=$(BUILD)/obj/%.d)

$(BUILD)/lib/libcoltrain.a: $(LIB_OBJS)
	$(call say,AR,$@)
	$(Q)mkdir -p $(@D)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

$(BUILD)/lib/libcoltrain.so: $(LIB_OBJS) $(LIB_MAP)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(LDFLAGS) -Wl,-soname,$(LIB_SONAME) -Wl,--no-undefined $(LIB_MAP:%=-Wl$(comma)--version-script=%) -o $@ $(LIB_OBJS) $(LIB_LDLIBS)
	$(Q)ln -sf $(@F) $(@D)/$(LIB_SONAME)

# Data sets and arrivals of the commands, for Python: they are about workloads, not about the device, so they are no part of the library.
DATA_SRCS := $(filter host/tools/data/%,$(TOOL_SRCS))
$(BUILD)/lib/libcoltrain-data.so: $(DATA_SRCS:%.c=$(BUILD)/obj/%.o) host/host.mk
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(LDFLAGS) -Wl,-soname,libcoltrain-data.so.0 -Wl,--no-undefined -o $@ $(filter %.o,$^) -lz
	$(Q)ln -sf $(@F) $@.0

# The library under the sanitizers, for test-host.
$(BUILD)/san/lib/libcoltrain.a: $(LIB_SRCS:%.c=$(BUILD)/san/obj/%.o)
	$(call say,AR,$@)
	$(Q)mkdir -p $(@D)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

$(BUILD)/bin/coltrain: $(TOOL_OBJS) $(BUILD)/lib/libcoltrain.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -rdynamic $(LDFLAGS) -o $@ $^ $(LIB_LDLIBS) $(TOOLS_LDLIBS)

# Verbs in Python, beside the command that becomes them. Two rules: a pattern rule with two targets makes both at once, or so make believes.
PYTHON_VERBS    := experiment export import report
PYTHON_PROGRAMS := $(PYTHON_VERBS:%=$(BUILD)/bin/coltrain-%)
$(BUILD)/bin/coltrain-%: scripts/python-program | $(BUILD)/lib/libcoltrain.so
	$(call say,PYTHON,$@)
	$(Q)scripts/python-program $* $@

$(BUILD)/san/bin/coltrain-%: scripts/python-program | $(BUILD)/lib/libcoltrain.so
	$(call say,PYTHON,$@)
	$(Q)scripts/python-program $* $@

$(BUILD)/bin/examples/%: $(BUILD)/obj/host/examples/%.o $(BUILD)/lib/libcoltrain.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -rdynamic $(LDFLAGS) -o $@ $^ $(LIB_LDLIBS)

# The simulator: the supported cores without assertions and with the compiler's best effort, in ct_core_sampled.sv, behind the same C
# shim as the benches' models; all of them in one plug-in. With TRACE=1 and THREADS=2: the twins that the plug-in loads for wave= and
# threads=2.
SIM_FLAGS  ?= --x-assign fast --x-initial fast --noassert $(if $(THREADS),--threads $(THREADS)) $(if $(PROFILE),--prof-cfuncs)
SIM_MODELS := ct_core ct_core_16x8 ct_core_16x4
SIM_PARAMS_ct_core_16x8 := -GCols=8 -GVpuLanes=4 -GSpmWords=8192
SIM_PARAMS_ct_core_16x4 := -GCols=4 -GVpuLanes=4 -GSpmWords=4096 -GCompress=0
# For memory=sdram: the controller at some clocks (MHz) with both CAS latencies, a small model each.
SIM_SDRAM  := $(foreach f,25 30 35 40 60 80 100,ct_sdram_$(f)_2 ct_sdram_$(f)_3)
SIM_LIBS   := $(foreach m,$(SIM_MODELS) $(SIM_SDRAM),$(BUILD)/sim/$(m)/$(m).a)
SIM_OBJS   := $(SIM_SRCS:%.c=$(BUILD)/sim/obj/%.o)

define sim_rules
$(BUILD)/sim/$(1)/$(1).a: private export OPT := $(if $(findstring clang,$(MODEL_CXX)),-O2,-O3) -fPIC
$(BUILD)/sim/$(1)/$(1).a: private export MODEL_JOBS := 2
$(BUILD)/sim/$(1)/$(1).a: host/transports/sim/ct_core_sampled.sv $$(WAIVERS) tb/harness/verilate.sh tb/harness/vshim.awk | $$(GEN_SVH)
	$$(call say,VERILATE,$(1) (simulator))
	$$(Q)tb/harness/verilate.sh $(1) ct_core_sampled $$(@D) $$< -- $$(SIM_FLAGS) $$(SIM_PARAMS_$(1))
-include $(BUILD)/sim/$(1)/$(1).d
endef
$(foreach m,$(SIM_MODELS),$(eval $(call sim_rules,$(m))))

define sdram_rules
$(BUILD)/sim/$(1)/$(1).a: private export OPT := -O2 -fPIC
$(BUILD)/sim/$(1)/$(1).a: rtl/mem/ct_sdram.sv $$(WAIVERS) tb/harness/verilate.sh tb/harness/vshim.awk | $$(GEN_SVH)
	$$(call say,VERILATE,$(1) (simulator))
	$$(Q)tb/harness/verilate.sh $(1) ct_sdram $$(@D) $$< -- --x-assign fast --x-initial fast --noassert \
	  -GClockHz=$(word 3,$(subst _, ,$(1)))000000 -GCasLatency=$(word 4,$(subst _, ,$(1)))
-include $(BUILD)/sim/$(1)/$(1).d
endef
$(foreach m,$(SIM_SDRAM),$(eval $(call sdram_rules,$(m))))

$(BUILD)/sim/obj/%.o: %.c $(SIM_LIBS) | $(GEN_H)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(OBJCACHE) $(CC) $(CFLAGS) $(CPPFLAGS) $(HOST_CPPFLAGS) $(patsubst %,-I$(BUILD)/sim/%,$(SIM_MODELS) $(SIM_SDRAM)) $(if $(TRACE),-DCT_SIM_TRACE) $(if $(THREADS),-DCT_SIM_THREADS=$(THREADS)) -fPIC -MMD -MP -c -o $@ $<

# The board's memory alone, for benches that have cores of their own.
$(BUILD)/sim/sdram.a: $(BUILD)/sim/obj/host/transports/sim/ct_sdram_mem.o $(BUILD)/sim/obj/host/transports/sim/ct_sdram_chip.o
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^
SDRAM_LIBS := $(BUILD)/sim/sdram.a $(foreach m,$(SIM_SDRAM),$(BUILD)/sim/$(m)/$(m).a) $(BUILD)/dut/libverilated.a

$(BUILD)/lib/coltrain/sim.so: $(SIM_OBJS) $(SHARED_SRCS:%.c=$(BUILD)/obj/%.o) $(SIM_LIBS) $(BUILD)/dut/libverilated.a $(PLUGIN_MAP)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) -shared $(LDFLAGS) -Wl,-Bsymbolic -Wl,--version-script=$(PLUGIN_MAP) -o $@ $(filter-out %.map,$^) $(if $(TRACE),-lz) -ldl -pthread

-include $(SIM_OBJS:.o=.d)

# Boards on USB: a plug-in, so that only it needs libusb. Left out where that is not installed.
HAS_LIBUSB := $(shell printf '\043include <libusb-1.0/libusb.h>\n' | $(CC) -E - >/dev/null 2>&1 && echo yes)
# What the ways to a board share: requests and answers over any line.
FRAME_SRCS := $(sort $(wildcard host/transports/frames/*.c))
USB_SRCS   := $(if $(HAS_LIBUSB),$(sort $(wildcard host/transports/usb/*.c)) $(FRAME_SRCS))
USB_OBJS   := $(USB_SRCS:%.c=$(BUILD)/obj/%.o)

$(BUILD)/lib/coltrain/usb.so: $(USB_OBJS) $(SHARED_SRCS:%.c=$(BUILD)/obj/%.o) $(PLUGIN_MAP)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(LDFLAGS) -Wl,-Bsymbolic -Wl,--no-undefined -Wl,--version-script=$(PLUGIN_MAP) -o $@ $(filter-out %.map,$^) -lusb-1.0 -lz -pthread

-include $(USB_OBJS:.o=.d)

# Boards on a serial port: a plug-in, so that the library needs no zlib.
SERIAL_SRCS := $(sort $(wildcard host/transports/serial/*.c)) $(FRAME_SRCS)
SERIAL_OBJS := $(SERIAL_SRCS:%.c=$(BUILD)/obj/%.o)

$(BUILD)/lib/coltrain/serial.so: $(SERIAL_OBJS) $(SHARED_SRCS:%.c=$(BUILD)/obj/%.o) $(PLUGIN_MAP)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(LDFLAGS) -Wl,-Bsymbolic -Wl,--no-undefined -Wl,--version-script=$(PLUGIN_MAP) -o $@ $(filter-out %.map,$^) -lz -pthread

-include $(SERIAL_OBJS:.o=.d)

PRODUCTS := $(GEN_SVH) $(GEN_H) $(COMMIT_H) $(GEN_DOCS) \
  $(if $(LIB_SRCS),$(BUILD)/lib/libcoltrain.a $(BUILD)/lib/libcoltrain.so) \
  $(if $(TOOL_MAIN),$(BUILD)/lib/libcoltrain-data.so) \
  $(if $(TOOL_MAIN),$(BUILD)/bin/coltrain $(PYTHON_PROGRAMS)) \
  $(EXAMPLE_SRCS:host/examples/%.c=$(BUILD)/bin/examples/%) \
  $(if $(and $(SIM_SRCS),$(wildcard rtl/ct_core.sv)),$(BUILD)/lib/coltrain/sim.so) \
  $(BUILD)/lib/coltrain/serial.so \
  $(if $(USB_SRCS),$(BUILD)/lib/coltrain/usb.so)
