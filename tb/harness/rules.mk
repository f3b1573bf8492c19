# SPDX-License-Identifier: Apache-2.0
#
# The one-line declarations of test benches; see README.md beside this file. All of them may be used as plain lines.
#
#   $(call unit_bench,BENCH,TOP,SOURCES,FLAGS)  tb/unit/BENCH.c over one model of module TOP, named TOP
#   $(call dut,NAME,TOP,SOURCES,FLAGS)          a model named NAME of module TOP
#   $(call bench,BENCH,NAMES,MORE,LIBS)         tb/unit/BENCH.c over the models NAMES
#   $(call system_bench,BENCH,NAMES,MORE,LIBS)  tb/system/BENCH.c, as above, run by test-system
#   $(call host_test,TEST,SOURCES,LIBS)         a test of host code, linked with libcoltrain; built again under the sanitizers
#   $(call thread_test,TEST,SOURCES,LIBS)       such a test once more under the thread sanitizer
#
# SOURCES: the module's file; what it instantiates is found by name. FLAGS: Verilator's, such as -GDepth=4. MORE: further C
# files. LIBS: linker arguments; a library that is built here, such as $(BUILD)/lib/libcoltrain.a, is built first.

TB_CPPFLAGS   := -Itb/harness -Itb/oracle -Itb
VERILATOR_INC := $(shell $(VERILATOR) --getenv VERILATOR_ROOT 2>/dev/null)/include
VERILATED_SRC := verilated verilated_threads $(if $(TRACE),verilated_fst_c)
TB_OBJS       := $(BUILD)/tb/obj/tb/harness/ct_tb.o $(BUILD)/tb/obj/tb/harness/ct_pty.o
UNIT_TESTS    :=
SYSTEM_TESTS  :=
HOST_TESTS    :=

export VERILATOR VERILATOR_INC MODEL_CXX OBJCACHE RTL_DIRS RTL_INCLUDES RTL_PKGS WAIVERS TRACE

# The C++ run time of Verilator, once.
$(BUILD)/dut/%.o: $(VERILATOR_INC)/%.cpp
	$(call say,CXX,$(notdir $<))
	$(Q)mkdir -p $(@D)
	$(Q)$(OBJCACHE) $(CXX) -std=gnu++17 -faligned-new -O2 -w -fPIC -pthread -I$(VERILATOR_INC) -I$(VERILATOR_INC)/vltstd -c -o $@ $<

$(BUILD)/dut/libverilated.a: $(VERILATED_SRC:%=$(BUILD)/dut/%.o)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

dut = $(eval $(call dut_rules,$(strip $(1)),$(strip $(2)),$(3),$(4)))
define dut_rules
ifeq ($(filter $(1),$(DUTS)),)
DUTS += $(1)
$(BUILD)/dut/$(1)/$(1).a: $(3) $(WAIVERS) tb/harness/verilate.sh tb/harness/vshim.awk | $(GEN_SVH)
	$$(call say,VERILATE,$(1))
	$$(Q)tb/harness/verilate.sh $(1) $(2) $$(@D) $(3) -- $(4)
-include $(BUILD)/dut/$(1)/$(1).d
endif
endef

