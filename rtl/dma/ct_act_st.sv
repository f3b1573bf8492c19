// SPDX-License-Identifier: Apache-2.0
//
// Stores tiles of the scratchpad as groups of compressed activations (docs/compression.md): a client of ct_dma_wr for one context.
//
//     words of the SPM ─> ct_fifo ─> ct_act_enc ─> buffer of two groups ─> page ─> bursts ─> entry ─> index unit
//
// Request     a group: 16 (tiles_i + 1) words from spm_i on, its bound, its number entry_i in the unit index_i of the index, which is written behind the
//             group with store_i. Groups of a unit come in ascending order of their entries; those that do not come are 0. Requests are done in order.
// Page        take_*: see ct_act_pages. A group lies in one page, so no burst crosses 4 KB: arena_i is a multiple of 256 units.
// Signals     the end of the burst of an index unit carries sigs_i of its request; other bursts carry none.
// Throughput  as ct_act_enc: while one group is written the next is encoded, and the one behind read.
// Errors      err_o with a kind and an address, until clear: a word outside the SPM window (relative), a word with wrong parity (physical), a group or an index
//             unit outside the window (first unit outside), no room in the arena (the group's index unit). What fails is not written.
// Flush       flush_i and halt_i forget everything but the data of bursts that W still has (within_i). abandon_i as in ct_dma_words. idle_o: nothing is left
//             but granted bursts.

`default_nettype none
`include "ct_assert.svh"

