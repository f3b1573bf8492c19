// SPDX-License-Identifier: Apache-2.0
//
// The least that runs the core: registers by AXI4-Lite, a memory behind the AXI4 master, one job.
//
// A bench of its own, for people who bring the core into their SoC (docs/integration.md): it needs
// Verilator's model of ct_core (Vct_core.h), job.h and coltrain_spec.h, which is made from the
// tables in rtl/spec. Exit status 0: the product is right.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "Vct_core.h"
#include "job.h"
#include "verilated.h"

namespace {

constexpr uint64_t kTooLong = 100000;  // cycles

std::vector<uint8_t> memory(job::kBytes);

// ---- The memory: one read burst and one write burst at a time
// -------------------------------------------------------------------

struct Slave {
  bool reading = false, writing = false, answering = false;
  uint32_t read_at = 0, read_left = 0, write_at = 0;
  uint8_t read_id = 0, write_id = 0;

  // What it drives; nothing of it depends on what the core drives in the same cycle.
  void Drive(Vct_core &core) const {
    core.m_axi_arready_i = !reading;
    core.m_axi_rvalid_i = reading;
    core.m_axi_rid_i = read_id;
    core.m_axi_rlast_i = read_left == 1;
    core.m_axi_rresp_i = 0;
    if (reading) std::memcpy(&core.m_axi_rdata_i[0], &memory.at(read_at), job::kUnit);
    core.m_axi_awready_i = !writing && !answering;
    core.m_axi_wready_i = writing;
    core.m_axi_bvalid_i = answering;
    core.m_axi_bid_i = write_id;
    core.m_axi_bresp_i = 0;
  }

  // What the rising edge hands over.
  void Take(const Vct_core &core) {
    if (reading && core.m_axi_rready_o) {
      read_at += job::kUnit;
      reading = --read_left != 0;
    } else if (!reading && core.m_axi_arvalid_o) {
      reading = true;
      read_at = static_cast<uint32_t>(core.m_axi_araddr_o);
      read_left = core.m_axi_arlen_o + 1u;
      read_id = core.m_axi_arid_o;
    }
    if (answering) {
      if (core.m_axi_bready_o) answering = false;
    } else if (writing) {
      if (core.m_axi_wvalid_o) {
        uint8_t bytes[job::kUnit];
        std::memcpy(bytes, &core.m_axi_wdata_o[0], job::kUnit);
        for (uint32_t i = 0; i < job::kUnit; ++i)
          if (core.m_axi_wstrb_o >> i & 1) memory.at(write_at + i) = bytes[i];
        write_at += job::kUnit;
        answering = core.m_axi_wlast_o;
        writing = !core.m_axi_wlast_o;
      }
    } else if (core.m_axi_awvalid_o) {
      writing = true;
      write_at = static_cast<uint32_t>(core.m_axi_awaddr_o);
      write_id = core.m_axi_awid_o;
    }
  }
};

struct Bench {
  VerilatedContext context;
  std::unique_ptr<Vct_core> core{new Vct_core{&context}};
  Slave slave;
  uint64_t cycle = 0;

  void Tick() {
    core->clk_i = 0;
    slave.Drive(*core);
    core->eval();
    context.timeInc(1);
    slave.Take(*core);
    core->clk_i = 1;
    core->eval();
    context.timeInc(1);
    ++cycle;
  }

  void Reset() {
    core->rst_ni = 0;
    for (int i = 0; i < 4; ++i)
      Tick();
    core->rst_ni = 1;
  }

  // Address and data of a write go when each is taken; an answer is taken at once.
  void Write(uint32_t offset, uint32_t value) {
    bool addr = true, data = true;
    core->s_axil_awaddr_i = static_cast<uint16_t>(offset);
    core->s_axil_wdata_i = value;
    core->s_axil_wstrb_i = 15;
    core->s_axil_bready_i = 1;
    for (bool done = false; !done;) {
      core->s_axil_awvalid_i = addr;
      core->s_axil_wvalid_i = data;
      core->clk_i = 0;
      core->eval();
      const bool addr_taken = addr && core->s_axil_awready_o,
                 data_taken = data && core->s_axil_wready_o;
      done = core->s_axil_bvalid_o;
      Tick();
      addr = addr && !addr_taken;
      data = data && !data_taken;
    }
    core->s_axil_awvalid_i = core->s_axil_wvalid_i = 0;
  }

  uint32_t Read(uint32_t offset) {
    bool addr = true;
    uint32_t value = 0;
    core->s_axil_araddr_i = static_cast<uint16_t>(offset);
    core->s_axil_rready_i = 1;
    for (bool done = false; !done;) {
      core->s_axil_arvalid_i = addr;
      core->clk_i = 0;
      core->eval();
      const bool taken = addr && core->s_axil_arready_o;
      done = core->s_axil_rvalid_o;
      value = core->s_axil_rdata_o;
      Tick();
      addr = addr && !taken;
    }
    core->s_axil_arvalid_i = 0;
    return value;
  }
};

int Run() {
  Bench bench;
  job::Put(memory);
  bench.Reset();
  if (bench.Read(CT_REG_ID) != CT_ID_VALUE) {
    std::puts("the registers do not answer");
    return 1;
  }
  for (const job::Setting &s : job::Settings())
    bench.Write(s.offset, s.value);
  const uint64_t start = bench.cycle;
  while (!bench.core->irq_o) {
    bench.Tick();
    if (bench.cycle - start < kTooLong) continue;
    std::puts("the job does not end");
    return 1;
  }
  std::printf("the interrupt came after %llu cycles\n",
              static_cast<unsigned long long>(bench.cycle - start));
  return job::Check(bench.Read(job::kTagAt), bench.Read(job::kCodeAt), memory) ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) {
  Verilated::commandArgs(argc, argv);
  return Run();
}
