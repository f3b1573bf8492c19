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
ULX3S_SIM := tb/board/ct_ulx3s_pins.sv tb/board/ct_ecp5_models.sv rtl/boards/ulx3s/ct_ulx3s.sv
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

$(BUILD)/tb/$(1)/usb.so: $(BOARD_SRCS:%.c=$(BUILD)/$(1)/obj/%.o) $(SHARED_SRCS:%.c=$(BUILD)/obj/%.o) $(BUILD)/dut/$(2)/ct_board.a $(BUILD)/dut/libverilated.a
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CXX) -shared -Wl,-Bsymbolic -Wl,--no-undefined -Wl,--version-script=$(PLUGIN_MAP) -o $$@ $$^ -lz -lm -pthread
-include $(BOARD_SRCS:%.c=$(BUILD)/$(1)/obj/%.d)
endef
$(eval $(call board_rules,board,ct_board,40))
$(eval $(call board_rules,board-narrow,ct_board_narrow,$(BOARD_MHZ)))

$(eval $(call bench_rules,test_board,tb/board/test_board.c,,,$(BUILD)/lib/libcoltrain.a -ldl))
SYSTEM_TESTS += $(BUILD)/tb/test_board
$(BUILD)/tb/test_board: | $(BUILD)/tb/board/usb.so $(BUILD)/tb/board-narrow/usb.so $(BUILD)/same/gcc-O2/same_bytes $(BUILD)/bin/coltrain
