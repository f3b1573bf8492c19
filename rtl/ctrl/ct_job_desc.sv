// SPDX-License-Identifier: Apache-2.0
//
// The descriptor that the front end of ct_job holds: takes its eight beats, keeps what they say of the job, hands the arguments on to ct_fetch.
//
// Beats       beat_valid_i with the beat in fetch_data_i, or of a batch (the first with batch_first_i, the others while batch_i) in batch_data_i;
//             count_o is the number of the next one, drop_i (a pulse) begins anew with 0. last_o: this one is the eighth. first_o and second_o:
//             it came in the last cycle.
// Fields      clear_i (a pulse) comes with the request for a descriptor of the ring: what is not read, because the read fails, is zero. They hold
//             from the cycle after their beat to the next descriptor's.
// Program     same_o: it is the one of the descriptor before, and can be asked for. ncmds_bad_o: it has no command or too many.
// Flags       OVERLAP and CHAIN; any other bit is bad, and CHAIN of a batch: it is nobody's continuation. CHAIN excludes OVERLAP.

`default_nettype none
`include "ct_assert.svh"

module ct_job_desc (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         clear_i,
  input  logic         drop_i,
  input  logic         beat_valid_i,
  input  logic         batch_i,
  input  logic         batch_first_i,
  input  logic [4:0]   batch_rows_i,   // the requests of the batch
  input  logic [127:0] batch_data_i,
  input  logic [127:0] fetch_data_i,
  output logic [2:0]   count_o,
  output logic         last_o,
  output logic         first_o,
  output logic         second_o,

  output logic [31:0]  tag_o,
  output logic [31:0]  version_o,
  output logic [31:0]  limit_o,        // of the watchdog, 0: the context's
  output logic [31:0]  prog_o,
  output logic [9:0]   ncmds_o,
  output logic         ncmds_bad_o,
  output logic         same_o,
  output logic         flags_bad_o,
  output logic         overlap_o,
  output logic         chain_o,

  // ct_fetch.
  output logic         arg_we_o,
  output logic [2:0]   arg_group_o,
  output logic [127:0] arg_data_o
);

  logic [2:0]   beat_q;
  logic         first_beat_q, second_beat_q;
  logic         same_q, ncmds_bad_q, flags_bad_q, overlap_q, chain_q;
  logic [31:0]  tag_q, version_q, prog_q, limit_q;
  logic [9:0]   ncmds_q;
  logic [127:0] desc_data;
  logic [31:0]  flags;                // in the second beat
  logic         flags_bad;

  assign desc_data = (batch_first_i || batch_i) ? batch_data_i : fetch_data_i;
  assign flags     = desc_data[32*(ct_pkg::DescFlags-4) +: 32];
  assign flags_bad = (flags[31:2] != '0) || (flags[1] && batch_i);
  assign last_o    = beat_valid_i && (beat_q == 3'd7);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      same_q        <= 1'b0;
      ncmds_bad_q   <= 1'b1;          // what the first descriptor is compared with is no program
      first_beat_q  <= 1'b0;
      second_beat_q <= 1'b0;
      beat_q        <= '0;
    end else begin
      first_beat_q  <= beat_valid_i && (beat_q == 3'd0);
      second_beat_q <= beat_valid_i && (beat_q == 3'd1);
      if (beat_valid_i && beat_q == 3'd0) begin
        same_q <= (desc_data[32*ct_pkg::DescProg +: 32] == prog_q) && (desc_data[32*ct_pkg::DescNcmds +: 32] == 32'(ncmds_q)) &&
                  !ncmds_bad_q;
        ncmds_bad_q <= (desc_data[32*ct_pkg::DescNcmds +: 32] == '0) ||
                       (desc_data[32*ct_pkg::DescNcmds +: 32] > ct_pkg::ProgMax);
      end
      if (drop_i)            beat_q <= '0;
      else if (beat_valid_i) beat_q <= beat_q + 3'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (clear_i) begin
      tag_q       <= '0;
      version_q   <= '0;
      limit_q     <= '0;
      flags_bad_q <= 1'b0;
      overlap_q   <= 1'b0;
      chain_q     <= 1'b0;
    end
    if (beat_valid_i && beat_q == 3'd0) begin
      tag_q       <= desc_data[32*ct_pkg::DescTag +: 32];
      version_q   <= desc_data[32*ct_pkg::DescVersion +: 32];
      prog_q      <= desc_data[32*ct_pkg::DescProg +: 32];
      ncmds_q     <= desc_data[32*ct_pkg::DescNcmds +: 10];
    end
    if (beat_valid_i && beat_q == 3'd1) begin
      limit_q     <= desc_data[32*(ct_pkg::DescWatchdog-4) +: 32];
      flags_bad_q <= flags_bad;
      overlap_q   <= flags[0] && !flags[1];
      chain_q     <= flags[1];
    end
  end

  assign count_o     = beat_q;
  assign first_o     = first_beat_q;
  assign second_o    = second_beat_q;
  assign tag_o       = tag_q;
  assign version_o   = version_q;
  assign limit_o     = limit_q;
  assign prog_o      = prog_q;
  assign ncmds_o     = ncmds_q;
  assign ncmds_bad_o = ncmds_bad_q;
  assign same_o      = same_q;
  assign flags_bad_o = flags_bad_q;
  assign overlap_o   = overlap_q;
  assign chain_o     = chain_q;

  // The first two beats bring no arguments: they clear r25..r31, but for the number of a batch's requests in r25.
  assign arg_we_o    = beat_valid_i;
  assign arg_group_o = beat_q - 3'd2;
  assign arg_data_o  = batch_first_i ? 128'(batch_rows_i) : (beat_q < 3'd2) ? '0 : desc_data;

  // ---- Invariants -------------------------------------------------------------------------------------------------------------

  `CT_ASSERT(NcmdsInRange_A, ncmds_bad_q || (ncmds_q != '0 && 32'(ncmds_q) <= ct_pkg::ProgMax))
  `CT_ASSERT(SameIsGood_A, !same_q || !ncmds_bad_q)

endmodule

`default_nettype wire
