# SPDX-License-Identifier: Apache-2.0
#
# The tests of boards on USB without hardware; tb/harness/rules.mk says what the lines mean.

ifneq ($(USB_SRCS),)
$(call host_test,test_usb_board,tb/usb/test_usb_board.c tb/usb/ct_usb_board.c host/transports/usb/ct_usb_frame.c,-lz)

# With the real libusb over umockdev, where that is installed.
UMOCKDEV_CFLAGS := $(shell pkg-config --cflags umockdev-1.0 2>/dev/null)
ifneq ($(UMOCKDEV_CFLAGS),)
$(BUILD)/tb/obj/tb/usb/ct_usb_bed.o: private HOST_CPPFLAGS += $(UMOCKDEV_CFLAGS) -D_DEFAULT_SOURCE
TEST_USB_SRCS := tb/usb/test_usb.c tb/usb/ct_usb_bed.c tb/usb/ct_usb_board.c host/transports/usb/ct_usb_frame.c tb/host/cli_run.c tb/host/tiny_program.c
HOST_TESTS += $(BUILD)/tb/test_usb
$(BUILD)/tb/test_usb: $(TEST_USB_SRCS:%.c=$(BUILD)/tb/obj/%.o) $(TB_OBJS) $(BUILD)/lib/libcoltrain.a | $(BUILD)/lib/coltrain/usb.so $(BUILD)/lib/coltrain/sim.so $(BUILD)/bin/coltrain
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -rdynamic -o $@ $(filter %.o %.a,$^) $(LIB_LDLIBS) -lz -ljansson $(shell pkg-config --libs umockdev-1.0) -lcmocka -lm
-include $(TEST_USB_SRCS:%.c=$(BUILD)/tb/obj/%.d)
endif
endif
