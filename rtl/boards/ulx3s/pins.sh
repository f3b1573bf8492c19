# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
# The pins of a ULX3S, for all of its configurations (*.config).
# Which clock the pins belong to (scripts/clock-check); all others are asynchronous.
CLOCKS="ft_=ft_clk sdram_=clk"
# Pins whose registers are in the pins (scripts/io-registers): all that are timed, but ft_txe_n, which goes through logic, and those that never change.
PIN_REGISTERS="ft_oe_n ft_rd_n ft_wr_n ft_siwu_n ft_data ft_rxf_n sdram_rasn sdram_casn sdram_wen sdram_ba sdram_a sdram_dqm sdram_d"
# From a pin through logic to a register of a clock, in ns: docs/fpga.md has the sum.
PIN_NS="ft_txe_n=ft_clk:8.5"
