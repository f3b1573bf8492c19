// SPDX-License-Identifier: Apache-2.0
//
// A job for benches: two tiles of 16 x 16 integers are multiplied. The program is what `coltrain
// disasm --matmul 16 16 16 --result fp32` shows. Needs coltrain_spec.h, which is made from the
// tables in rtl/spec, and nothing else of this project.

#ifndef COLTRAIN_JOB_H
#define COLTRAIN_JOB_H

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "coltrain_spec.h"

namespace job {

constexpr uint32_t kUnit = 16;  // bytes that DRAM addresses count in
constexpr uint32_t kProgram =
    0x400;  // byte addresses of what lies in memory; the descriptor is at 0
constexpr uint32_t kA = 0x1000, kB = 0x2000, kC = 0x3000;
constexpr uint32_t kBytes = 0x4000;
constexpr uint32_t kWords = 1024;  // of the scratchpad that the context may use
constexpr uint32_t kTag = 42;
constexpr uint8_t kOne = 133;  // the exponent with which a mantissa is an integer
constexpr uint32_t kTagAt = CT_CTX_BASE + CT_CREG_CPL_TAG, kCodeAt = CT_CTX_BASE + CT_CREG_CPL_CODE;

// A command of 256 bits, field by field.
struct Command {
  uint32_t word[8] = {};

  explicit Command(uint32_t op) { Set(CT_F_ALL_OP_LSB, op); }
  Command &Set(unsigned lsb, uint32_t value) {
    word[lsb / 32] |= value << lsb % 32;
    if (lsb % 32 != 0 && value >> (32 - lsb % 32) != 0)
      word[lsb / 32 + 1] |= value >> (32 - lsb % 32);
    return *this;
  }
  // A semaphore in a field: bit 4 says that it counts.
  Command &Sem(unsigned lsb, unsigned number) { return Set(lsb, 16 + number); }
};

// A record, 16 exponents and 16 rows of mantissas, to the scratchpad; signals when it is there.
inline Command LoadTile(uint32_t dram, uint32_t spm, unsigned sem) {
  return Command(CT_OP_LD)
      .Set(CT_F_DMA_DRAM_LSB, dram / kUnit)
      .Set(CT_F_DMA_SPM_LSB, spm)
      .Set(CT_F_DMA_HDR_LSB, 1)
      .Set(CT_F_DMA_NB_LSB, 16)
      .Set(CT_F_DMA_S0_LSB, 1)
      .Set(CT_F_DMA_N1_LSB, 1)
      .Set(CT_F_DMA_N2_LSB, 1)
      .Sem(CT_F_ALL_SIG0_LSB, sem);
}

inline std::vector<Command> Program() {
  const Command product = Command(CT_OP_MM)
                              .Set(CT_F_MM_A_LSB, 0x80)
                              .Set(CT_F_MM_B_LSB, 0x90)
                              .Set(CT_F_MM_KT_LSB, 1)
                              .Set(CT_F_MM_NT_LSB, 1)
                              .Set(CT_F_MM_ROWS_LSB, 16)
                              .Sem(CT_F_ALL_WAIT0_LSB, 0)
                              .Sem(CT_F_ALL_WAIT1_LSB, 1)
                              .Sem(CT_F_ALL_SIG1_LSB, 2);
  const Command fetch = Command(CT_OP_VA)
                            .Set(CT_F_VA_A_SRC_LSB, 1)
                            .Set(CT_F_VA_ROWS_LSB, 16)
                            .Set(CT_F_VA_COLS_LSB, 16)
                            .Sem(CT_F_ALL_WAIT0_LSB, 2)
                            .Sem(CT_F_ALL_SIG0_LSB, 3);
  const Command put = Command(CT_OP_VS)
                          .Set(CT_F_VS_ROW_STRIDE_LSB, 4)
                          .Set(CT_F_VS_ROWS_LSB, 16)
                          .Sem(CT_F_ALL_WAIT0_LSB, 3)
                          .Sem(CT_F_ALL_SIG0_LSB, 4);
  const Command store = Command(CT_OP_ST)
                            .Set(CT_F_DMA_DRAM_LSB, kC / kUnit)
                            .Set(CT_F_DMA_NB_LSB, 64)
                            .Set(CT_F_DMA_S0_LSB, 1)
                            .Set(CT_F_DMA_N1_LSB, 1)
                            .Set(CT_F_DMA_N2_LSB, 1)
                            .Sem(CT_F_ALL_WAIT0_LSB, 4);
  return {LoadTile(kA, 0x80, 0), LoadTile(kB, 0x90, 1), product, fetch, put, store,
          Command(CT_OP_END)};
}

inline int8_t Element(uint32_t tile, unsigned row, unsigned col) {
  return static_cast<int8_t>((row * 7 + col * 5 + tile) % 31 - 15);
}

inline void PutTile(std::vector<uint8_t> &memory, uint32_t at) {
  for (unsigned r = 0; r < 16; ++r) {
    memory.at(at + r) = kOne;
    for (unsigned c = 0; c < 16; ++c)
      memory.at(at + kUnit * (r + 1) + c) = static_cast<uint8_t>(Element(at, r, c));
  }
}

inline void PutWord(std::vector<uint8_t> &memory, uint32_t at, uint32_t value) {
  std::memcpy(&memory.at(at), &value, sizeof value);
}

// Descriptor, program and operands.
inline void Put(std::vector<uint8_t> &memory) {
  const std::vector<Command> program = Program();
  PutWord(memory, 4 * CT_DESC_TAG, kTag);
  PutWord(memory, 4 * CT_DESC_PROG, kProgram / kUnit);
  PutWord(memory, 4 * CT_DESC_NCMDS, static_cast<uint32_t>(program.size()));
  for (size_t i = 0; i < program.size(); ++i)
    std::memcpy(&memory.at(kProgram + CT_CMD_BYTES * i), program[i].word, CT_CMD_BYTES);
  PutTile(memory, kA);
  PutTile(memory, kB);
}

// What is written to registers for it, the doorbell last.
struct Setting {
  uint32_t offset, value;
};

inline std::vector<Setting> Settings() {
  return {{CT_CTX_BASE + CT_CREG_RD_LIMIT, kBytes / kUnit},
          {CT_CTX_BASE + CT_CREG_WR_LIMIT, kBytes / kUnit},
          {CT_CTX_BASE + CT_CREG_SPM_SIZE, kWords},
          {CT_REG_IRQ_ENABLE, 1},
          {CT_CTX_BASE + CT_CREG_TAIL, 1}};
}

// Whether the job has ended well, and C = A * B' as MM defines it.
inline bool Check(uint32_t tag, uint32_t code, const std::vector<uint8_t> &memory) {
  std::printf("job %u ended with code %u\n", static_cast<unsigned>(tag),
              static_cast<unsigned>(code));
  if (tag != kTag || code != CT_DEV_OK) return false;
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned j = 0; j < 16; ++j) {
      int want = 0;
      float got;
      for (unsigned k = 0; k < 16; ++k)
        want += Element(kA, i, k) * Element(kB, j, k);
      std::memcpy(&got, &memory.at(kC + 4 * (16 * i + j)), sizeof got);
      if (got == static_cast<float>(want)) continue;
      std::printf("element %u,%u is %g and should be %d\n", i, j, static_cast<double>(got), want);
      return false;
    }
  std::puts("the product is right");
  return true;
}

}  // namespace job

#endif
