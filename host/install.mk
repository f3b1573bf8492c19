# SPDX-License-Identifier: Apache-2.0
#
# Folders of an installation.

PREFIX        ?= /usr/local
BINDIR        ?= $(PREFIX)/bin
LIBDIR        ?= $(PREFIX)/lib
INCLUDEDIR    ?= $(PREFIX)/include
MANDIR        ?= $(PREFIX)/share/man
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions
PYTHONDIR     ?= $(PREFIX)/lib/python3/dist-packages
UDEVDIR       ?= $(PREFIX)/lib/udev/rules.d
