# SPDX-License-Identifier: Apache-2.0
#
# Coltrain's build. Everything it makes lands under build/. `make help` lists the targets.
#
#   V=1            show the commands                       TRACE=1   models with waves (in build/trace; CT_TRACE=FILE at run time)
#   THREADS=2      simulator models of two threads (in build/threads2)
#   PROFILE=1      simulator models that a profiler can tell apart (in build/profile; scripts/sim-profile)
#   BUILD=DIR      build elsewhere                         CT_SEED=N the seed of the random tests
#   JOBS=N         test programs run at once (default 2)   BENCHES=  test-unit: only these, e.g. BENCHES="test_fifo test_skid"
#
# New files need no change here: RTL by folder (rtl/files.mk), host code by folder (host/host.mk), benches by one line each in
# tb/unit/benches.mk, tb/system/benches.mk and tb/host/benches.mk (what the lines mean: tb/harness/rules.mk).

TRACE   ?=
THREADS ?=
PROFILE ?=
BUILD ?= build$(if $(TRACE),/trace)$(if $(THREADS),/threads$(THREADS))$(if $(PROFILE),/profile)
JOBS  ?= 2

CC        ?= cc
CXX       ?= c++
# Verilated models: clang++ compiles them in two thirds of the time, and they run a quarter faster than g++'s.
MODEL_CXX ?= $(firstword $(notdir $(shell command -v clang++ 2>/dev/null)) $(CXX))
VERILATOR ?= verilator
YOSYS     ?= yosys
# Debian's, which has Debian's NumPy.
PYTHON    ?= /usr/bin/python3
OBJCACHE  ?= $(shell command -v ccache 2>/dev/null)
# Where the sources lie is in no object file, so trees of the same sources have the same ones, in the cache, too.
export CCACHE_BASEDIR ?= $(CURDIR)
CFLAGS    ?= -O2 -g
override CFLAGS += -std=c11 -fdebug-prefix-map=$(CURDIR)=. -Wall -Wextra -Werror -ffp-contract=off
CPPFLAGS  += -D_POSIX_C_SOURCE=200809L

empty :=
space := $(empty) $(empty)
comma := ,
Q     := $(if $(V),,@)
say    = $(if $(V),,@printf '  %-9s %s\n' '$(strip $(1))' '$(strip $(2))')

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules --no-print-directory
.SUFFIXES:

.PHONY: all help lint yosys-check test test-files test-unit test-system test-host test-python onnx-conformance python-check soc-check formal demo synth-ecp5 fpga fpga-synth format format-check tidy layers docs gen api core campaign campaign-quick results same-bytes host-paths mmio-guest usb-guest install uninstall manual deb clean

include rtl/files.mk
include host/host.mk
include host/install.mk
include tb/harness/rules.mk
-include tb/unit/benches.mk
-include tb/system/benches.mk
-include tb/host/benches.mk
-include tb/usb/benches.mk
-include tb/board/benches.mk
-include tb/python/benches.mk
-include tb/formal/formal.mk

export CC CXX MODEL_CXX PYTHON YOSYS VERILATOR BUILD RTL RTL_DIRS RTL_INCLUDES RTL_PKGS RTL_MODULES RTL_HEADERS WAIVERS REFUSED CFLAGS CPPFLAGS HOST_CPPFLAGS TB_CPPFLAGS

all: $(PRODUCTS)  ## The coltrain command, libcoltrain and the simulator plug-in, under build/ (the default)

help:  ## This list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@sed -n '/^#   V=1/,/^#$$/s/^# \{0,1\}//p' Makefile

# Checks, each a command whose output lists "ok" and "not ok" for its parts; test programs are cmocka's.
LINT_STEPS  := scripts/lint scripts/check-core scripts/python-check
YOSYS_STEPS := scripts/yosys-check scripts/axi-check scripts/refuse-check
# The longest of all (minutes), so it starts first: the whole board (narrow); then the tiny one, from RTL to a bitstream.
SYNTH_STEPS := "scripts/fpga --synth ulx3s narrow" scripts/fpga-check
SOURCE_STEPS := scripts/layers scripts/format-check scripts/clang-check "CT_TIDY=quick scripts/tidy-check" scripts/api-docs
# The core in the tools of others; each builds a model of the core.
SOC_STEPS := scripts/fusesoc-check scripts/litex-check
# tb/formal/formal.mk may add commands here.
FORMAL_STEPS ?=
UNIT_RUN     = $(if $(BENCHES),$(BENCHES:%=$(BUILD)/tb/%),$(UNIT_TESTS))
RUN          = +@BUILD=$(BUILD) JOBS=$(JOBS) scripts/run-tests.sh

lint: $(GEN_SVH)  ## Verilator's lint over every module, without a warning; coltrain.core lists the same files; mypy and ruff over the Python
	$(RUN) $(LINT_STEPS)

yosys-check: $(GEN_SVH)  ## Yosys reads every module correctly, finds no way from an AXI input to an AXI output; both tools refuse illegal parameters
	$(RUN) $(YOSYS_STEPS)

test-unit: $(UNIT_RUN)  ## The benches of the single blocks
	$(RUN) $(UNIT_RUN)

test-system: $(PRODUCTS) $(SYSTEM_TESTS)  ## Whole-core tests
	$(RUN) $(SYSTEM_TESTS)

test-host: $(HOST_TESTS) $(HOST_STEP_FILES)  ## Tests of the library, the tools and the examples, also under the sanitizers
	$(RUN) $(HOST_TESTS) $(HOST_STEPS)

