# SPDX-License-Identifier: Apache-2.0
#
# The proofs: one step of `make formal` for each tb/formal/BLOCK.proof (commands: tb/formal/prove), the slowest first.
FORMAL_BLOCKS := $(patsubst tb/formal/%.proof,%,$(wildcard tb/formal/*.proof))
FORMAL_STEPS  += $(FORMAL_BLOCKS:%="tb/formal/prove %") "tb/formal/prove --docs"
