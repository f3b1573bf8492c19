// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_vpu_guard (tb/formal/ct_vpu_guard.proof), included at its end.

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