module ct_act_st #(
  parameter  int unsigned PageW = 10,
  parameter  int unsigned EndW  = 10,
  localparam int unsigned AtW   = 8,
  localparam int unsigned TagW  = 2,
  localparam int unsigned SpmW  = ct_pkg::SpmAddrW
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              flush_i,
  input  logic              halt_i,
  input  logic              abandon_i,
  output logic              idle_o,

  input  logic              valid_i,
  output logic              ready_o,
  input  logic [SpmW-1:0]   spm_i,
  input  logic [1:0]        tiles_i,
  input  logic [7:0]        bound_i,
  input  logic [31:0]       index_i,
  input  logic [1:0]        entry_i,
  input  logic              store_i,
  input  logic [EndW-1:0]   sigs_i,

  input  logic [31:0]       arena_i,
  input  logic [31:0]       base_i,
  input  logic [31:0]       limit_i,
  input  logic [SpmW-1:0]   spm_base_i,
  input  logic [SpmW-1:0]   spm_size_i,
  output logic              err_o,
  output logic [1:0]        err_kind_o,  // 0 SPM window, 1 parity, 2 DRAM window, 3 no room
  output logic [31:0]       err_addr_o,

  output logic              spm_rd_valid_o,
  output logic [SpmW-1:0]   spm_rd_addr_o,
  input  logic              spm_rd_ready_i,
  input  logic [127:0]      spm_rd_data_i,  // two cycles after ready
  input  logic [7:0]        spm_rd_exp_i,
  input  logic              spm_rd_perr_i,

  output logic              take_valid_o,
  output logic [6:0]        take_units_o,
  input  logic              take_ready_i,
  input  logic              take_none_i,
  input  logic [PageW+7:0]  take_place_i,

  // A client of ct_dma_wr.
  output logic              wr_valid_o,
  output logic [31:0]       wr_addr_o,
  output logic [4:0]        wr_beats_o,
  output logic [AtW-1:0]    wr_at_o,
  output logic [TagW-1:0]   wr_tag_o,
  output logic [EndW-1:0]   wr_end_tag_o,
  input  logic              wr_ready_i,
  output logic              wr_busy_o,
  input  logic              beat_i,
  input  logic [AtW-1:0]    beat_at_i,
  input  logic [TagW-1:0]   beat_tag_i,
  input  logic              beat_last_i,
  output logic [127:0]      data_o,
  input  logic              within_i
);

  logic left_d, left_q, clear;   // abandoned while W had something
  assign clear  = flush_i || halt_i || left_q;
  assign left_d = (left_q || abandon_i) && within_i;

  // ---------------------------------------------------------------------------------------------------------------------------
  // Requests: what the reader needs goes to it, the rest waits until the group is encoded.

  localparam int unsigned ParW = 32 + 2 + 1 + EndW;
  logic             load, par_pop;
  logic [2:0]       par_in_q, par_out_q;      // modulo 8, of 4 places
  logic [ParW-1:0]  par_mem [0:3];
  logic [31:0]      p_index;
  logic [1:0]       p_entry;
  logic             p_store, rd_v_q, rd_go, rd_last;
  logic [EndW-1:0]  p_sigs;
  assign {p_index, p_entry, p_store, p_sigs} = par_mem[par_out_q[1:0]];
  assign ready_o = !clear && 3'(par_in_q - par_out_q) != 3'd4 && (!rd_v_q || (rd_go && rd_last));
  assign load    = valid_i && ready_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      par_in_q  <= '0;
      par_out_q <= '0;
    end else begin
      par_in_q  <= clear ? 3'd0 : par_in_q + 3'(load);
      par_out_q <= clear ? 3'd0 : par_out_q + 3'(par_pop);
    end
  end

  always_ff @(posedge clk_i) begin
    if (load) par_mem[par_in_q[1:0]] <= {index_i, entry_i, store_i, sigs_i};
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // Reader: a word a cycle, as long as there is room for all that were asked for. Their bound and tiles go with them.

  localparam int unsigned WordW = 128 + 8 + 8 + 2;
  logic [6:0]       rd_left_q;
  logic [SpmW-1:0]  rd_rel_q, rd_phys_q, rd_phys1_q, rd_phys2_q;
  logic [9:0]       rd_kind_q, rd_kind1_q, rd_kind2_q;  // bound, tiles
  logic [1:0]       come_q;                   // words on their way
  logic             rd_out, enc_ready, w_valid, w_pop, w_bad;
  logic [3:0]       w_in_q, w_out_q, owed;    // modulo 16, of 8 places; words asked for and not taken by the encoder
  logic [WordW-1:0] w_mem [0:7];
  logic [WordW-1:0] word;

  assign owed           = 4'(w_in_q - w_out_q) + 4'(come_q[0]) + 4'(come_q[1]);
  assign rd_out         = rd_v_q && rd_rel_q >= spm_size_i;
  assign rd_last        = rd_left_q == 7'd1;
  assign spm_rd_valid_o = rd_v_q && !rd_out && owed != 4'd8 && !clear;
  assign spm_rd_addr_o  = rd_phys_q;
  assign rd_go          = spm_rd_valid_o && spm_rd_ready_i;
  assign w_valid        = w_in_q != w_out_q;
  assign w_pop          = w_valid && enc_ready;
  assign w_bad          = come_q[1] && spm_rd_perr_i && !clear;
  assign word           = w_mem[w_out_q[2:0]];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rd_v_q  <= 1'b0;
      come_q  <= '0;
      w_in_q  <= '0;
      w_out_q <= '0;
      left_q  <= 1'b0;
    end else begin
      rd_v_q  <= !clear && (load || (rd_v_q && !(rd_go && rd_last)));
      come_q  <= clear ? 2'b00 : {come_q[0], rd_go};
      w_in_q  <= clear ? 4'd0 : w_in_q + 4'(come_q[1]);
      w_out_q <= clear ? 4'd0 : w_out_q + 4'(w_pop);
      left_q  <= left_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rd_go) begin
      rd_left_q <= rd_left_q - 7'd1;
      rd_rel_q  <= rd_rel_q + SpmW'(1);
      rd_phys_q <= rd_phys_q + SpmW'(1);
    end
    if (load) begin
      rd_left_q <= {1'b0, tiles_i, 4'd0} + 7'd16;
      rd_rel_q  <= spm_i;
      rd_phys_q <= spm_i + spm_base_i;
      rd_kind_q <= {bound_i, tiles_i};
    end
    {rd_phys1_q, rd_kind1_q} <= {rd_phys_q, rd_kind_q};
    {rd_phys2_q, rd_kind2_q} <= {rd_phys1_q, rd_kind1_q};
    if (come_q[1]) w_mem[w_in_q[2:0]] <= {rd_kind2_q, spm_rd_exp_i, spm_rd_data_i};
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // The encoder, and the buffer of two groups. Place 127 of each is for the index unit.

  logic         e_valid, e_ready, e_last, e_idle, fill_q, idx_we;
  logic [127:0] e_data;
  logic [6:0]   e_units, fill_at_q;
  logic [1:0]   full_d, full_q, sent_d, sent_q;  // encoded and not through W; all its bursts are granted
  logic [13:0]  units_q;
  (* no_rw_check *)                              // a place is read when its group is whole
  logic [127:0] buf_mem [0:255];
  logic [127:0] entries_q;
  logic [7:0]   buf_at;

  ct_act_enc u_enc (
    .clk_i, .rst_ni,
    .flush_i (clear),
    .idle_o  (e_idle),
    .bound_i (word[145:138]),
    .tiles_i (word[137:136]),
    .valid_i (w_valid),
    .ready_o (enc_ready),
    .data_i  (word[127:0]),
    .exp_i   (word[135:128]),
    .valid_o (e_valid),
    .ready_i (e_ready),
    .data_o  (e_data),
    .last_o  (e_last),
    .units_o (e_units)
  );

  assign e_ready = !full_q[fill_q] && !idx_we && !clear;
  assign buf_at  = idx_we ? {send_q, 7'd127} : {fill_q, fill_at_q};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fill_q    <= 1'b0;
      fill_at_q <= '0;
    end else if (clear) begin
      fill_q    <= 1'b0;
      fill_at_q <= '0;
    end else if (e_valid && e_ready) begin
      fill_q    <= fill_q ^ e_last;
      fill_at_q <= e_last ? 7'd0 : fill_at_q + 7'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (idx_we || (e_valid && e_ready)) buf_mem[buf_at] <= idx_we ? entries_q : e_data;
    if (e_valid && e_ready && e_last) units_q[7*fill_q +: 7] <= e_units;
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // A group gets its page, then its bursts are offered, then that of the index unit.

  typedef enum logic [2:0] {
    Take,    // a place for the group
    Look,    // its window
    Burst,   // its bursts
    Enter,   // its entry is made
    Write,   // the index unit is written into the buffer
    Index    // its burst
  } state_e;

  state_e      state_d, state_q;
  logic        send_d, send_q;
  logic [31:0] addr_d, addr_q;
  logic [6:0]  left_units_d, left_units_q, at_d, at_q, units;
  logic [24:0] place_q;
  logic        far, none, granted_all;
  logic [31:0] entry;

  assign units        = units_q[7*send_q +: 7];
  assign entry        = {place_q, units};
  assign take_valid_o = state_q == Take && full_q[send_q] && !sent_q[send_q] && !clear;
  assign take_units_o = units;
  assign none         = take_valid_o && take_ready_i && take_none_i;
  assign far          = (state_q == Look || state_q == Write) && !clear && (addr_q < base_i || {1'b0, addr_q} + 33'(left_units_q) > {1'b0, limit_i});
  assign idx_we       = state_q == Write && !clear;
  assign wr_valid_o   = (state_q == Burst || state_q == Index) && !clear;
  assign wr_addr_o    = addr_q;
  assign wr_beats_o   = (left_units_q > 7'd16) ? 5'd16 : left_units_q[4:0];
  assign wr_at_o      = {send_q, at_q};
  assign wr_end_tag_o = (state_q == Index) ? p_sigs : '0;
  assign granted_all  = wr_valid_o && wr_ready_i && (state_q == Index || (left_units_q <= 7'd16 && !p_store));
  assign wr_tag_o     = {send_q, state_q == Index || (left_units_q <= 7'd16 && !p_store)};
  assign par_pop      = (state_q == Enter && !p_store) || (state_q == Index && wr_valid_o && wr_ready_i);
  assign wr_busy_o    = rd_v_q || par_in_q != par_out_q;

  always_comb begin
    state_d      = state_q;
    send_d       = send_q;
    addr_d       = addr_q;
    left_units_d = left_units_q;
    at_d         = at_q;
    unique case (state_q)
      Take: begin
        addr_d       = arena_i + 32'(take_place_i);
        left_units_d = units;
        at_d         = 7'd0;
        if (take_valid_o && take_ready_i && !take_none_i) state_d = Look;
      end
      Look: if (!far) state_d = Burst;
      Burst: begin
        if (wr_ready_i) begin
          addr_d       = addr_q + 32'd16;
          left_units_d = left_units_q - 7'd16;
          at_d         = at_q + 7'd16;
          if (left_units_q <= 7'd16) state_d = Enter;
        end
      end
      Enter: begin
        addr_d       = p_index;
        left_units_d = 7'd1;
        at_d         = 7'd127;
        state_d      = p_store ? Write : Take;
        if (!p_store) send_d = !send_q;
      end
      Write: if (!far) state_d = Index;
      default: begin
        if (wr_ready_i) begin
          state_d = Take;
          send_d  = !send_q;
        end
      end
    endcase
    if (clear) begin
      state_d = Take;
      send_d  = 1'b0;
    end
  end

  // A half is free again when W has asked for its last beat.
  always_comb begin
    full_d = full_q;
    sent_d = sent_q;
    if (e_valid && e_ready && e_last) full_d[fill_q] = 1'b1;
    if (granted_all) sent_d[send_q] = 1'b1;
    if (beat_i && beat_last_i && beat_tag_i[0]) begin
      full_d[beat_tag_i[1]] = 1'b0;
      sent_d[beat_tag_i[1]] = 1'b0;
    end
    if (clear) begin
      full_d = 2'b00;
      sent_d = 2'b00;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Take;
      send_q  <= 1'b0;
      full_q  <= 2'b00;
      sent_q  <= 2'b00;
    end else begin
      state_q <= state_d;
      send_q  <= send_d;
      full_q  <= full_d;
      sent_q  <= sent_d;
    end
  end

  always_ff @(posedge clk_i) begin
    addr_q       <= addr_d;
    left_units_q <= left_units_d;
    at_q         <= at_d;
    if (state_q == Take) place_q <= 25'(take_place_i);
    // Entries that are not written are 0: the first one of a unit clears those of the one before.
    if (state_q == Enter) begin
      for (int i = 0; i < 4; i++) begin
        if (p_entry == 2'(i))  entries_q[32*i +: 32] <= entry;
        else if (begin_q)      entries_q[32*i +: 32] <= '0;
      end
    end
  end

  logic begin_q;  // the next entry is the first of its unit
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)               begin_q <= 1'b1;
    else if (clear)            begin_q <= 1'b1;
    else if (state_q == Enter) begin_q <= p_store;
  end

  // A beat is in the block memory.
  logic [127:0] data_q;
  always_ff @(posedge clk_i) begin
    if (beat_i) data_q <= buf_mem[beat_at_i];
  end
  assign data_o = data_q;

  assign idle_o = par_in_q == par_out_q && !rd_v_q && come_q == 2'b00 && e_idle && (full_q & ~sent_q) == 2'b00;

  assign err_o = !clear && (w_bad || rd_out || none || far);
  always_comb begin
    err_kind_o = 2'd0;
    err_addr_o = 32'(rd_rel_q);
    // The oldest work first.
    if (none) begin
      err_kind_o = 2'd3;
      err_addr_o = p_index;
    end else if (far) begin
      err_kind_o = 2'd2;
      err_addr_o = (addr_q < base_i || addr_q >= limit_i) ? addr_q : limit_i;
    end else if (w_bad) begin
      err_kind_o = 2'd1;
      err_addr_o = 32'(rd_phys2_q);
    end
  end

  `CT_ASSERT(WordsHaveRoom_A, owed <= 4'd8)
  `CT_ASSERT(BurstInPage_A, !wr_valid_o || {1'b0, addr_q[7:0]} + 9'(wr_beats_o) <= 9'd256)
  `CT_ASSERT(BurstFits_A, !wr_valid_o || wr_beats_o != 5'd0)
  `CT_ASSERT(WholeGroups_A, !wr_valid_o || (full_q[send_q] && !sent_q[send_q]))
`ifdef FORMAL
  `include "ct_act_st_formal.svh"
`endif

  `CT_COVER(BothFull_C, full_q == 2'b11)

endmodule

`default_nettype wire