# 1 program, 2 its main source, 3 models, 4 more sources, 5 libraries
define bench_rules
$(BUILD)/tb/$(1): private TB_INC := $(3:%=-I$(BUILD)/dut/%)
$(BUILD)/tb/$(1): $(2) $(4) $(wildcard tb/harness/*.h) $(foreach d,$(3),$(BUILD)/dut/$(d)/$(d).a) $(BUILD)/dut/libverilated.a $(TB_OBJS) $(GEN_H) $(filter %.a,$(5))
	$$(call say,BENCH,$$@)
	$$(Q)mkdir -p $$(@D)/obj/$(1)
	$$(Q)set -e; for f in $(2) $(4); do o=$$(@D)/obj/$(1)/$$$$(basename $$$$f .c).o; $$(OBJCACHE) $$(CC) $$(CFLAGS) $$(CPPFLAGS) $$(HOST_CPPFLAGS) $$(TB_CPPFLAGS) $$(TB_INC) -MMD -MP -MT $$@ -c -o $$$$o $$$$f; done
	$$(Q)$$(CXX) -o $$@ $(patsubst %.c,$(BUILD)/tb/obj/$(1)/%.o,$(notdir $(2) $(4))) $(TB_OBJS) $(foreach d,$(3),$(BUILD)/dut/$(d)/$(d).a) $(BUILD)/dut/libverilated.a $(5) -lcmocka $$(if $(TRACE),-lz) -lm -pthread
-include $(patsubst %.c,$(BUILD)/tb/obj/$(1)/%.d,$(notdir $(2) $(4)))
endef

bench        = $(eval $(call bench_rules,$(strip $(1)),tb/unit/$(strip $(1)).c,$(2),$(3),$(4)))$(eval UNIT_TESTS += $(BUILD)/tb/$(strip $(1)))
system_bench = $(eval $(call bench_rules,$(strip $(1)),tb/system/$(strip $(1)).c,$(2),$(3),$(4)))$(eval SYSTEM_TESTS += $(BUILD)/tb/$(strip $(1)))
unit_bench   = $(call dut,$(2),$(2),$(3),$(4))$(call bench,$(1),$(strip $(2)))

# Programs are looked at more closely than in the library (tb/host/all_passes.c).
ALL_PASSES   := tb/host/all_passes.c
ALL_PASSES_L := -Wl,--wrap=ct_lower_start
-include $(ALL_PASSES:%.c=$(BUILD)/tb/obj/%.d) $(ALL_PASSES:%.c=$(BUILD)/san/obj/%.d)

# The same sources twice: as they are, and with the address and undefined-behaviour sanitizers (with the library's sources too).
# (Line numbers are all of the debugger's that a report wants; compilers take a fifth less time so.)
SANITIZE  := -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
host_test = $(eval $(call host_test_rules,$(strip $(1)),$(2),$(3)))
define host_test_rules
HOST_TESTS += $(BUILD)/tb/$(1) $(BUILD)/tb/$(1).san
$(BUILD)/tb/$(1): $(2:%.c=$(BUILD)/tb/obj/%.o) $(ALL_PASSES:%.c=$(BUILD)/tb/obj/%.o) $(TB_OBJS) $(BUILD)/lib/libcoltrain.a
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) -rdynamic $(ALL_PASSES_L) -o $$@ $$(filter %.o %.a,$$^) $(3) $$(LIB_LDLIBS) -lcmocka -lm
$(BUILD)/tb/$(1).san: $(2:%.c=$(BUILD)/san/obj/%.o) $(ALL_PASSES:%.c=$(BUILD)/san/obj/%.o) $(TB_OBJS:$(BUILD)/tb/%=$(BUILD)/san/%) $(BUILD)/san/lib/libcoltrain.a
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) -rdynamic $(SANITIZE) $(ALL_PASSES_L) -o $$@ $$(filter %.o %.a,$$^) $(3) $$(LIB_LDLIBS) -lcmocka -lm
-include $(2:%.c=$(BUILD)/tb/obj/%.d) $(2:%.c=$(BUILD)/san/obj/%.d)
endef

# A third time with the thread sanitizer: $(call thread_test,TEST,SOURCES,LIBS), of a test that host_test has declared.
THREAD_SANITIZE := -O1 -g1 -fsanitize=thread -fno-omit-frame-pointer
thread_test = $(eval $(call thread_test_rules,$(strip $(1)),$(2),$(3)))
define thread_test_rules
HOST_TESTS += $(BUILD)/tb/$(1).tsan
$(BUILD)/tb/$(1).tsan: $(2:%.c=$(BUILD)/tsan/obj/%.o) $(TB_OBJS:$(BUILD)/tb/%=$(BUILD)/tsan/%) $(LIB_SRCS:%.c=$(BUILD)/tsan/obj/%.o)
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) -rdynamic $(THREAD_SANITIZE) -o $$@ $$(filter %.o,$$^) $(3) $$(LIB_LDLIBS) -lcmocka -lm
-include $(2:%.c=$(BUILD)/tsan/obj/%.d) $(LIB_SRCS:%.c=$(BUILD)/tsan/obj/%.d)
endef

$(BUILD)/tsan/obj/%.o: %.c | $(GEN_H)
	$(call say,CC,$< (thread sanitizer))
	$(Q)mkdir -p $(@D)
	$(Q)$(OBJCACHE) $(CC) $(CFLAGS) $(CPPFLAGS) $(HOST_CPPFLAGS) $(TB_CPPFLAGS) $(THREAD_SANITIZE) -MMD -MP -c -o $@ $<

$(BUILD)/tb/obj/%.o: %.c | $(GEN_H)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(OBJCACHE) $(CC) $(CFLAGS) $(CPPFLAGS) $(HOST_CPPFLAGS) $(TB_CPPFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/san/obj/%.o: %.c | $(GEN_H)
	$(call say,CC,$< (sanitized))
	$(Q)mkdir -p $(@D)
	$(Q)$(OBJCACHE) $(CC) $(CFLAGS) $(CPPFLAGS) $(HOST_CPPFLAGS) $(TB_CPPFLAGS) $(SANITIZE) -MMD -MP -c -o $@ $<

-include $(TB_OBJS:.o=.d)
