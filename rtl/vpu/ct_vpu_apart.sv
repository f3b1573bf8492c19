// SPDX-License-Identifier: Apache-2.0
//
// Keeps an operation of VA from reading a tile register before an earlier one has written it. Nothing in VA's pipe ever waits, so
// operations keep apart when they start.
//
// What        hold_o[c]: the command in front of c reads what an operation of c may not have written by then. 16 lanes: one of the last two
//             operations that started writes a tile register that it reads, and is less than Space cycles old. (Where three or more are
//             so young, those before the last are taken to write all of them.) 4 lanes: it reads one, and a row of it would come
//             less than Space cycles after the same row of the last operation, whatever that writes.
// Latency     from registers. A command is looked at in the cycle in which it takes its waits, and known in the next one; the one that
//             starts now is in front, so nothing here hangs on the choice.
//
// Parameters
//   VpuLanes  16 or 4
//   Space     cycles from the start of an operation to that of one that reads what it writes, up to 32

`default_nettype none
`include "ct_assert.svh"

module ct_vpu_apart #(
  parameter int unsigned VpuLanes = 16,
  parameter int unsigned Space    = 31
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic [511:0] head_i,      // the commands in front
  input  logic [1:0]   starts_i,    // c starts
  input  logic [7:0]   row_i,       // with this row (4 lanes)
  input  logic [3:0]   start_to_i,  // what it writes
  output logic [1:0]   hold_o
);

  localparam int unsigned AgeW = 5;

  for (genvar c = 0; c < 2; c++) begin : g_context
    localparam int unsigned C = 256 * c;
    logic [AgeW-1:0] age_d, age_q;  // runs down to zero
    logic            reads_a, reads_q;

    assign reads_a = head_i[C + ct_pkg::VaASrcLsb +: 2] == 2'd0;
    assign reads_q = ^head_i[C + ct_pkg::VaBSrcLsb +: 2] || ^head_i[C + ct_pkg::VaCSrcLsb +: 2];

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) age_q <= '0;
      else         age_q <= age_d;
    end

    if (VpuLanes == 16) begin : g_lanes_16
      logic [AgeW-1:0] before_d, before_q;  // of the operation before
      logic [3:0]      to_q, to_before_q, ta, tq;
      logic            any_q;               // and of others before it
      logic            young, before_young; // in the next cycle, too
      logic            hits, hits_before, depends_q;

      assign ta           = head_i[C + ct_pkg::VaTaLsb +: 4];
      assign tq           = head_i[C + ct_pkg::VaTqLsb +: 4];
      assign young        = age_q > AgeW'(1);
      assign before_young = before_q > AgeW'(1);
      assign hits         = (reads_a && ta == to_q) || (reads_q && tq == to_q);
      assign hits_before  = any_q ? reads_a || reads_q : (reads_a && ta == to_before_q) || (reads_q && tq == to_before_q);

      always_comb begin
        age_d    = age_q - AgeW'(age_q != '0);
        before_d = before_q - AgeW'(before_q != '0);
        if (starts_i[c]) begin
          before_d = age_d;
          age_d    = AgeW'(Space - 1);
        end
      end

      always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) begin
          before_q  <= '0;
          any_q     <= 1'b0;
          depends_q <= 1'b0;
        end else begin
          before_q  <= before_d;
          depends_q <= (young && hits) || (before_young && hits_before);
          if (starts_i[c]) any_q <= before_young;
        end
      end

      always_ff @(posedge clk_i) begin
        if (starts_i[c]) begin
          to_q        <= start_to_i;
          to_before_q <= to_q;
        end
      end

      assign hold_o[c] = depends_q;
    end else begin : g_lanes_4
      logic uses_q, spaced_q;

      always_comb begin
        age_d = age_q - AgeW'(age_q != '0);
        if (starts_i[c]) age_d = row_i[4*c + 3] ? '0 : AgeW'(Space - 1) - AgeW'({row_i[4*c +: 3], 2'b00});
      end

      always_ff @(posedge clk_i or negedge rst_ni) begin
        if (!rst_ni) spaced_q <= 1'b1;
        else         spaced_q <= age_d == '0;
      end

      always_ff @(posedge clk_i) uses_q <= reads_a || reads_q;

      assign hold_o[c] = uses_q && !spaced_q;
    end
  end

  logic unused;
  assign unused = ^{head_i, row_i, start_to_i};

`ifdef FORMAL
  `include "ct_vpu_apart_formal.svh"
`endif

endmodule

`default_nettype wire
