# SPDX-License-Identifier: Apache-2.0
"""The core as a part of a LiteX SoC: registers on its bus, the AXI4 master on its memory, the interrupt.

    from coltrain_litex import add_coltrain

    half = soc.bus.regions["main_ram"].size // 2
    add_coltrain(soc, origin=0x30000000, memory=soc.mem_map["main_ram"] + half, DramMib=half >> 20, Cols=8, VpuLanes=4, SpmWords=8192)

The master's address 0 is the SoC's address `memory`; from there on DramMib MiB are the core's, so nothing of a CPU may lie there. LiteX
converts AXI4 of 128 bits to whatever the bus is; on Wishbone that is one beat at a time, which works and is slow: give `master` to a port
of the memory controller where there is one of AXI4 (docs/integration.md).
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from litex.gen import LiteXModule
from litex.soc.integration.soc import SoCRegion
from litex.soc.interconnect import axi
from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourceLevel
from migen import ClockSignal, Instance, ResetSignal, Signal

ROOT = Path(__file__).resolve().parents[2]
REGISTERS = 0x1000


def sources(root: Path = ROOT) -> list[Path]:
    """The RTL, packages first, as coltrain.core lists it."""
    return [root / f for f in re.findall(r"^ +- (rtl/\S+\.sv)$", (root / "coltrain.core").read_text(encoding="utf-8"), re.MULTILINE)]


def generate(folder: Path, root: Path = ROOT) -> None:
    """Puts what is made from the tables into a folder: ct_spec.svh, ct_fn_table.svh, coltrain_spec.h."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as config:
        config.write(f"files_root: {root}\nvlnv: ::coltrain-tables:0\n")
        config.flush()
        subprocess.run([root / "scripts/fusesoc-gen", config.name], cwd=folder, check=True)


def ports(prefix: str, channels: dict[str, tuple[Any, str, str]], master: bool) -> dict[str, Any]:
    """Pins of AXI channels: name -> (channel, fields that go with valid, fields that are called otherwise), with directions."""
    pins: dict[str, Any] = {}
    for name, (channel, fields, forward) in channels.items():
        out = (forward == "out") == master
        give, take = ("o", "i") if out else ("i", "o")
        end, back = ("_o", "_i") if out else ("_i", "_o")
        pins[f"{give}_{prefix}_{name}valid{end}"] = channel.valid
        pins[f"{take}_{prefix}_{name}ready{back}"] = channel.ready
        for field in fields.split():
            pins[f"{give}_{prefix}_{name}{field}{end}"] = getattr(channel, field)
    return pins


class Coltrain(LiteXModule):  # type: ignore[misc]
    """ct_core: `bus` (AXI4-Lite slave), `master` (AXI4, 128 bits), `irq`. Parameters are those of ct_core."""

    def __init__(self, platform: Any, gen: Path, memory: int = 0, root: Path = ROOT, **parameters: int) -> None:
        self.bus = axi.AXILiteInterface(data_width=32, address_width=32)
        self.master = axi.AXIInterface(data_width=128, address_width=32, id_width=1)
        self.irq = Signal()
        read_at, write_at = Signal(36), Signal(36)
        bus, master = self.bus, self.master
        self.comb += [master.ar.addr.eq(read_at + memory), master.aw.addr.eq(write_at + memory)]
        slave = {
            "aw": (bus.aw, "", "out"), "w": (bus.w, "data strb", "out"), "b": (bus.b, "resp", "in"),
            "ar": (bus.ar, "", "out"), "r": (bus.r, "data resp", "in"),
        }  # fmt: skip
        wide = {
            "aw": (master.aw, "len size burst id", "out"), "w": (master.w, "data strb last", "out"), "b": (master.b, "resp id", "in"),
            "ar": (master.ar, "len size burst id", "out"), "r": (master.r, "data resp last id", "in"),
        }  # fmt: skip
        self.specials += Instance(
            "ct_core",
            **{f"p_{name}": value for name, value in parameters.items()},
            i_clk_i=ClockSignal(),
            i_rst_ni=~ResetSignal(),
            i_s_axil_awaddr_i=bus.aw.addr[:12],
            i_s_axil_araddr_i=bus.ar.addr[:12],
            o_m_axi_awaddr_o=write_at,
            o_m_axi_araddr_o=read_at,
            o_irq_o=self.irq,
            **ports("s_axil", slave, master=False),
            **ports("m_axi", wide, master=True),
        )
        generate(gen, root)
        for source in sources(root):
            platform.add_source(str(source), language="systemverilog")
        platform.add_verilog_include_path(str(root / "rtl/include"))
        platform.add_verilog_include_path(str(gen))


def add_coltrain(
    soc: Any, origin: int, memory: int, gen: Path = Path("build/coltrain_gen"), name: str = "coltrain", **parameters: int
) -> Coltrain:
    """Adds the core to a SoC: registers at origin, device memory from `memory` on. With a CPU the interrupt is its event `done`.

    ClockHz is the SoC's, unless it is among the parameters."""
    core = Coltrain(soc.platform, gen.resolve(), memory, **{"ClockHz": soc.sys_clk_freq, **parameters})
    soc.add_module(name=name, module=core)
    soc.bus.add_slave(name, core.bus, SoCRegion(origin=origin, size=REGISTERS, cached=False))
    soc.bus.add_master(f"{name}_dma", core.master)
    if soc.irq.enabled:
        core.ev = EventManager()
        core.ev.done = EventSourceLevel()
        core.ev.finalize()
        core.comb += core.ev.done.trigger.eq(core.irq)
        soc.irq.add(name, use_loc_if_exists=True)
    return core
