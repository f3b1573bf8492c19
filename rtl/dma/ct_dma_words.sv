// SPDX-License-Identifier: Apache-2.0
//
// The words of ST: pieces of both contexts are read from the SPM into slots, and leave from there as bursts of a client of ct_dma_wr.
//
//     piece ─> reader ─> ct_arbiter ─> SPM read ─> slots (4 per context) ─> burst ─> ct_dma_wr ─> beat ─> data
//
// Slots       a piece (a record, or up to 16 words of a raw run) is read into a slot of 16 words and 16 exponents; only when it is
//             complete is its burst offered, so that W never waits for data. The words of all slots lie in one block RAM; the
//             beat of exponents goes first and is therefore kept apart, zero for words that the record does not have.
// Bursts      in the order of the pieces. A record that crosses 4 KB leaves in two. The burst that a context has next is made out in the cycle
//             before it asks. at counts the words of the slot, from -1 for the beat of exponents; the end tag has the signals, of a
//             piece in two bursts with the second.
// Latency     piece taken in t: first word asked of the SPM in t + 1; last word of a piece asked for in t: its burst on offer in t + 5.
// Throughput  a word a cycle from the SPM, a beat a cycle.
// Errors      err_o[c] is combinational, with code and address, a parity error (a cycle after the word) before a word outside the SPM window.
// Dropped     under flush_i[c] and halt_i[c] pieces that are not granted are dropped. Abandoned (abandon_i): if W still stands in a burst of the
//             context, or words of it are on their way, the next pieces wait until that is through.
// Quiet       quiet_o[c]: nothing of c is left but granted bursts; idle_o[c]: W has taken those, too.

`default_nettype none
`include "ct_assert.svh"

