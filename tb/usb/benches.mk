# SPDX-License-Identifier: Apache-2.0
#
# The tests of boards on USB without hardware; tb/harness/rules.mk says what the lines mean.

ifneq ($(USB_SRCS),)
$(call host_test,test_usb_board,tb/usb/test_usb_board.c tb/usb/ct_usb_board.c host/transports/frames/ct_usb_frame.c,-lz)

# The whole board with its FT245 pins, for the bed: at 60 MHz, so that the core's clock is no slower than the pins'.
$(call dut,ct_board_usb,ct_board,rtl/boards/ct_board.sv,-GClockHz=60000000 -GPowerUpUs=1)

# For scripts/usb-guest, with Debian's libusbredirparser: the board on the USB of a QEMU.
$(BUILD)/tb/obj/tb/usb/ct_usb_rtl.o $(BUILD)/san/obj/tb/usb/ct_usb_rtl.o: private HOST_CPPFLAGS += -I$(BUILD)/dut/ct_board_usb
$(BUILD)/tb/obj/tb/usb/ct_usb_rtl.o $(BUILD)/san/obj/tb/usb/ct_usb_rtl.o: $(BUILD)/dut/ct_board_usb/ct_board_usb.a
USB_REDIR_SRCS := tb/usb/usb_redir.c tb/usb/ct_usb_chip.c tb/usb/ct_usb_rtl.c host/transports/sim/ct_sdram_chip.c
$(BUILD)/tb/usb_redir: $(USB_REDIR_SRCS:%.c=$(BUILD)/tb/obj/%.o) $(BUILD)/dut/ct_board_usb/ct_board_usb.a $(BUILD)/dut/libverilated.a
	$(call say,LINK,$@)
	$(Q)$(CXX) -o $@ $(filter %.o %.a,$^) -lusbredirparser -pthread
-include $(USB_REDIR_SRCS:%.c=$(BUILD)/tb/obj/%.d)

# $(call bed_test,TEST,SOURCES,KIND): a program over a bed, of what KIND (USB, SERIAL) has: KIND_BED_SRCS, KIND_BED_LIBS (models), KIND_BED_PLUGIN,
# KIND_BED_LDLIBS. TEST_asan is the same under the sanitizers, linked with KIND_BED_ASAN.
bed_test = $(eval $(call bed_test_rules,$(strip $(1)),$(2) $($(3)_BED_SRCS),$(3)))
define bed_test_rules
$(BUILD)/tb/$(1): $(2:%.c=$(BUILD)/tb/obj/%.o) $(TB_OBJS) $(BUILD)/lib/libcoltrain.a $($(3)_BED_LIBS) | $(BUILD)/lib/coltrain/$($(3)_BED_PLUGIN) $(BUILD)/lib/coltrain/sim.so $(BUILD)/bin/coltrain
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CXX) -rdynamic -o $$@ $$(filter %.o %.a,$$^) $$(LIB_LDLIBS) -lz -ljansson $($(3)_BED_LDLIBS) -lcmocka -lm -pthread
$(BUILD)/tb/$(1)_asan: $(2:%.c=$(BUILD)/san/obj/%.o) $(TB_OBJS:$(BUILD)/tb/%=$(BUILD)/san/%) $(BUILD)/san/lib/libcoltrain.a $($(3)_BED_LIBS) | $(BUILD)/lib/coltrain/$($(3)_BED_PLUGIN) $(BUILD)/lib/coltrain/sim.so $(BUILD)/bin/coltrain
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CXX) -rdynamic $(SANITIZE) $($(3)_BED_ASAN) -o $$@ $$(filter %.o %.a,$$^) $$(LIB_LDLIBS) -lz -ljansson $($(3)_BED_LDLIBS) -lcmocka -lm -pthread
HOST_TESTS += $(BUILD)/tb/$(1)
HOST_STEP_FILES += $(BUILD)/tb/$(1)_asan
-include $(2:%.c=$(BUILD)/tb/obj/%.d) $(2:%.c=$(BUILD)/san/obj/%.d)
endef

