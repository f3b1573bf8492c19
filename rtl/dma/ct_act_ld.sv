// SPDX-License-Identifier: Apache-2.0
//
// Loads groups of compressed activations into the scratchpad (docs/compression.md): a client of ct_dma_rd for one context.
//
//     index unit ─> entry ─> bursts ─> buffer ─> ct_act_dec ─> words of the SPM, signals, the group freed
//
// Request     a group: number entry_i of an index unit, into the 16 (tiles_i + 1) words from spm_i on. With read_i the unit at index_i is read, without it is
//             that of the request before. Requests are done in order. The next unit is read while groups of this one come.
// Bursts      lengths come from the entries, so what is asked for is what there is; nothing is asked for without room for it.
// Done        done_o with sigs_o until done_ready_i, when all words of the group are written and, with free_i, it has been freed (free_*: ct_act_pages).
// Errors      err_o with a kind and an address, until clear: a word outside the SPM window (relative), an error of the memory (its burst), an index unit or a
//             group outside the window (first unit outside), an entry or a group that is none (the index unit). Of a group that is none some words
//             may be written, all in the window, but not the last.
// Clear       flush_i and halt_i forget everything; idle_o: nothing is inside. (Outstanding bursts are the ring's affair.) A free that has begun is ended.

`default_nettype none
`include "ct_assert.svh"

