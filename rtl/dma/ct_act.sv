// SPDX-License-Identifier: Apache-2.0
//
// Compressed activations of one context: stores, loads and the pages between them (docs/compression.md).
//
//     SPM ─> ct_act_st ─> a client of ct_dma_wr          ct_act_pages: a page for each group that is stored, freed by count as groups are loaded
//     SPM <─ ct_act_ld <─ a client of ct_dma_rd
//
// The two sides work at the same time. What a load reads must have been stored: the signal of its index unit has come. See the blocks for everything else.
//
// Parameters
//   PageW  there are at most 2^PageW pages of 4 KB
//   EndW   bits of a request's signals

`default_nettype none

module ct_act #(
  parameter  int unsigned PageW = 10,
  parameter  int unsigned EndW  = 10,
  localparam int unsigned SpmW  = ct_pkg::SpmAddrW
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            flush_i,
  input  logic            halt_i,
  input  logic            abandon_i,
  output logic            st_idle_o,
  output logic            ld_idle_o,

  // Arena and windows. pages_reset_i: all pages are free.
  input  logic            pages_reset_i,
  input  logic [31:0]     arena_i,
  input  logic [PageW:0]  pages_i,
  output logic [PageW:0]  held_o,
  output logic [PageW:0]  most_o,
  input  logic [31:0]     rd_base_i,
  input  logic [31:0]     rd_limit_i,
  input  logic [31:0]     wr_base_i,
  input  logic [31:0]     wr_limit_i,
  input  logic [SpmW-1:0] spm_base_i,
  input  logic [SpmW-1:0] spm_size_i,

  // Groups to be stored, groups to be loaded.
  input  logic            st_valid_i,
  output logic            st_ready_o,
  input  logic [SpmW-1:0] st_spm_i,
  input  logic [1:0]      st_tiles_i,
  input  logic [7:0]      st_bound_i,
  input  logic [31:0]     st_index_i,
  input  logic [1:0]      st_entry_i,
  input  logic            st_store_i,
  input  logic [EndW-1:0] st_sigs_i,
  output logic            st_err_o,
  output logic [1:0]      st_err_kind_o,
  output logic [31:0]     st_err_addr_o,

  input  logic            ld_valid_i,
  output logic            ld_ready_o,
  input  logic [SpmW-1:0] ld_spm_i,
  input  logic [1:0]      ld_tiles_i,
  input  logic [31:0]     ld_index_i,
  input  logic [1:0]      ld_entry_i,
  input  logic            ld_read_i,
  input  logic            ld_free_i,
  input  logic [EndW-1:0] ld_sigs_i,
  output logic            ld_err_o,
  output logic [1:0]      ld_err_kind_o,
  output logic [31:0]     ld_err_addr_o,
  output logic            ld_done_o,
  output logic [EndW-1:0] ld_sigs_o,
  input  logic            ld_done_ready_i,

  // The scratchpad.
  output logic            spm_rd_valid_o,
  output logic [SpmW-1:0] spm_rd_addr_o,
  input  logic            spm_rd_ready_i,
  input  logic [127:0]    spm_rd_data_i,
  input  logic [7:0]      spm_rd_exp_i,
  input  logic            spm_rd_perr_i,
  output logic            spm_wr_valid_o,
  input  logic            spm_wr_ready_i,
  output logic [SpmW-1:0] spm_wr_addr_o,
  output logic [127:0]    spm_wr_data_o,
  output logic [7:0]      spm_wr_exp_o,

  // Clients of ct_dma_wr and ct_dma_rd.
  output logic            wr_valid_o,
  output logic [31:0]     wr_addr_o,
  output logic [4:0]      wr_beats_o,
  output logic [7:0]      wr_at_o,
  output logic [1:0]      wr_tag_o,
  output logic [EndW-1:0] wr_end_tag_o,
  input  logic            wr_ready_i,
  output logic            wr_busy_o,
  input  logic            wr_beat_i,
  input  logic [7:0]      wr_beat_at_i,
  input  logic [1:0]      wr_beat_tag_i,
  input  logic            wr_beat_last_i,
  output logic [127:0]    wr_data_o,
  input  logic            wr_within_i,
  output logic            rd_valid_o,
  output logic [31:0]     rd_addr_o,
  output logic [4:0]      rd_beats_o,
  output logic [3:0]      rd_tag_o,
  input  logic            rd_ready_i,
  input  logic            rd_beat_i,
  input  logic            rd_fault_i,
  input  logic            rd_beat_last_i,
  input  logic [31:0]     rd_beat_addr_i,
  input  logic [3:0]      rd_beat_tag_i,
  input  logic [127:0]    rd_data_i
);

  logic             take_valid, take_ready, take_none, free_valid, free_ready, free_bad;
  logic [6:0]       take_units;
  logic [PageW+7:0] take_place, free_place;

  ct_act_pages #(.Pages(1 << PageW)) u_pages (
    .clk_i, .rst_ni,
    .reset_i      (pages_reset_i),
    .pages_i, .held_o, .most_o,
    .take_valid_i (take_valid),
    .take_units_i (take_units),
    .take_ready_o (take_ready),
    .take_none_o  (take_none),
    .take_place_o (take_place),
    .free_valid_i (free_valid),
    .free_place_i (free_place),
    .free_ready_o (free_ready),
    .free_bad_o   (free_bad)
  );

  ct_act_st #(.PageW(PageW), .EndW(EndW)) u_st (
    .clk_i, .rst_ni, .flush_i, .halt_i, .abandon_i,
    .idle_o      (st_idle_o),
    .valid_i     (st_valid_i),
    .ready_o     (st_ready_o),
    .spm_i       (st_spm_i),
    .tiles_i     (st_tiles_i),
    .bound_i     (st_bound_i),
    .index_i     (st_index_i),
    .entry_i     (st_entry_i),
    .store_i     (st_store_i),
    .sigs_i      (st_sigs_i),
    .arena_i,
    .base_i      (wr_base_i),
    .limit_i     (wr_limit_i),
    .spm_base_i, .spm_size_i,
    .err_o       (st_err_o),
    .err_kind_o  (st_err_kind_o),
    .err_addr_o  (st_err_addr_o),
    .spm_rd_valid_o, .spm_rd_addr_o, .spm_rd_ready_i, .spm_rd_data_i, .spm_rd_exp_i, .spm_rd_perr_i,
    .take_valid_o(take_valid),
    .take_units_o(take_units),
    .take_ready_i(take_ready),
    .take_none_i (take_none),
    .take_place_i(take_place),
    .wr_valid_o, .wr_addr_o, .wr_beats_o, .wr_at_o, .wr_tag_o, .wr_end_tag_o, .wr_ready_i, .wr_busy_o,
    .beat_i      (wr_beat_i),
    .beat_at_i   (wr_beat_at_i),
    .beat_tag_i  (wr_beat_tag_i),
    .beat_last_i (wr_beat_last_i),
    .data_o      (wr_data_o),
    .within_i    (wr_within_i)
  );

  ct_act_ld #(.PageW(PageW), .EndW(EndW)) u_ld (
    .clk_i, .rst_ni, .flush_i, .halt_i,
    .idle_o      (ld_idle_o),
    .valid_i     (ld_valid_i),
    .ready_o     (ld_ready_o),
    .spm_i       (ld_spm_i),
    .tiles_i     (ld_tiles_i),
    .index_i     (ld_index_i),
    .entry_i     (ld_entry_i),
    .read_i      (ld_read_i),
    .free_i      (ld_free_i),
    .sigs_i      (ld_sigs_i),
    .arena_i, .pages_i,
    .base_i      (rd_base_i),
    .limit_i     (rd_limit_i),
    .spm_base_i, .spm_size_i,
    .err_o       (ld_err_o),
    .err_kind_o  (ld_err_kind_o),
    .err_addr_o  (ld_err_addr_o),
    .rd_valid_o, .rd_addr_o, .rd_beats_o, .rd_tag_o, .rd_ready_i,
    .beat_i      (rd_beat_i),
    .fault_i     (rd_fault_i),
    .beat_last_i (rd_beat_last_i),
    .beat_addr_i (rd_beat_addr_i),
    .beat_tag_i  (rd_beat_tag_i),
    .data_i      (rd_data_i),
    .free_valid_o(free_valid),
    .free_place_o(free_place),
    .free_ready_i(free_ready),
    .free_bad_i  (free_bad),
    .spm_wr_valid_o, .spm_wr_ready_i, .spm_wr_addr_o, .spm_wr_data_o, .spm_wr_exp_o,
    .done_o      (ld_done_o),
    .sigs_o      (ld_sigs_o),
    .done_ready_i(ld_done_ready_i)
  );

endmodule

`default_nettype wire
