# SPDX-License-Identifier: Apache-2.0
"""A LiteX SoC without a CPU for a bench: a Wishbone port in place of the CPU, memory on the bus, the core. Writes its Verilog.

    build/litex/bin/python tb/integration/litex_soc.py FOLDER     FOLDER gets soc.v, sources.f and gen/
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from coltrain_litex import add_coltrain
from litex.build.generic_platform import GenericPlatform, Pins, Subsignal
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect import wishbone
from migen import ClockDomain, Module

CORE, RAM, BYTES = 0x30000000, 0x40000000, 0x4000
WIDTHS = {"adr": 30, "dat_w": 32, "dat_r": 32, "sel": 4, "cyc": 1, "stb": 1, "ack": 1, "we": 1, "cti": 3, "bte": 2, "err": 1}
IO = [
    ("clk", 0, Pins(1)),
    ("rst", 0, Pins(1)),
    ("irq", 0, Pins(1)),
    ("wb", 0, *(Subsignal(name, Pins(width)) for name, width in WIDTHS.items())),
]


class Clock(Module):  # type: ignore[misc]
    def __init__(self, platform: Any) -> None:
        self.clock_domains.cd_sys = ClockDomain()
        self.comb += [self.cd_sys.clk.eq(platform.request("clk")), self.cd_sys.rst.eq(platform.request("rst"))]


class Soc(SoCCore):  # type: ignore[misc]
    def __init__(self, platform: Any, gen: Path) -> None:
        SoCCore.__init__(
            self, platform, 100_000_000, cpu_type=None, integrated_sram_size=0, integrated_main_ram_size=BYTES, with_uart=False,
            with_timer=False, bus_standard="wishbone", ident="",
        )  # fmt: skip
        self.submodules.crg = Clock(platform)
        core = add_coltrain(self, CORE, RAM, gen, Cols=8, VpuLanes=4, SpmWords=1024, QueueDepth=4, Batcher=0)
        port = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.comb += [*port.connect_to_pads(platform.request("wb"), mode="slave"), platform.request("irq").eq(core.irq)]
        self.bus.add_master("bench", port)


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    # Migen writes what memories begin with beside whoever calls it, and the model reads it from there.
    os.chdir(folder)
    platform = GenericPlatform("none", IO, name="soc")
    soc = Soc(platform, folder / "gen")
    soc.finalize()
    platform.get_verilog(soc, name="soc").write(str(folder / "soc.v"))
    includes = [f"-I{p}" for p in platform.verilog_include_paths]
    files = [s[0] for s in platform.sources]
    (folder / "sources.f").write_text("\n".join([*includes, *files]) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