module ct_act_ld #(
  parameter  int unsigned PageW = 10,
  parameter  int unsigned EndW  = 10,
  localparam int unsigned TagW  = 4,     // an index unit, the group's last burst, tiles
  localparam int unsigned SpmW  = ct_pkg::SpmAddrW
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              flush_i,
  input  logic              halt_i,
  output logic              idle_o,

  input  logic              valid_i,
  output logic              ready_o,
  input  logic [SpmW-1:0]   spm_i,
  input  logic [1:0]        tiles_i,
  input  logic [31:0]       index_i,
  input  logic [1:0]        entry_i,
  input  logic              read_i,
  input  logic              free_i,
  input  logic [EndW-1:0]   sigs_i,

  input  logic [31:0]       arena_i,
  input  logic [PageW:0]    pages_i,
  input  logic [31:0]       base_i,
  input  logic [31:0]       limit_i,
  input  logic [SpmW-1:0]   spm_base_i,
  input  logic [SpmW-1:0]   spm_size_i,
  output logic              err_o,
  output logic [1:0]        err_kind_o,  // 0 SPM window, 1 memory, 2 DRAM window, 3 no such group
  output logic [31:0]       err_addr_o,

  // A client of ct_dma_rd.
  output logic              rd_valid_o,
  output logic [31:0]       rd_addr_o,
  output logic [4:0]        rd_beats_o,
  output logic [TagW-1:0]   rd_tag_o,
  input  logic              rd_ready_i,
  input  logic              beat_i,
  input  logic              fault_i,
  input  logic              beat_last_i,
  input  logic [31:0]       beat_addr_i,
  input  logic [TagW-1:0]   beat_tag_i,
  input  logic [127:0]      data_i,      // a cycle after beat_i

  output logic              free_valid_o,
  output logic [PageW+7:0]  free_place_o,
  input  logic              free_ready_i,
  input  logic              free_bad_i,

  output logic              spm_wr_valid_o,
  input  logic              spm_wr_ready_i,
  output logic [SpmW-1:0]   spm_wr_addr_o,
  output logic [127:0]      spm_wr_data_o,
  output logic [7:0]        spm_wr_exp_o,

  output logic              done_o,
  output logic [EndW-1:0]   sigs_o,
  input  logic              done_ready_i
);

  logic clear;
  assign clear = flush_i || halt_i;

  // ---------------------------------------------------------------------------------------------------------------------------
  // Requests, in a ring of 8. Pointers run modulo 16: in = next to come, ask = next whose index unit is asked for, get = next whose bursts are,
  // put = next whose words are written.

  localparam int unsigned ReqW = SpmW + 2 + 32 + 2 + 1 + 1 + EndW;
  logic [3:0]       in_q, ask_q, get_q, put_q;
  logic [ReqW-1:0]  req_mem [0:7];
  logic             load, asked, got, put;
  logic [SpmW-1:0]  p_spm;
  logic [1:0]       g_tiles, g_entry;
  logic [31:0]      a_index, g_index, p_index;
  logic             a_read, g_read, p_free;
  logic [EndW-1:0]  p_sigs;
  logic [ReqW-1:0]  a_req, g_req, p_req;
  assign a_req = req_mem[ask_q[2:0]];
  assign g_req = req_mem[get_q[2:0]];
  assign p_req = req_mem[put_q[2:0]];
  assign {a_index, a_read}                   = {a_req[EndW+4 +: 32], a_req[EndW+1]};
  assign {g_tiles, g_index, g_entry, g_read} = g_req[EndW+1 +: 37];
  assign {p_spm, p_index, p_free, p_sigs}    = {p_req[ReqW-1 -: SpmW], p_req[EndW+4 +: 32], p_req[EndW], p_req[EndW-1:0]};
  logic unused_req;
  assign unused_req = ^{a_req[ReqW-1:EndW+36], a_req[EndW+3:EndW+2], a_req[EndW:0], g_req[ReqW-1 -: SpmW], g_req[EndW:0],
                        p_req[EndW+36 +: 2], p_req[EndW+1 +: 3]};

  assign ready_o = !clear && 4'(in_q - put_q) != 4'd8;
  assign load    = valid_i && ready_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_q  <= '0;
      ask_q <= '0;
      get_q <= '0;
      put_q <= '0;
    end else begin
      in_q  <= clear ? 4'd0 : in_q + 4'(load);
      ask_q <= clear ? 4'd0 : ask_q + 4'(asked);
      get_q <= clear ? 4'd0 : get_q + 4'(got);
      put_q <= clear ? 4'd0 : put_q + 4'(put);
    end
  end

  always_ff @(posedge clk_i) begin
    if (load) req_mem[in_q[2:0]] <= {spm_i, tiles_i, index_i, entry_i, read_i, free_i, sigs_i};
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // Index units: the one in use, and one more. Bursts of a group, if its entry can be one.

  typedef enum logic [1:0] {
    Entry,   // the entry is looked up
    Look,    // is it one?
    Burst    // bursts
  } state_e;

  state_e       state_d, state_q;
  logic         idx_new_q;                // one is asked for, or here, that is not in use
  logic         idx_here_q, idx_use_q;    // it is here; which of the two is in use
  logic [255:0] idx_q;
  logic         beat_q, beat_idx_q, beat_last_q;
  logic [1:0]   beat_tiles_q;
  logic [127:0] idx_unit;
  logic [31:0]  entry, addr_d, addr_q;
  logic [6:0]   left_d, left_q;           // units that are not asked for yet
  logic [24:0]  place_q;
  logic [24:0]  place_mem [0:7];          // of each request
  logic         idx_ask, grp_ask, use_new, idx_far, grp_far, no_entry, roomy;
  logic         grp_kept_q;               // a burst of a group was on offer and was not granted
  logic [7:0]   room_q;                   // places of the buffer that are not promised
  logic [4:0]   beats;

  assign idx_ask = ask_q != in_q && a_read && !idx_new_q && !clear && !idx_far && !grp_kept_q;
  assign idx_far = ask_q != in_q && a_read && !idx_new_q && !clear && (a_index < base_i || a_index >= limit_i);
  assign asked   = ask_q != in_q && (a_read ? idx_ask && rd_ready_i : 1'b1);

  // With read_i the new unit comes into use.
  assign use_new  = state_q == Entry && get_q != ask_q && g_read && idx_here_q && !clear;
  assign idx_unit = (idx_use_q ^ use_new) ? idx_q[255:128] : idx_q[127:0];
  assign entry    = idx_unit[32*g_entry +: 32];

  assign no_entry = state_q == Look && !clear && (left_q == 7'd0 || left_q > 7'd70 || 26'(place_q) >= 26'(pages_i) << 8 ||
                                                   {1'b0, place_q[7:0]} + {2'd0, left_q} > 9'd256);
  assign grp_far  = state_q == Look && !clear && !no_entry && (addr_q < base_i || {1'b0, addr_q} + 33'(left_q) > {1'b0, limit_i});
  assign beats    = (left_q > 7'd16) ? 5'd16 : left_q[4:0];
  assign roomy    = room_q >= {3'd0, beats};
  assign grp_ask  = state_q == Burst && roomy && !clear && !idx_ask;
  assign got      = grp_ask && rd_ready_i && left_q <= 7'd16;

  assign rd_valid_o = idx_ask || grp_ask;
  assign rd_addr_o  = idx_ask ? a_index : addr_q;
  assign rd_beats_o = idx_ask ? 5'd1 : beats;
  assign rd_tag_o   = idx_ask ? 4'b1000 : {1'b0, left_q <= 7'd16, g_tiles};

  always_comb begin
    state_d = state_q;
    addr_d  = addr_q;
    left_d  = left_q;
    unique case (state_q)
      Entry: begin
        addr_d = arena_i + {7'd0, entry[31:7]};
        left_d = entry[6:0];
        if (get_q != ask_q && (!g_read || idx_here_q)) state_d = Look;
      end
      Look: if (!no_entry && !grp_far) state_d = Burst;
      default: begin
        if (grp_ask && rd_ready_i) begin
          addr_d = addr_q + 32'd16;
          left_d = left_q - 7'd16;
          if (left_q <= 7'd16) state_d = Entry;
        end
      end
    endcase
    if (clear) state_d = Entry;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q    <= Entry;
      idx_new_q  <= 1'b0;
      idx_here_q <= 1'b0;
      idx_use_q  <= 1'b0;
      beat_q     <= 1'b0;
      grp_kept_q <= 1'b0;
    end else begin
      state_q    <= state_d;
      grp_kept_q <= grp_ask && !rd_ready_i;
      idx_new_q  <= !clear && ((idx_new_q && !use_new) || (idx_ask && rd_ready_i));
      idx_here_q <= !clear && ((idx_here_q && !use_new) || (beat_q && beat_idx_q));
      idx_use_q  <= idx_use_q ^ use_new;
      beat_q     <= beat_i && !clear;
    end
  end

  always_ff @(posedge clk_i) begin
    addr_q <= addr_d;
    left_q <= left_d;
    if (state_q == Entry) place_q <= entry[31:7];
    if (state_q == Look) place_mem[get_q[2:0]] <= place_q;
    {beat_idx_q, beat_last_q, beat_tiles_q} <= {beat_tag_i[3], beat_tag_i[2] && beat_last_i, beat_tag_i[1:0]};
    if (beat_q && beat_idx_q && !idx_use_q) idx_q[255:128] <= data_i;
    if (beat_q && beat_idx_q && idx_use_q)  idx_q[127:0]   <= data_i;
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // The buffer, with a register behind it, and the decoder.

  localparam int unsigned UnitW = 128 + 1 + 2;
  logic [UnitW-1:0] buf_mem [0:127];
  logic [UnitW-1:0] unit_q;
  logic [7:0]       buf_in_q, buf_out_q;  // modulo 256
  logic             unit_v_q, unit_ready, fetch, d_valid, d_ready, d_last, d_err, d_idle;
  logic [127:0]     d_data;
  logic [7:0]       d_exp;
  assign fetch = buf_in_q != buf_out_q && (!unit_v_q || unit_ready);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      buf_in_q  <= '0;
      buf_out_q <= '0;
      unit_v_q  <= 1'b0;
      room_q    <= 8'd128;
    end else begin
      buf_in_q  <= clear ? 8'd0 : buf_in_q + 8'(beat_q && !beat_idx_q);
      buf_out_q <= clear ? 8'd0 : buf_out_q + 8'(fetch);
      unit_v_q  <= !clear && (fetch || (unit_v_q && !unit_ready));
      room_q    <= clear ? 8'd128 : room_q + 8'(fetch) - ((grp_ask && rd_ready_i) ? {3'd0, beats} : 8'd0);
    end
  end

  always_ff @(posedge clk_i) begin
    if (beat_q && !beat_idx_q) buf_mem[buf_in_q[6:0]] <= {beat_tiles_q, beat_last_q, data_i};
    if (fetch) unit_q <= buf_mem[buf_out_q[6:0]];
  end

  ct_act_dec u_dec (
    .clk_i, .rst_ni,
    .flush_i (clear),
    .idle_o  (d_idle),
    .err_o   (d_err),
    .tiles_i (unit_q[130:129]),
    .valid_i (unit_v_q),
    .ready_o (unit_ready),
    .data_i  (unit_q[127:0]),
    .last_i  (unit_q[128]),
    .valid_o (d_valid),
    .ready_i (d_ready),
    .data_o  (d_data),
    .exp_o   (d_exp),
    .last_o  (d_last)
  );

  // ---------------------------------------------------------------------------------------------------------------------------
  // Words into the scratchpad; behind the last one of a group it is freed and told.

  typedef enum logic [1:0] {
    Words,
    Free,
    Done
  } end_e;

  end_e              end_d, end_q;
  logic [5:0]        word_q;            // of the group
  logic [SpmW-1:0]   rel;
  logic              out, wrote, bad_free, bad_group;
  logic [PageW+7:0]  free_place_q;
  assign rel            = p_spm + SpmW'(word_q);
  assign out            = d_valid && end_q == Words && !clear && rel >= spm_size_i;
  assign spm_wr_valid_o = d_valid && end_q == Words && !clear && !out;
  assign spm_wr_addr_o  = rel + spm_base_i;
  assign spm_wr_data_o  = d_data;
  assign spm_wr_exp_o   = d_exp;
  assign wrote          = spm_wr_valid_o && spm_wr_ready_i;
  assign d_ready        = wrote;
  assign free_valid_o   = end_q == Free;
  assign free_place_o   = free_place_q;
  assign bad_free       = free_valid_o && free_ready_i && free_bad_i && !clear;
  assign bad_group      = d_err && end_q == Words && !clear;  // (the group before it is told first)
  assign done_o         = end_q == Done && !clear;
  assign sigs_o         = p_sigs;
  assign put            = done_o && done_ready_i;

  always_comb begin
    end_d = end_q;
    unique case (end_q)
      Words:   if (wrote && d_last) end_d = p_free ? Free : Done;
      Free:    if (free_ready_i) end_d = clear ? Words : Done;
      default: if (done_ready_i || clear) end_d = Words;
    endcase
  end

  // (A free that is under way when all is forgotten ends behind that: then nothing is told.)
  logic gone_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      end_q  <= Words;
      word_q <= '0;
      gone_q <= 1'b0;
    end else begin
      end_q  <= (end_q == Free && free_ready_i && gone_q) ? Words : end_d;
      word_q <= clear ? 6'd0 : wrote ? (d_last ? 6'd0 : word_q + 6'd1) : word_q;
      gone_q <= (gone_q || clear) && end_q == Free && !free_ready_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (end_q == Words) free_place_q <= (PageW + 8)'(place_mem[put_q[2:0]]);
  end

  assign idle_o = in_q == put_q && end_q == Words && d_idle && !unit_v_q;

  assign err_o = !clear && (out || bad_group || fault_i || bad_free || no_entry || grp_far || idx_far);
  always_comb begin
    err_kind_o = 2'd3;
    err_addr_o = p_index;
    // The oldest work first.
    if (out) begin
      err_kind_o = 2'd0;
      err_addr_o = 32'(rel);
    end else if (bad_group || bad_free) begin
      err_kind_o = 2'd3;
    end else if (fault_i) begin
      err_kind_o = 2'd1;
      err_addr_o = beat_addr_i;
    end else if (no_entry) begin
      err_addr_o = g_index;
    end else if (grp_far) begin
      err_kind_o = 2'd2;
      err_addr_o = (addr_q < base_i || addr_q >= limit_i) ? addr_q : limit_i;
    end else begin
      err_kind_o = 2'd2;
      err_addr_o = a_index;
    end
  end

  `CT_ASSERT(RoomKept_A, room_q <= 8'd128 && 8'(buf_in_q - buf_out_q) <= 8'd128)
  `CT_ASSERT(BurstInPage_A, !grp_ask || {1'b0, addr_q[7:0]} + 9'(beats) <= 9'd256)
  `CT_ASSERT(BurstFits_A, !rd_valid_o || rd_beats_o != 5'd0)
  `CT_ASSERT(WrittenInWindow_A, !spm_wr_valid_o || rel < spm_size_i)
`ifdef FORMAL
  `include "ct_act_ld_formal.svh"
`endif

  `CT_COVER(IndexAhead_C, idx_new_q && state_q == Burst)

endmodule

`default_nettype wire
