// SPDX-License-Identifier: Apache-2.0
//
// The one module through which data crosses from one clock to another: a FIFO with a clock on either side.
//
// How         Both sides count in gray code, so that one bit changes with a word; each side sees the other's pointer through SyncStages
//             flip-flops. A pointer caught in the act reads as the one before or the one after, and either is safe: a side that sees the
//             other late waits for nothing worse than words and places that are there already.
// Latency     a word is at rdata_o SyncStages + 1 edges of rclk_i after the edge of wclk_i that took it, or one less if it meets the first.
// Throughput  a word a cycle of the slower clock, if Depth covers the round trip of the pointers: 8 words with SyncStages = 2.
// Handshake   as in ct_fifo: a word moves where valid and ready are both high at the rising edge of that side's clock. rvalid_o never
//             falls and rdata_o never changes before rready_i. No path from one side's inputs to the other side's outputs, and none from an
//             input to a valid or ready.
// Reset       wrst_ni and rrst_ni may be asserted at any time, each by itself, for any time. Either one empties the FIFO on both
//             sides at once: no word of before comes out afterwards. A side goes on SyncStages cycles of its own clock after the last of the two
//             is released; what it takes then is not lost, even if the other side is not there yet.
//             A reset of one side alone makes the other side's rvalid_o or wready_o fall at any moment of its clock. So a side that is
//             not reset with the other must be quiet then (rready_i or wvalid_i low).
// Storage     an array without reset, read combinationally: LUT RAM on an FPGA. A word is written whole edges before the pointer that shows it.
// Constraints the pointers' first flip-flops are reached from the other clock: a false path, or a delay of at most a cycle of the faster clock.
//
// Parameters
//   Width       bits of a word, at least 1
//   Depth       words, a power of two, at least 2
//   SyncStages  flip-flops on the way of a pointer, at least 2

`default_nettype none
`include "ct_assert.svh"

module ct_async_fifo #(
  parameter int unsigned Width      = 8,
  parameter int unsigned Depth      = 8,
  parameter int unsigned SyncStages = 2
) (
  input  logic             wclk_i,
  input  logic             wrst_ni,
  input  logic             wvalid_i,
  output logic             wready_o,
  input  logic [Width-1:0] wdata_i,

  input  logic             rclk_i,
  input  logic             rrst_ni,
  output logic             rvalid_o,
  input  logic             rready_i,
  output logic [Width-1:0] rdata_o
);

  if (Width == 0) begin : g_check_width
    ct_error_async_fifo_width_must_be_at_least_1 u_error ();
  end
  if (Depth < 2 || (Depth & (Depth - 1)) != 0) begin : g_check_depth
    ct_error_async_fifo_depth_must_be_a_power_of_two_from_2 u_error ();
  end
  if (SyncStages < 2) begin : g_check_stages
    ct_error_async_fifo_sync_stages_must_be_at_least_2 u_error ();
  end

  // Pointers have one bit more than an address, which tells full from empty.
  localparam int unsigned AddrW  = (Depth < 2) ? 1 : $clog2(Depth);
  localparam int unsigned PtrW   = AddrW + 1;
  localparam int unsigned Stages = (SyncStages < 2) ? 2 : SyncStages;
  localparam int unsigned ChainW = Stages * PtrW;

  // Full: the write pointer is Depth ahead, which in gray code is the other two bits at the top.
  localparam logic [PtrW-1:0] FullDiff = PtrW'(3) << (PtrW - 2);

  function automatic logic [PtrW-1:0] gray(input logic [PtrW-1:0] binary);
    gray = binary ^ (binary >> 1);
  endfunction

  // Reset: asserted on both sides at once, released in step with each clock.
  (* async_reg = "true", keep = "true" *) logic [Stages-1:0] wlive_q;
  (* async_reg = "true", keep = "true" *) logic [Stages-1:0] rlive_q;
  logic rst_n, wlive, rlive;
  assign rst_n = wrst_ni && rrst_ni;
  assign wlive = wlive_q[Stages-1];
  assign rlive = rlive_q[Stages-1];

  always_ff @(posedge wclk_i or negedge rst_n) begin
    if (!rst_n) wlive_q <= '0;
    else        wlive_q <= {wlive_q[Stages-2:0], 1'b1};
  end
  always_ff @(posedge rclk_i or negedge rst_n) begin
    if (!rst_n) rlive_q <= '0;
    else        rlive_q <= {rlive_q[Stages-2:0], 1'b1};
  end

  // The other side's pointer, the newest at the bottom.
  (* async_reg = "true", keep = "true" *) logic [ChainW-1:0] rseen_q;  // in wclk_i
  (* async_reg = "true", keep = "true" *) logic [ChainW-1:0] wseen_q;  // in rclk_i

  logic [PtrW-1:0]  wptr_q, wgray_q, wptr_next;
  logic [PtrW-1:0]  rptr_q, rgray_q, rptr_next;
  logic [Width-1:0] mem [0:Depth-1];

  // ---- Write side -------------------------------------------------------------------------------------------------------------

  logic            push;

  assign wready_o  = wlive && (wgray_q != (rseen_q[ChainW-1-:PtrW] ^ FullDiff));
  assign push      = wvalid_i && wready_o;
  assign wptr_next = wptr_q + 1'b1;

  always_ff @(posedge wclk_i or negedge wlive) begin
    if (!wlive) begin
      wptr_q  <= '0;
      wgray_q <= '0;
      rseen_q <= '0;
    end else begin
      if (push) begin
        wptr_q  <= wptr_next;
        wgray_q <= gray(wptr_next);
      end
      rseen_q <= {rseen_q[ChainW-PtrW-1:0], rgray_q};
    end
  end

  always_ff @(posedge wclk_i) begin
    if (push) mem[wptr_q[AddrW-1:0]] <= wdata_i;
  end

  // ---- Read side --------------------------------------------------------------------------------------------------------------

  logic            pop;

  assign rvalid_o  = rlive && (rgray_q != wseen_q[ChainW-1-:PtrW]);
  assign rdata_o   = mem[rptr_q[AddrW-1:0]];
  assign pop       = rvalid_o && rready_i;
  assign rptr_next = rptr_q + 1'b1;

  always_ff @(posedge rclk_i or negedge rlive) begin
    if (!rlive) begin
      rptr_q  <= '0;
      rgray_q <= '0;
      wseen_q <= '0;
    end else begin
      if (pop) begin
        rptr_q  <= rptr_next;
        rgray_q <= gray(rptr_next);
      end
      wseen_q <= {wseen_q[ChainW-PtrW-1:0], wgray_q};
    end
  end

`ifdef FORMAL
`include "ct_async_fifo_formal.svh"
`endif

endmodule

`default_nettype wire
