# SPDX-License-Identifier: Apache-2.0
#
# make install, uninstall, manual and deb; scripts/install has the list of what goes where, docs/install.md tells users.

PREFIX        ?= /usr/local
BINDIR        ?= $(PREFIX)/bin
LIBDIR        ?= $(PREFIX)/lib
INCLUDEDIR    ?= $(PREFIX)/include
MANDIR        ?= $(PREFIX)/share/man
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions
PYTHONDIR     ?= $(PREFIX)/lib/python3/dist-packages
UDEVDIR       ?= $(PREFIX)/lib/udev/rules.d
INSTALL = $(foreach v,DESTDIR PREFIX BINDIR LIBDIR INCLUDEDIR MANDIR COMPLETIONDIR PYTHONDIR UDEVDIR LIB_SONAME,$(v)='$($(v))') scripts/install

# Man pages and the completion of bash, from what the command and the header say of themselves.
MANUAL := $(BUILD)/manual/bash-completion/coltrain
$(MANUAL): $(BUILD)/bin/coltrain $(PYTHON_PROGRAMS) $(wildcard host/include/coltrain/*.h) scripts/manual scripts/api-docs
	$(call say,MANUAL,$(BUILD)/manual)
	$(Q)rm -rf $(BUILD)/manual
	$(Q)$(PYTHON) scripts/manual $(BUILD)/bin/coltrain $(BUILD)/manual

manual: $(MANUAL)  ## Man pages and the completion of bash (build/manual)

install: $(PRODUCTS) $(MANUAL)  ## Install into PREFIX (/usr/local), below DESTDIR if that is given (docs/install.md)
	$(Q)$(INSTALL) install

uninstall: $(PRODUCTS) $(MANUAL)  ## Take away what make install has put there, with the same PREFIX
	$(Q)$(INSTALL) uninstall

deb:  ## Debian's packages and lintian, in a clean copy (build/deb; minutes, needs scripts/setup package)
	$(RUN) scripts/deb
