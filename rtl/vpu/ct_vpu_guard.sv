// SPDX-License-Identifier: Apache-2.0
//
// Keeps the DMA's loads from holding up VS for ever: a word that the memory sends lands in its bank at once, and a word of VS that
// wants the same bank waits.
//
// What        counts the cycles in which a word of VS is refused, less the words that are written. At 32 block_o rises: the DMA asks for
//             no burst, of either context, until 64 words of VS are written or VS has nothing under way. (Half of VS's cycles may be
//             lost without that: words that meet by chance stop no load.)
// Bound       with at most B beats outstanding when block_o rises, an operation of 64 words loses at most 64 + 32 + 2 B cycles to loads.
// Enable      enable_i low holds it off: under PRIORITY with the floor at 0 a VS of training stops no load of inference.

`default_nettype none
`include "ct_assert.svh"

module ct_vpu_guard (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic enable_i,
  input  logic busy_i,     // VS has an operation under way
  input  logic valid_i,    // a word of VS wants its bank
  input  logic ready_i,    // and has it
  output logic block_o
);

  localparam int unsigned Refusals = 32;
  localparam int unsigned Written  = 64;

  logic       block_d, block_q;
  logic [5:0] count_d, count_q;  // while block_o is low refusals, less words; else words
  logic       word, refused, over;

  assign word    = valid_i && ready_i;
  assign refused = valid_i && !ready_i;
  assign over    = !busy_i || !enable_i;

  always_comb begin
    block_d = block_q;
    count_d = count_q;
    if (block_q) begin
      if (word) count_d = count_q + 6'd1;
      if (word && count_q == 6'(Written - 1)) block_d = 1'b0;
    end else if (refused) begin
      count_d = count_q + 6'd1;
      if (count_q == 6'(Refusals - 1)) begin
        block_d = 1'b1;
        count_d = '0;
      end
    end else if (word && count_q != '0) begin
      count_d = count_q - 6'd1;
    end
    if (over) begin
      block_d = 1'b0;
      count_d = '0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      block_q <= 1'b0;
      count_q <= '0;
    end else begin
      block_q <= block_d;
      count_q <= count_d;
    end
  end

  assign block_o = block_q;

  `CT_ASSERT(CountInRange_A, block_q || count_q < 6'(Refusals))

`ifdef FORMAL
  // Beats that are outstanding: any number up to f_most, no more of them while block_o is high. Each refusal is one that lands.
  (* anyconst *) logic [8:0] f_most;
  (* anyseq *)   logic [8:0] f_asked;
  (* anyseq *)   logic       f_begin;
  logic [8:0] f_out_q;
  `CT_ASSUME(FewBeats_M, f_most <= 9'd272)
  `CT_ASSUME(BeatsThere_M, !refused || f_out_q != '0)
  `CT_ASSUME(AskedInCap_M, f_asked <= f_most)

  // From any moment on (f_begin): cycles lost and words written by operations that follow each other without a pause, up to 64 words;
  // whether block_o was high then and still is, has been low since, and was raised since.
  logic [10:0] f_lost_q;
  logic [6:0]  f_words_q;
  logic        f_old_q, f_was_q, f_new_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_out_q   <= '0;
      f_lost_q  <= '0;
      f_words_q <= '0;
      f_old_q   <= 1'b0;
      f_was_q   <= 1'b0;
      f_new_q   <= 1'b0;
    end else begin
      f_out_q <= block_q ? f_out_q - 9'(refused) : f_asked;
      if (f_begin || over || f_words_q + 7'(word) == 7'd64) begin
        f_lost_q  <= '0;
        f_words_q <= '0;
        f_old_q   <= block_d;
        f_was_q   <= 1'b0;
        f_new_q   <= 1'b0;
      end else begin
        f_lost_q  <= f_lost_q + 11'(refused);
        f_words_q <= f_words_q + 7'(word);
        f_old_q   <= f_old_q && block_d;
        f_was_q   <= f_was_q || (f_old_q && !block_d);
        f_new_q   <= f_new_q || (!block_q && block_d);
      end
    end
  end
  `CT_ASSERT(OutBounded_A, f_out_q <= f_most)
  `CT_ASSERT(Phases_A, !(f_old_q && (f_was_q || f_new_q)) && (!f_old_q || block_q) && (!block_q || f_old_q || f_new_q))
  `CT_ASSERT(OldLoses_A, !f_old_q || 11'(f_lost_q) + 11'(f_out_q) <= 11'(f_most))
  `CT_ASSERT(LowLoses_A, block_q || f_new_q || f_lost_q <= (f_was_q ? 11'(f_most) : 11'd0) + 11'(f_words_q) + 11'(count_q))
  `CT_ASSERT(NewLoses_A, !(block_q && f_new_q) || (f_lost_q + 11'(f_out_q) <= 11'd32 + 11'(f_words_q) + (f_was_q ? 11'(f_most) << 1 : 11'(f_most)) &&
                         7'(count_q) <= f_words_q))
  `CT_ASSERT(NewIsLast_A, f_words_q < 7'd64 && (block_q || !f_new_q))
  `CT_ASSERT(LossBound_A, f_lost_q <= 11'd96 + (11'(f_most) << 1))
`endif

endmodule

`default_nettype wire