# With the real libusb over umockdev, where that is installed.
UMOCKDEV_CFLAGS := $(shell pkg-config --cflags umockdev-1.0 2>/dev/null)
ifneq ($(UMOCKDEV_CFLAGS),)
$(BUILD)/tb/obj/tb/usb/ct_usb_bed.o $(BUILD)/san/obj/tb/usb/ct_usb_bed.o: private HOST_CPPFLAGS += $(UMOCKDEV_CFLAGS) -D_DEFAULT_SOURCE
USB_BED_SRCS := tb/usb/ct_usb_bed.c tb/usb/ct_usb_behind.c tb/usb/ct_usb_board.c tb/usb/ct_usb_rtl.c host/transports/sim/ct_sdram_chip.c host/transports/frames/ct_usb_frame.c tb/host/cli_run.c tb/host/tiny_program.c
USB_BED_LIBS := $(BUILD)/dut/ct_board_usb/ct_board_usb.a $(BUILD)/dut/libverilated.a
USB_BED_PLUGIN := usb.so
USB_BED_LDLIBS := $(shell pkg-config --libs umockdev-1.0 2>/dev/null)
# umockdev's library is loaded before the sanitizer's could be.
USB_BED_ASAN := -static-libasan -static-libubsan

$(call bed_test,test_usb,tb/usb/test_usb.c,USB)
$(call bed_test,conform_usb,tb/host/conform.c tb/host/ct_modes.c tb/usb/conform_usb.c,USB)
HOST_STEPS += "$(BUILD)/tb/test_usb_asan rtl:" "$(BUILD)/tb/conform_usb_asan"
else
HOST_STEPS += "echo 'ok - test_usb, conform_usb \# skip no umockdev: install libumockdev-dev'"
endif

# On a serial port, which is a pseudo terminal; with the Verilated board of tb/board behind it, too.
$(BUILD)/tb/obj/tb/board/board_sim.o $(BUILD)/san/obj/tb/board/board_sim.o: private HOST_CPPFLAGS += -I$(BUILD)/dut/ct_board
$(BUILD)/tb/obj/tb/board/board_sim.o $(BUILD)/san/obj/tb/board/board_sim.o: $(BUILD)/dut/ct_board/ct_board.a
SERIAL_BED_SRCS := tb/usb/ct_serial_bed.c tb/usb/ct_usb_behind.c tb/usb/ct_usb_board.c tb/board/board_sim.c host/transports/sim/ct_sdram_chip.c host/transports/frames/ct_usb_frame.c tb/host/cli_run.c tb/host/tiny_program.c
SERIAL_BED_LIBS := $(BUILD)/dut/ct_board/ct_board.a $(BUILD)/dut/libverilated.a
SERIAL_BED_PLUGIN := serial.so

$(call bed_test,test_serial,tb/usb/test_serial.c,SERIAL)
$(call bed_test,conform_serial,tb/host/conform.c tb/host/ct_modes.c tb/usb/conform_serial.c,SERIAL)
HOST_STEPS += "$(BUILD)/tb/test_serial_asan" "$(BUILD)/tb/conform_serial_asan"

# The decoder under libFuzzer, CT_FUZZ seconds. Where clang lacks it (Debian: libclang-rt-dev), a line says that it is skipped.
FUZZ_FLAGS ?= -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
FUZZ_PROBE := int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }
.PHONY: fuzz-usb
fuzz-usb:  ## libFuzzer on the decoder of frames of USB, for CT_FUZZ seconds (30)
	$(Q)mkdir -p $(BUILD)/fuzz
	$(Q)if echo '$(FUZZ_PROBE)' | clang $(FUZZ_FLAGS) -x c -o $(BUILD)/fuzz/probe - 2>$(BUILD)/fuzz/probe.log; then \
	  $(MAKE) -s $(BUILD)/tb/fuzz_frame && cd $(BUILD)/fuzz && \
	  { ../tb/fuzz_frame -max_total_time=$(or $(CT_FUZZ),30) -max_len=8192 -print_final_stats=1 2>fuzz.log; s=$$?; tail -n 6 fuzz.log; exit $$s; }; \
	else echo "ok - fuzz-usb # skip this machine's clang links no libFuzzer ($(BUILD)/fuzz/probe.log): install libclang-rt-dev"; fi
$(BUILD)/tb/fuzz_frame: tb/usb/fuzz_frame.c host/transports/frames/ct_usb_frame.c host/transports/frames/ct_usb_frame.h
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)clang -std=c11 -g -O1 $(FUZZ_FLAGS) $(CPPFLAGS) -I. -o $@ $(filter %.c,$^) -lz
endif