module ct_dma_words #(
  localparam int unsigned AtW  = 5,
  localparam int unsigned TagW = 2 + 1,
  localparam int unsigned EndW = 10
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,

  input  logic [ct_pkg::QosW-1:0]       qos_i,
  input  logic [1:0]                    flush_i,
  input  logic [1:0]                    halt_i,
  input  logic [1:0]                    abandon_i,
  output logic [1:0]                    quiet_o,
  output logic [1:0]                    idle_o,

  // Pieces, from the ct_dma_seq of each context.
  input  logic [1:0]                    valid_i,
  output logic [1:0]                    ready_o,
  input  logic [63:0]                   addr_i,
  input  logic [9:0]                    beats_i,
  input  logic [2*ct_pkg::SpmAddrW-1:0] spm_i,
  input  logic [29:0]                   s0_i,
  input  logic [1:0]                    rec_i,
  input  logic [1:0]                    first_i,
  input  logic [2*EndW-1:0]             sigs_i,

  input  logic [2*ct_pkg::SpmAddrW-1:0] spm_base_i,
  input  logic [2*ct_pkg::SpmAddrW-1:0] spm_size_i,
  output logic [1:0]                    err_o,
  output logic [15:0]                   err_code_o,
  output logic [63:0]                   err_addr_o,

  output logic                          spm_rd_valid_o,
  output logic [ct_pkg::SpmAddrW-1:0]   spm_rd_addr_o,
  output logic                          spm_rd_ctx_o,
  input  logic                          spm_rd_ready_i,
  input  logic                          spm_rd_vld_i,
  input  logic [127:0]                  spm_rd_data_i,
  input  logic [7:0]                    spm_rd_exp_i,
  input  logic                          spm_rd_perr_i,

  // A client of ct_dma_wr.
  output logic [1:0]                    wr_valid_o,
  output logic [63:0]                   wr_addr_o,
  output logic [9:0]                    wr_beats_o,
  output logic [2*AtW-1:0]              wr_at_o,
  output logic [2*TagW-1:0]             wr_tag_o,
  output logic [2*EndW-1:0]             wr_end_tag_o,
  input  logic [1:0]                    wr_ready_i,
  output logic [1:0]                    wr_busy_o,
  input  logic [1:0]                    beat_i,
  input  logic [AtW-1:0]                beat_at_i,
  input  logic [TagW-1:0]               beat_tag_i,
  input  logic                          beat_last_i,
  output logic [127:0]                  data_o,
  input  logic [1:0]                    wr_within_i
);

  localparam int unsigned SpmW     = ct_pkg::SpmAddrW;
  localparam int unsigned SlotW    = 32 + 5 + 1 + EndW;
  localparam int unsigned ReadTagW = 8 + SpmW;

  logic [1:0] left_d, left_q;  // abandoned while W or the SPM had something of the context
  logic [1:0] clear;
  assign clear = flush_i | halt_i | left_q;

  // Slots of a context, used in order. Pointers run modulo 8, slots modulo 4: fill = next to be read into, done = next to be
  // complete, send = next to be granted, free = next to be empty again.
  logic [5:0]         fill_d, fill_q, done_d, done_q, send_d, send_q, free_d, free_q;
  logic [1:0]         half_d, half_q;  // the first burst of the slot at send is granted, the second is not
  logic [127:0]       exps_mem [0:7];
  (* no_rw_check *)                    // a slot is read when it is complete, see WordsApart_A
  logic [127:0]       word_mem [0:127];
  logic [2*SlotW-1:0] slot;            // next to be granted, of each context

  // ---------------------------------------------------------------------------------------------------------------------------
  // Reader: one piece of each context at a time, a word a cycle. A word is asked for in the first cycle of clear, too, and then forgotten: clear
  // comes from afar, and the scratchpad's choice does not wait for it.

  logic [1:0]        rd_v_d, rd_v_q;
  logic [9:0]        rd_left_q;             // words not yet asked for
  logic [7:0]        rd_idx_q;              // number of the next word in the piece
  logic [3:0]        rd_slot_q;
  logic [2*SpmW-1:0] rd_rel_q, rd_phys_q;   // its address
  logic [1:0]        rd_far_q;              // it is outside the SPM window
  logic [2*SpmW-1:0] rd_ahead_q;            // the address of the word after it
  logic [29:0]       rd_s0_q;
  logic [1:0]        rd_out, rd_req, rd_last, rd_gnt, rd_go, load;
  logic [1:0]        cleared_q;             // clear, a cycle later: then nothing is asked for

  always_comb begin
    for (int c = 0; c < 2; c++) begin
      rd_out[c]  = rd_v_q[c] && rd_far_q[c];
      rd_req[c]  = rd_v_q[c] && !rd_out[c];
      rd_last[c] = rd_left_q[5*c +: 5] == 5'd1;
    end
  end

  ct_arbiter u_rd_arbiter (
    .clk_i, .rst_ni, .qos_i,
    .flush_i (cleared_q),
    .req_i   (rd_req),
    .defer_i (1'b0),
    .last_i  (rd_last),
    .take_i  (spm_rd_ready_i),
    .gnt_o   (rd_gnt)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cleared_q <= 2'b00;
    else         cleared_q <= clear;
  end

  assign spm_rd_valid_o = rd_gnt != 2'b00;
  assign spm_rd_addr_o  = rd_gnt[1] ? rd_phys_q[SpmW +: SpmW] : rd_phys_q[0 +: SpmW];
  assign spm_rd_ctx_o   = rd_gnt[1];
  assign rd_go          = spm_rd_ready_i ? rd_gnt : 2'b00;
  assign ready_o        = load;

  always_comb begin
    for (int c = 0; c < 2; c++) begin
      load[c]   = valid_i[c] && !clear[c] && fill_q[3*c +: 3] - free_q[3*c +: 3] != 3'd4 &&
                  (!rd_v_q[c] || (rd_go[c] && rd_last[c]));
      rd_v_d[c] = !clear[c] && (load[c] || (rd_v_q[c] && !(rd_go[c] && rd_last[c])));
    end
  end

`ifdef FORMAL
  logic [8*SlotW-1:0] f_slots;
`endif

  // (A slot memory of each context: with two write ports it would not be RAM.)
  for (genvar c = 0; c < 2; c++) begin : g_reader
`ifdef FORMAL
    (* mem2reg *)
`endif
    logic [SlotW-1:0] slot_mem [0:3];
    assign slot[SlotW*c +: SlotW] = slot_mem[send_q[3*c +: 2]];

    always_ff @(posedge clk_i) begin
      if (rd_go[c]) begin
        rd_left_q[5*c +: 5]        <= rd_left_q[5*c +: 5] - 5'd1;
        rd_idx_q[4*c +: 4]         <= rd_idx_q[4*c +: 4] + 4'd1;
        rd_rel_q[SpmW*c +: SpmW]   <= rd_ahead_q[SpmW*c +: SpmW];
        rd_far_q[c]                <= rd_ahead_q[SpmW*c +: SpmW] >= spm_size_i[SpmW*c +: SpmW];
        rd_phys_q[SpmW*c +: SpmW]  <= rd_phys_q[SpmW*c +: SpmW] + {{(SpmW-15){1'b0}}, rd_s0_q[15*c +: 15]};
        rd_ahead_q[SpmW*c +: SpmW] <= rd_ahead_q[SpmW*c +: SpmW] + {{(SpmW-15){1'b0}}, rd_s0_q[15*c +: 15]};
      end
      if (load[c]) begin
        rd_left_q[5*c +: 5] <= beats_i[5*c +: 5] - {4'd0, rec_i[c]};
        rd_idx_q[4*c +: 4]  <= 4'd0;
        rd_slot_q[2*c +: 2] <= fill_q[3*c +: 2];
        rd_s0_q[15*c +: 15] <= s0_i[15*c +: 15];
        if (first_i[c]) begin
          rd_rel_q[SpmW*c +: SpmW]   <= spm_i[SpmW*c +: SpmW];
          rd_far_q[c]                <= spm_i[SpmW*c +: SpmW] >= spm_size_i[SpmW*c +: SpmW];
          rd_ahead_q[SpmW*c +: SpmW] <= spm_i[SpmW*c +: SpmW] + {{(SpmW-15){1'b0}}, s0_i[15*c +: 15]};
          rd_phys_q[SpmW*c +: SpmW]  <= spm_i[SpmW*c +: SpmW] + spm_base_i[SpmW*c +: SpmW];
        end
        slot_mem[fill_q[3*c +: 2]] <= {addr_i[32*c +: 32], beats_i[5*c +: 5], rec_i[c], sigs_i[EndW*c +: EndW]};
      end
    end
`ifdef FORMAL
    assign f_slots[4*SlotW*c +: 4*SlotW] = {slot_mem[3], slot_mem[2], slot_mem[1], slot_mem[0]};
`endif
  end

  // What was asked for comes two cycles later, with its tag: context, slot, number of the word, last of the piece, address.
  logic [1:0]          tag_v_q;
  logic [ReadTagW-1:0] tag0_q, tag1_q;
  logic                t_ctx, t_last;
  logic [1:0]          t_slot;
  logic [3:0]          t_idx;
  logic [SpmW-1:0]     t_phys;
  logic                t_come;
  logic [1:0]          tags;  // words of the context are on their way
  // Whether a word is right is known a cycle after it has come: it lies in its slot then. (After a bad one the context is
  // stopped in the next cycle, before anything of the slot is offered.)
  logic                p_v_q, p_ctx_q, p_last_q, p_perr_q, p_bad;
  logic [SpmW-1:0]     p_phys_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      tag_v_q <= 2'b00;
      p_v_q   <= 1'b0;
    end else begin
      tag_v_q <= {tag_v_q[0], (rd_go & ~clear) != 2'b00};
      p_v_q   <= t_come;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rd_go[0]) tag0_q <= {1'b0, rd_slot_q[1:0], rd_idx_q[3:0], rd_last[0], rd_phys_q[0 +: SpmW]};
    if (rd_go[1]) tag0_q <= {1'b1, rd_slot_q[3:2], rd_idx_q[7:4], rd_last[1], rd_phys_q[SpmW +: SpmW]};
    if (tag_v_q[0]) tag1_q <= tag0_q;
    if (t_come) {p_ctx_q, p_last_q, p_perr_q, p_phys_q} <= {t_ctx, t_last, spm_rd_perr_i, t_phys};
  end

  assign {t_ctx, t_slot, t_idx, t_last, t_phys} = tag1_q;
  assign t_come  = tag_v_q[1] && !clear[t_ctx];
  assign p_bad   = p_v_q && p_perr_q && !clear[p_ctx_q];
  assign tags[0] = (tag_v_q[0] && !tag0_q[ReadTagW-1]) || (tag_v_q[1] && !t_ctx) || (p_v_q && !p_ctx_q);
  assign tags[1] = (tag_v_q[0] && tag0_q[ReadTagW-1]) || (tag_v_q[1] && t_ctx) || (p_v_q && p_ctx_q);

  // The first word clears the exponents behind its own.
  always_ff @(posedge clk_i) begin
    if (t_come) begin
      word_mem[{t_ctx, t_slot, t_idx}] <= spm_rd_data_i;
      for (int i = 0; i < 16; i++) begin
        if (t_idx == 4'(i) || t_idx == 4'd0) exps_mem[{t_ctx, t_slot}][8*i +: 8] <= (i == 0 || t_idx != 4'd0) ? spm_rd_exp_i : 8'd0;
      end
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // The burst of each context that is offered next.

  logic [63:0]       next_addr;
  logic [9:0]        next_beats;
  logic [2*AtW-1:0]  next_at;
  logic [1:0]        next_end;   // it is the last of its piece
  logic [1:0]        ok_d, ok_q; // it was made out in the last cycle
  logic [1:0]        wr_end;

  always_comb begin
    next_addr  = '0;
    next_beats = '0;
    next_at    = '0;
    next_end   = 2'b00;
    ok_d       = 2'b00;
    for (int c = 0; c < 2; c++) if (done_q[3*c +: 3] != send_q[3*c +: 3]) begin
      ok_d[c] = !clear[c] && !wr_ready_i[c];
      // The second burst of a record starts at the 4 KB page that the first one ended at: with the word behind.
      next_addr[32*c +: 32] = half_q[c] ? {slot[SlotW*c + EndW + 14 +: 24] + 24'd1, 8'd0} : slot[SlotW*c + EndW + 6 +: 32];
      next_beats[5*c +: 5]  = slot[SlotW*c + EndW + 1 +: 5] + (half_q[c] ? slot[SlotW*c + EndW + 6 +: 5] : 5'd0);
      next_at[AtW*c +: AtW] = half_q[c] ? ~slot[SlotW*c + EndW + 6 +: 5] : {AtW{slot[SlotW*c + EndW]}};
      next_end[c]           = 1'b1;
      // (Only a first burst crosses a page.)
      if ({1'b0, slot[SlotW*c + EndW + 6 +: 8]} + {4'd0, slot[SlotW*c + EndW + 1 +: 5]} > 9'd256 && !half_q[c]) begin
        next_beats[5*c +: 5] = 5'd0 - slot[SlotW*c + EndW + 6 +: 5];
        next_end[c]          = 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ok_q <= 2'b00;
    else         ok_q <= ok_d;
  end

  always_ff @(posedge clk_i) begin
    wr_addr_o  <= next_addr;
    wr_beats_o <= next_beats;
    wr_at_o    <= next_at;
    wr_end     <= next_end;
    for (int c = 0; c < 2; c++) begin
      wr_tag_o[TagW*c +: TagW]     <= {send_q[3*c +: 2], next_end[c]};
      wr_end_tag_o[EndW*c +: EndW] <= next_end[c] ? slot[SlotW*c +: EndW] : '0;
    end
  end
  assign wr_valid_o = ok_q & ~clear;

  // ---------------------------------------------------------------------------------------------------------------------------
  // A beat: the word is read in the block RAM, or the exponents are beside it. The last one of a piece frees the slot.

  logic         b_ctx, b_fin;
  logic [1:0]   b_slot;
  logic         s_ctx_q, s_head_q;
  logic [1:0]   s_slot_q;
  logic [127:0] s_word_q;
  assign b_ctx           = beat_i[1];
  assign {b_slot, b_fin} = beat_tag_i;

  always_ff @(posedge clk_i) begin
    if (beat_i != 2'b00) begin
      s_ctx_q  <= b_ctx;
      s_slot_q <= b_slot;
      s_head_q <= beat_at_i[4];
      s_word_q <= word_mem[{b_ctx, b_slot, beat_at_i[3:0]}];
    end
  end
  assign data_o = s_head_q ? exps_mem[{s_ctx_q, s_slot_q}] : s_word_q;

  // Under clear all slots are forgotten; nothing can be read into one before W is through with its burst: the flush lasts until
  // its answer has come, or the context is marked left.
  always_comb begin
    fill_d = fill_q;
    done_d = done_q;
    send_d = send_q;
    free_d = free_q;
    half_d = half_q;
    for (int c = 0; c < 2; c++) begin
      if (p_v_q && p_last_q && p_ctx_q == c[0]) done_d[3*c +: 3] = done_q[3*c +: 3] + 3'd1;
      if (beat_i[c] && beat_last_i && b_fin) free_d[3*c +: 3] = free_q[3*c +: 3] + 3'd1;
      if (wr_ready_i[c]) begin
        half_d[c] = !wr_end[c];
        if (wr_end[c]) send_d[3*c +: 3] = send_q[3*c +: 3] + 3'd1;
      end
      if (load[c]) fill_d[3*c +: 3] = fill_q[3*c +: 3] + 3'd1;
      if (clear[c]) begin
        fill_d[3*c +: 3] = 3'd0;
        done_d[3*c +: 3] = 3'd0;
        send_d[3*c +: 3] = 3'd0;
        free_d[3*c +: 3] = 3'd0;
        half_d[c]        = 1'b0;
      end
      left_d[c] = (left_q[c] || abandon_i[c]) && (wr_within_i[c] || tags[c]);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fill_q <= '0;
      done_q <= '0;
      send_q <= '0;
      free_q <= '0;
      half_q <= '0;
      rd_v_q <= '0;
      left_q <= '0;
    end else begin
      fill_q <= fill_d;
      done_q <= done_d;
      send_q <= send_d;
      free_q <= free_d;
      half_q <= half_d;
      rd_v_q <= rd_v_d;
      left_q <= left_d;
    end
  end

  always_comb begin
    for (int c = 0; c < 2; c++) begin
      wr_busy_o[c] = fill_q[3*c +: 3] != send_q[3*c +: 3];
      quiet_o[c]   = fill_q[3*c +: 3] == send_q[3*c +: 3] && !rd_v_q[c] && !tags[c];
      idle_o[c]    = fill_q[3*c +: 3] == free_q[3*c +: 3] && !rd_v_q[c] && !tags[c];
    end
  end

  always_comb begin
    err_o      = 2'b00;
    err_code_o = '0;
    err_addr_o = '0;
    for (int c = 0; c < 2; c++) begin
      if (p_bad && p_ctx_q == c[0]) begin
        err_o[c]               = 1'b1;
        err_code_o[8*c +: 8]   = ct_pkg::ErrParity;
        err_addr_o[32*c +: 32] = {{(32-SpmW){1'b0}}, p_phys_q};
      end else if (rd_out[c] && !clear[c]) begin
        err_o[c]               = 1'b1;
        err_code_o[8*c +: 8]   = ct_pkg::ErrSpmWindow;
        err_addr_o[32*c +: 32] = {{(32-SpmW){1'b0}}, rd_rel_q[SpmW*c +: SpmW]};
      end
    end
  end

  // (A word that was asked for in the first cycle of clear comes, too.)
  `CT_ASSERT(SpmAnswersInTwo_A, spm_rd_vld_i || !tag_v_q[1])
  `CT_ASSERT(SlotsInOrder0_A, 3'(fill_q[2:0] - free_q[2:0]) <= 3'd4 && 3'(send_q[2:0] - free_q[2:0]) <= 3'(done_q[2:0] - free_q[2:0]) &&
                              3'(done_q[2:0] - free_q[2:0]) <= 3'(fill_q[2:0] - free_q[2:0]))
  `CT_ASSERT(SlotsInOrder1_A, 3'(fill_q[5:3] - free_q[5:3]) <= 3'd4 && 3'(send_q[5:3] - free_q[5:3]) <= 3'(done_q[5:3] - free_q[5:3]) &&
                              3'(done_q[5:3] - free_q[5:3]) <= 3'(fill_q[5:3] - free_q[5:3]))
  `CT_ASSERT(WordsApart_A, !(beat_i != 2'b00 && t_come) || {t_ctx, t_slot} != {b_ctx, b_slot})
`ifdef FORMAL
  `include "ct_dma_words_formal.svh"
`endif

  `CT_COVER(SecondBurst_C, (wr_ready_i & half_q) != 2'b00)

endmodule

`default_nettype wire