test-python: $(PYTHON_STEP_FILES)  ## The Python package: types and style, pytest on the emulator and the simulator
	$(RUN) scripts/python-check $(PYTHON_STEPS)

soc-check:  ## The FuseSoC core and the LiteX wrapper, as others use them (scripts/setup installs both tools)
	$(RUN) $(SOC_STEPS)

formal: $(GEN_SVH)  ## Proofs of the small blocks (Yosys and z3)
	$(RUN) $(FORMAL_STEPS)

test-files: all $(GEN_SVH) $(UNIT_TESTS) $(SYSTEM_TESTS) $(HOST_TESTS) $(HOST_STEP_FILES) $(PYTHON_STEP_FILES)

test: test-files  ## Everything: FPGA budget, lint, Yosys, source checks, unit, host and system tests, proofs
	$(RUN) $(SYNTH_STEPS) $(SOC_STEPS) $(SYSTEM_TESTS) $(LINT_STEPS) $(YOSYS_STEPS) $(SOURCE_STEPS) $(UNIT_TESTS) $(HOST_TESTS) $(HOST_STEPS) $(PYTHON_STEPS) $(FORMAL_STEPS)

DEMO_ARGS ?= colocate --data digits --report $(BUILD)/demo/report.html --trace $(BUILD)/demo/trace.json
demo: all  ## Inference and training on one simulated accelerator, on the handwritten digits; a report and a trace in build/demo
	@mkdir -p $(BUILD)/demo
	@$(BUILD)/bin/coltrain $(DEMO_ARGS)

# The named configuration of the small board: parameters of ct_core, and what an LFE5U-85F may spend.
ECP5_TOP    ?= ct_core
ECP5_PARAMS ?= Cols=8 VpuLanes=4 SpmWords=8192
ECP5_BUDGET ?= MULT18X18D=156 DP16KD=208 LUT4=63000
export ECP5_TOP ECP5_PARAMS ECP5_BUDGET
synth-ecp5: $(GEN_SVH)  ## Yosys for ECP5: the small configuration (16x8, 4 lanes, 128 KB) against its budgets
	@scripts/synth-ecp5

# A board: BOARD=ulx3s, CONFIG= one of rtl/boards/BOARD/*.config, SEED=, FREQ= (MHz of the core).
BOARD  ?= ulx3s
CONFIG ?= narrow
export SEED FREQ
fpga: $(GEN_SVH)  ## From RTL to build/fpga/BOARD/BOARD.bit, with a report: BOARD=ulx3s, CONFIG=narrow, small or tiny, SEED=, FREQ= (docs/fpga.md)
	@scripts/fpga $(BOARD) $(CONFIG)

fpga-synth: $(GEN_SVH)  ## The synthesis of make fpga alone, against the budget of the configuration
	@scripts/fpga --synth $(BOARD) $(CONFIG)

format:  ## Format the C and C++ sources
	$(Q)scripts/format-check --fix

format-check:  ## Check the format of the C and C++ sources
	$(RUN) scripts/format-check

tidy: $(GEN_H) $(COMMIT_H)  ## clang-tidy over the host code and the harness
	$(RUN) scripts/tidy-check

onnx-conformance: $(BUILD)/lib/libcoltrain.so  ## ONNX's test cases of single operators (libonnx-testdata) on Coltrain: a table of each operator, nothing may fail
	$(Q)BUILD=$(BUILD) $(PYTHON) tb/python/onnx_cases.py
	$(Q)BUILD=$(BUILD) $(PYTHON) tb/python/onnx_cases.py --device emu:

python-check:  ## mypy (strict) and ruff over the Python sources
	$(RUN) scripts/python-check

layers:  ## The folders of the library have one direction: no include goes up
	$(RUN) scripts/layers

docs: $(GEN_DOCS)  ## Reference pages made from the tables (build/docs)

gen: $(GEN_SVH) $(GEN_H) $(COMMIT_H) $(GEN_DOCS)  ## Only the files generated from the tables (build/gen)

api:  ## Write what is made of the headers in host/include/coltrain: docs/api.md and the declarations of the Python package
	$(Q)scripts/api-docs --fix
	$(Q)$(PYTHON) scripts/python-abi --fix

core:  ## Write the list of RTL files into coltrain.core
	$(Q)scripts/check-core --fix

campaign: all  ## The measurements behind docs/data and docs/results.md, which it writes (a day on two cores)
	$(Q)scripts/campaign

results:  ## Write docs/results.md and its charts from docs/data
	$(Q)$(PYTHON) scripts/results

# A point needs all of its requests; a tenth of the points does for a look.
campaign-quick: all  ## A tenth of the co-location experiment (a report in build/experiments/colocation-quick), and half a minute of fuzz-usb
	@$(BUILD)/bin/coltrain experiment colocation --quick --jobs $(JOBS) --out $(BUILD)/experiments/colocation-quick
	$(if $(USB_SRCS),@$(MAKE) -s fuzz-usb)

# One after the other: each has the machine for itself, since what it drives keeps time.
host-paths: all  ## The ways to a device in a real Linux in QEMU, real drivers included: mmio-guest and usb-guest (needs scripts/setup guest; two minutes)
	$(Q)scripts/mmio-guest
	$(Q)scripts/usb-guest

mmio-guest: all  ## mmio: there, by sysfs, /dev/uio0 and /dev/mem
	$(Q)scripts/mmio-guest

usb-guest: all  ## usb: there, by the kernel's USB stack, udev with our rule and libusb, as an ordinary user
	$(Q)scripts/usb-guest

clean:  ## Remove build/
	$(Q)rm -rf $(BUILD)
