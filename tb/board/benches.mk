# SPDX-License-Identifier: Apache-2.0
#
# The whole board, Verilated, behind the unmodified plug-in for USB; a folder for COLTRAIN_PLUGIN_DIR each.
#
#   build/tb/board/usb.so          ct_board, 16 x 8 at 40 MHz
#   build/tb/board-narrow/usb.so   ct_ulx3s, pads and all, in the configuration that make fpga makes, 16 x 4, with the slowest core that it may get
#
# Another clock for the second (a change of it alone is not seen): rm -r build/tb/board-narrow build/board-narrow build/dut/ct_board_narrow; make BOARD_MHZ=35 build/tb/board-narrow/usb.so
BOARD_MHZ    ?= 25
BOARD_NARROW := $(shell . ./rtl/boards/ulx3s/narrow.config && echo $$PARAMS)

$(BUILD)/dut/ct_board/ct_board.a $(BUILD)/dut/ct_board_narrow/ct_board.a: private export OPT := -O2 -fPIC
$(call dut,ct_board,ct_board,rtl/boards/ct_board.sv)
# (The same name in a folder of its own: what is linked with it is the same source.)
ULX3S_PADS := tb/board/ct_ulx3s_pins.sv rtl/boards/ulx3s/ct_ecp5_cells.sv
ULX3S_SIM  := $(ULX3S_PADS) rtl/boards/ulx3s/ct_ulx3s.sv
$(BUILD)/dut/ct_board_narrow/ct_board.a: $(ULX3S_SIM) rtl/boards/ulx3s/narrow.config $(WAIVERS) tb/harness/verilate.sh tb/harness/vshim.awk | $(GEN_SVH)
	$(call say,VERILATE,ct_board_narrow)
	$(Q)tb/harness/verilate.sh ct_board ct_ulx3s_pins $(@D) $(ULX3S_SIM) -- -GCoreMhz=$(BOARD_MHZ) $(BOARD_NARROW:%=-G%)
-include $(BUILD)/dut/ct_board_narrow/ct_board.d

BOARD_SRCS := tb/board/board_link.c tb/board/board_sim.c host/transports/sim/ct_sdram_chip.c host/transports/usb/ct_usb.c $(FRAME_SRCS)

# 1 folder, 2 the model's, 3 MHz
define board_rules
$(BUILD)/$(1)/obj/%.o: %.c $(BUILD)/dut/$(2)/ct_board.a | $(GEN_H)
	$$(call say,CC,$$< ($(1)))
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(OBJCACHE) $$(CC) $$(CFLAGS) $$(CPPFLAGS) $$(HOST_CPPFLAGS) $$(TB_CPPFLAGS) -DBOARD_MHZ=$(3) -I$(BUILD)/dut/$(2) -I. -fPIC -MMD -MP -c -o $$@ $$<

$(BUILD)/tb/$(1)/usb.so: $(BOARD_SRCS:%.c=$(BUILD)/$(1)/obj/%.o) $(SHARED_SRCS:%.c=$(BUILD)/obj/%.o) $(BUILD)/dut/$(2)/ct_board.a $(BUILD)/dut/libverilated.a tb/board/plugin.map
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CXX) -shared -Wl,-Bsymbolic -Wl,--no-undefined -Wl,--version-script=tb/board/plugin.map -o $$@ $$(filter-out %.map,$$^) -lz -lm -pthread
-include $(BOARD_SRCS:%.c=$(BUILD)/$(1)/obj/%.d)
endef
$(eval $(call board_rules,board,ct_board,40))
$(eval $(call board_rules,board-narrow,ct_board_narrow,$(BOARD_MHZ)))

$(eval $(call bench_rules,test_board,tb/board/test_board.c,,,$(BUILD)/lib/libcoltrain.a -ldl))
SYSTEM_TESTS += $(BUILD)/tb/test_board
$(BUILD)/tb/test_board: | $(BUILD)/tb/board/usb.so $(BUILD)/tb/board-narrow/usb.so $(BUILD)/same/gcc-O2/same_bytes $(BUILD)/bin/coltrain

# Broken copies of ct_ulx3s, without a core, which test_pads must find out (as in tb/unit/benches.mk): $(call pads,NAME,SED), the program build/tb/pads/NAME;
# without SED of ct_ulx3s itself. (Their ports are the same, so what is linked with them is compiled once. They run for a moment, so the models' compiler hurries.)
PADS_OBJS := $(patsubst %.c,$(BUILD)/pads/obj/%.o,tb/board/try_memory.c $(filter-out %/ct_usb.c,$(BOARD_SRCS))) $(SHARED_SRCS:%.c=$(BUILD)/obj/%.o) $(TB_OBJS)
pads = $(eval $(call pads_rules,$(strip $(1)),$(2),$(if $(2),$(BUILD)/broken/pads_$(strip $(1))/ct_ulx3s.sv,rtl/boards/ulx3s/ct_ulx3s.sv)))
define pads_rules
PADS += $(BUILD)/tb/pads/$(1)
$(if $(2),$(call broken_rules,pads_$(1),,rtl/boards/ulx3s/ct_ulx3s.sv,$(2)))
$(BUILD)/dut/pads_$(1)/ct_board.a: private export OPT := -O0 -fPIC
$(BUILD)/dut/pads_$(1)/ct_board.a: $(ULX3S_PADS) $(3) $(WAIVERS) tb/harness/verilate.sh tb/harness/vshim.awk | $(GEN_SVH)
	$$(call say,VERILATE,pads_$(1))
	$$(Q)tb/harness/verilate.sh ct_board ct_ulx3s_pins $$(@D) $(ULX3S_PADS) $(3) -- -GCoreMhz=25 -GCore=0 -Wno-UNUSEDSIGNAL
-include $(BUILD)/dut/pads_$(1)/ct_board.d

$(BUILD)/tb/pads/$(1): $(PADS_OBJS) $(BUILD)/dut/pads_$(1)/ct_board.a $(BUILD)/dut/libverilated.a
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CXX) -o $$@ $$^ -lcmocka -lz -lm -pthread
endef
$(eval $(call board_rules,pads,pads_good,25))
-include $(BUILD)/pads/obj/tb/board/try_memory.d
$(call pads,good)
$(call pads,inverted,s/\.T(!ft_drive)/.T(ft_drive)/;s/\.T(!dq_oe)/.T(dq_oe)/)
$(call pads,dq,s/\.T(!dq_oe)/.T(1'"'"'b0)/)
$(call pads,ft,s/\.T(!ft_drive)/.T(1'"'"'b0)/)
$(call pads,through,s/always_ff @(negedge clk) dq_in_q <= dq_in/assign dq_in_q = dq_in/)
$(call pads,clock,s/\.D0(1'"'"'b0)$(comma) \.D1(1'"'"'b1)/.D0(1'"'"'b1)$(comma) .D1(1'"'"'b0)/)

$(eval $(call bench_rules,test_pads,tb/board/test_pads.c))
SYSTEM_TESTS += $(BUILD)/tb/test_pads
$(BUILD)/tb/test_pads: | $(PADS)
