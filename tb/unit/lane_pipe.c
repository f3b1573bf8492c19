/* SPDX-License-Identifier: Apache-2.0 */
#include "lane_pipe.h"

#include <string.h>

void pipe_pack(uint32_t *words, unsigned width, unsigned index, uint32_t value) {
  const uint64_t mask = (UINT64_C(1) << width) - 1;
  const unsigned bit = width * index, word = bit / 32, low = bit % 32;
  const uint64_t clear = mask << low, set = (value & mask) << low;
  words[word] = (words[word] & (uint32_t)~clear) | (uint32_t)set;
  if (low + width > 32)
    words[word + 1] = (words[word + 1] & (uint32_t)(~clear >> 32)) | (uint32_t)(set >> 32);
}

static void check(lane_pipe *p, const pipe_slot *due) {
  const size_t bytes = p->words * sizeof(uint32_t);
  if (*p->valid_o != due->valid)
    fail_msg("%s: valid_o is %d in cycle %llu", p->name, *p->valid_o, (unsigned long long)p->cycle);
  if (due->valid) memcpy(p->held, due->want, bytes), p->seen = true;
  if (!p->seen || !memcmp(p->out, p->held, bytes)) return;
  for (unsigned w = 0; w < p->words; ++w)
    if (p->out[w] != p->held[w])
      print_error("%s: vector %llu, word %u: got %08X, want %08X%s\n", p->name,
                  (unsigned long long)due->number, w, p->out[w], p->held[w],
                  due->valid ? "" : " still");
  fail();
}

void pipe_step(lane_pipe *p, const uint32_t *want) {
  *p->valid_i = want != NULL;
  pipe_slot *slot = &p->slots[p->cycle % p->latency];
  slot->valid = want != NULL;
  if (want) {
    slot->number = p->sent++;
    memcpy(slot->want, want, p->words * sizeof(uint32_t));
  }
  p->tick(p->dut);
  ++p->cycle;
  check(p, &p->slots[p->cycle % p->latency]);
}

void pipe_drain(lane_pipe *p) {
  for (unsigned i = 0; i <= p->latency; ++i)
    pipe_step(p, NULL);
}
