// SPDX-License-Identifier: Apache-2.0
//
// Drives the Verilog of litex_soc.py by its Wishbone port: puts a job into the SoC's memory, sets
// the core's registers, waits for the interrupt and reads the product back. The core's reads and
// writes go through LiteX's converters to the same memory.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "Vsoc.h"
#include "job.h"
#include "verilated.h"

namespace {

constexpr uint32_t kCore = 0x30000000, kRam = 0x40000000;
constexpr uint64_t kTooLong = 200000;  // cycles

struct Bench {
  VerilatedContext context;
  Vsoc soc{&context};
  uint64_t cycle = 0;
  bool stuck = false;

  void Tick() {
    soc.clk = 0;
    soc.eval();
    soc.clk = 1;
    soc.eval();
    context.timeInc(1);
    ++cycle;
  }

  void Reset() {
    soc.rst = 1;
    for (int i = 0; i < 8; ++i)
      Tick();
    soc.rst = 0;
  }

  uint32_t Access(uint32_t address, bool write, uint32_t value) {
    uint32_t read = 0;
    const uint64_t start = cycle;
    soc.wb_adr = address / 4;
    soc.wb_dat_w = value;
    soc.wb_sel = 15;
    soc.wb_we = write;
    soc.wb_cyc = soc.wb_stb = 1;
    for (bool done = false; !done && !stuck;) {
      soc.clk = 0;
      soc.eval();
      done = soc.wb_ack;
      read = soc.wb_dat_r;
      Tick();
      stuck = cycle - start > kTooLong;
    }
    soc.wb_cyc = soc.wb_stb = 0;
    Tick();
    return read;
  }
  void Write(uint32_t address, uint32_t value) { Access(address, true, value); }
  uint32_t Read(uint32_t address) { return Access(address, false, 0); }
};

int Run() {
  Bench bench;
  std::vector<uint8_t> memory(job::kBytes);
  job::Put(memory);
  bench.Reset();
  const uint32_t id = bench.Read(kCore + CT_REG_ID);
  if (id != CT_ID_VALUE) {
    std::printf("ID reads 0x%08x\n", static_cast<unsigned>(id));
    return 1;
  }
  for (uint32_t at = 0; at < job::kBytes; at += 4) {
    uint32_t word;
    std::memcpy(&word, &memory[at], sizeof word);
    bench.Write(kRam + at, word);
  }
  for (const job::Setting &s : job::Settings())
    bench.Write(kCore + s.offset, s.value);
  const uint64_t start = bench.cycle;
  while (!bench.soc.irq && bench.cycle - start < kTooLong)
    bench.Tick();
  if (!bench.soc.irq || bench.stuck) {
    std::puts("the job does not end");
    return 1;
  }
  std::printf("the interrupt came after %llu cycles\n",
              static_cast<unsigned long long>(bench.cycle - start));
  for (uint32_t at = 0; at < job::kBytes; at += 4) {
    const uint32_t word = bench.Read(kRam + at);
    std::memcpy(&memory[at], &word, sizeof word);
  }
  return job::Check(bench.Read(kCore + job::kTagAt), bench.Read(kCore + job::kCodeAt), memory) ? 0
                                                                                               : 1;
}

}  // namespace

int main(int argc, char **argv) {
  Verilated::commandArgs(argc, argv);
  return Run();
}
