# SPDX-License-Identifier: Apache-2.0
#
# The whole board, Verilated, behind the unmodified plug-in for USB: build/tb/board/usb.so, for COLTRAIN_PLUGIN_DIR.

$(BUILD)/dut/ct_board/ct_board.a: private export OPT := -O2 -fPIC
$(call dut,ct_board,ct_board,rtl/boards/ct_board.sv)

BOARD_SRCS := tb/board/board_link.c tb/board/board_sim.c host/transports/sim/ct_sdram_chip.c host/transports/usb/ct_usb.c $(FRAME_SRCS)
BOARD_OBJS := $(BOARD_SRCS:%.c=$(BUILD)/board/obj/%.o)
$(BUILD)/board/obj/%.o: %.c $(BUILD)/dut/ct_board/ct_board.a | $(GEN_H)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(OBJCACHE) $(CC) $(CFLAGS) $(CPPFLAGS) $(HOST_CPPFLAGS) $(TB_CPPFLAGS) -I$(BUILD)/dut/ct_board -I. -fPIC -MMD -MP -c -o $@ $<

$(BUILD)/tb/board/usb.so: $(BOARD_OBJS) $(SHARED_SRCS:%.c=$(BUILD)/obj/%.o) $(BUILD)/dut/ct_board/ct_board.a $(BUILD)/dut/libverilated.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) -shared -Wl,-Bsymbolic -Wl,--no-undefined -Wl,--version-script=$(PLUGIN_MAP) -o $@ $^ -lz -lm -pthread
-include $(BOARD_OBJS:.o=.d)

$(eval $(call bench_rules,test_board,tb/board/test_board.c,,,$(BUILD)/lib/libcoltrain.a -ldl))
SYSTEM_TESTS += $(BUILD)/tb/test_board
$(BUILD)/tb/test_board: | $(BUILD)/tb/board/usb.so $(BUILD)/same/gcc-O2/same_bytes $(BUILD)/bin/coltrain
