// SPDX-License-Identifier: Apache-2.0
//
// The registers of one context (ct_regs has two of these).
//
// Writes      in the cycle with wr_i, by whole words; what is not a register is ignored. tail_we_o, reset_o, cancel_o and cpl_pop_o are pulses
//             in that cycle.
// Reads       rd_data_o is the word rd_word_i of the cycle before if rd_valid_i was high then, else 0; what is not mapped reads 0, and so do the
//             registers of a completion if there is none. Registers that read as they were written are read from a LUT RAM beside them.
// Window      SPM_BASE and SPM_SIZE are kept as they are written, in whatever order. The window that counts is what of that lies in the
//             scratchpad: spm_base_o and spm_size_o follow a cycle later, and SPM_SIZE reads spm_size_o. So base + size never wraps
//             into words of the other context; a program that goes on past the end gets SPM_WINDOW from the unit.
// Arena       (Compress) a write of ARENA_PAGES is a pulse of arena_reset_o a cycle later, when arena_pages_o is what was written, at most
//             ct_pkg::CompPages. Without Compress its registers read 0, and nothing is kept.
// Reset values: the window is SpmWords / 2 words from SpmFirst on; DRAM windows are empty, and so is the arena.

`default_nettype none
`include "ct_assert.svh"

module ct_regs_ctx #(
  parameter  int unsigned SpmWords = 65536,
  parameter  int unsigned SpmFirst = 0,
  parameter  int unsigned Compress = 0,
  localparam int unsigned PageW    = ct_pkg::CompPageW,
  localparam int unsigned CplW     = ct_pkg::CplW
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            wr_i,
  input  logic [7:0]      wr_offset_i,
  input  logic [31:0]     wr_data_i,
  input  logic            rd_valid_i,
  input  logic [4:0]      rd_word_i,
  output logic [31:0]     rd_data_o,

  output logic [31:0]     ring_base_o,
  output logic [3:0]      ring_log2_o,
  output logic            tail_we_o,
  output logic            reset_o,
  output logic            cancel_o,
  output logic [31:0]     watchdog_o,
  output logic [31:0]     rd_base_o,
  output logic [31:0]     rd_limit_o,
  output logic [31:0]     wr_base_o,
  output logic [31:0]     wr_limit_o,
  output logic [19:0]     spm_base_o,
  output logic [19:0]     spm_size_o,

  output logic            arena_reset_o,
  output logic [31:0]     arena_base_o,
  output logic [PageW:0]  arena_pages_o,
  input  logic [PageW:0]  arena_held_i,
  input  logic [PageW:0]  arena_most_i,

  input  logic [15:0]     tail_i,
  input  logic [15:0]     head_i,
  input  logic [2:0]      status_i,
  input  logic            cpl_valid_i,
  input  logic [4:0]      cpl_count_i,
  input  logic [CplW-1:0] cpl_i,
  output logic            cpl_pop_o
);

  // These words are read from the LUT RAM.
  localparam logic [15:0] InShadow = (16'd1 << (ct_pkg::CregRingBase >> 2)) | (16'd1 << (ct_pkg::CregRdBase >> 2)) | (16'd1 << (ct_pkg::CregRdLimit >> 2)) |
                                     (16'd1 << (ct_pkg::CregWrBase >> 2)) | (16'd1 << (ct_pkg::CregWrLimit >> 2)) | (16'd1 << (ct_pkg::CregSpmBase >> 2)) |
                                     (16'd1 << (ct_pkg::CregWatchdog >> 2));

  logic [31:0]   ring_base_q, watchdog_q, rd_base_q, rd_limit_q, wr_base_q, wr_limit_q;
  logic [3:0]    ring_log2_q;
  logic [19:0]   spm_base_q, spm_size_q;  // as they were written
  logic [19:0]   spm_at_q, spm_len_q;     // the window that counts
  logic [20:0]   spm_room;
  logic [1023:0] words;
  logic [31:0]   shadow [0:15];           // what was written
  logic [31:0]   shadow_word;
  logic [15:0]   written_q;               // of InShadow, once they have been written
  logic [31:0]   rd_data_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ring_base_q <= '0;
      ring_log2_q <= '0;
      watchdog_q  <= '0;
      rd_base_q   <= '0;
      rd_limit_q  <= '0;
      wr_base_q   <= '0;
      wr_limit_q  <= '0;
      spm_base_q  <= 20'(SpmFirst);
      spm_size_q  <= 20'(SpmWords / 2);
    end else if (wr_i) begin
      unique case (wr_offset_i)
        ct_pkg::CregRingBase: ring_base_q <= wr_data_i;
        ct_pkg::CregRingLog2: ring_log2_q <= (wr_data_i > 32'd10) ? 4'd10 : wr_data_i[3:0];
        ct_pkg::CregWatchdog: watchdog_q  <= wr_data_i;
        ct_pkg::CregRdBase:   rd_base_q   <= wr_data_i;
        ct_pkg::CregRdLimit:  rd_limit_q  <= wr_data_i;
        ct_pkg::CregWrBase:   wr_base_q   <= wr_data_i;
        ct_pkg::CregWrLimit:  wr_limit_q  <= wr_data_i;
        ct_pkg::CregSpmBase:  spm_base_q  <= wr_data_i[19:0];
        ct_pkg::CregSpmSize:  spm_size_q  <= wr_data_i[19:0];
        default: ;
      endcase
    end
  end

  assign tail_we_o = wr_i && (wr_offset_i == ct_pkg::CregTail);
  assign reset_o   = wr_i && (wr_offset_i == ct_pkg::CregControl) && wr_data_i[0];
  assign cancel_o  = wr_i && (wr_offset_i == ct_pkg::CregControl) && wr_data_i[1];
  assign cpl_pop_o = wr_i && (wr_offset_i == ct_pkg::CregCplPop);

  assign spm_room = ({1'b0, spm_base_q} < 21'(SpmWords)) ? 21'(SpmWords) - {1'b0, spm_base_q} : '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      spm_at_q  <= 20'(SpmFirst);
      spm_len_q <= 20'(SpmWords / 2);
    end else begin
      spm_at_q  <= spm_base_q;
      spm_len_q <= ({1'b0, spm_size_q} < spm_room) ? spm_size_q : spm_room[19:0];
    end
  end

  `CT_ASSERT(WindowInSpm_A, 22'(spm_at_q) + 22'(spm_len_q) <= 22'(SpmWords) || spm_len_q == '0)

  if (Compress != 0) begin : g_arena
    logic [31:8]    base_q;
    logic [PageW:0] pages_q;
    logic           reset_q, write;
    assign write = wr_i && wr_offset_i == ct_pkg::CregArenaPages;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        base_q  <= '0;
        pages_q <= '0;
        reset_q <= 1'b0;
      end else begin
        if (wr_i && wr_offset_i == ct_pkg::CregArenaBase) base_q <= wr_data_i[31:8];
        if (write) pages_q <= (wr_data_i > ct_pkg::CompPages) ? (PageW + 1)'(ct_pkg::CompPages) : wr_data_i[PageW:0];
        reset_q <= write;
      end
    end
    assign arena_reset_o = reset_q;
    assign arena_base_o  = {base_q, 8'd0};
    assign arena_pages_o = pages_q;
  end else begin : g_no_arena
    assign {arena_reset_o, arena_base_o, arena_pages_o} = '0;
  end

  assign ring_base_o = ring_base_q;
  assign ring_log2_o = ring_log2_q;
  assign watchdog_o  = watchdog_q;
  assign rd_base_o   = rd_base_q;
  assign rd_limit_o  = rd_limit_q;
  assign wr_base_o   = wr_base_q;
  assign wr_limit_o  = wr_limit_q;
  assign spm_base_o  = spm_at_q;
  assign spm_size_o  = spm_len_q;

  always_ff @(posedge clk_i) begin
    if (wr_i && wr_offset_i[7:6] == 2'd0)
      shadow[wr_offset_i[5:2]] <= (wr_offset_i == ct_pkg::CregSpmBase) ? 32'(wr_data_i[19:0]) : wr_data_i;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) written_q <= '0;
    else if (wr_i && wr_offset_i[7:6] == 2'd0) written_q <= written_q | (InShadow & (16'd1 << wr_offset_i[5:2]));
  end

  assign shadow_word = shadow[rd_word_i[3:0]];

  // The other words of the map, so that a read is one multiplexer; what is not written here reads 0.
  always_comb begin
    words = '0;
    words[8*ct_pkg::CregSpmBase +: 32]     = SpmFirst;  // until it is written
    words[8*ct_pkg::CregRingLog2 +: 32]    = 32'(ring_log2_q);
    words[8*ct_pkg::CregTail +: 32]        = 32'(tail_i);
    words[8*ct_pkg::CregHead +: 32]        = 32'(head_i);
    words[8*ct_pkg::CregStatus +: 32]      = {16'd0, 3'd0, cpl_count_i, 5'd0, status_i};
    words[8*ct_pkg::CregSpmSize +: 32]     = 32'(spm_len_q);
    words[8*ct_pkg::CregArenaBase +: 32]   = arena_base_o;
    words[8*ct_pkg::CregArenaPages +: 32]  = 32'(arena_pages_o);
    words[8*ct_pkg::CregArenaHeld +: 32]   = 32'(arena_held_i);
    words[8*ct_pkg::CregArenaMost +: 32]   = 32'(arena_most_i);
    words[8*ct_pkg::CregCplCount +: 32]    = 32'(cpl_count_i);
    words[8*ct_pkg::CregCplTag +: 32]      = cpl_i[ct_pkg::CplTagLsb +: 32];
    words[8*ct_pkg::CregCplCode +: 32]     = 32'(cpl_i[ct_pkg::CplCodeLsb +: 8]);
    words[8*ct_pkg::CregCplAddr +: 32]     = cpl_i[ct_pkg::CplAddrLsb +: 32];
    words[8*ct_pkg::CregCplVersion +: 32]  = cpl_i[ct_pkg::CplVersionLsb +: 32];
    words[8*ct_pkg::CregCplArriveLo +: 32] = cpl_i[ct_pkg::CplArriveLsb +: 32];
    words[8*ct_pkg::CregCplArriveHi +: 32] = cpl_i[ct_pkg::CplArriveLsb+32 +: 32];
    words[8*ct_pkg::CregCplStartLo +: 32]  = cpl_i[ct_pkg::CplStartLsb +: 32];
    words[8*ct_pkg::CregCplStartHi +: 32]  = cpl_i[ct_pkg::CplStartLsb+32 +: 32];
    words[8*ct_pkg::CregCplEndLo +: 32]    = cpl_i[ct_pkg::CplEndLsb +: 32];
    words[8*ct_pkg::CregCplEndHi +: 32]    = cpl_i[ct_pkg::CplEndLsb+32 +: 32];
    words[8*ct_pkg::CregCplRows +: 32]     = cpl_i[ct_pkg::CplRowsLsb +: 32];
  end

  // Without a completion its registers read 0.
  logic of_cpl;
  assign of_cpl = rd_word_i >= 5'(ct_pkg::CregCplTag >> 2) && rd_word_i != 5'(ct_pkg::CregArenaMost >> 2);
  always_ff @(posedge clk_i) begin
    if (!rd_valid_i || (!cpl_valid_i && of_cpl))         rd_data_q <= '0;
    else if (!rd_word_i[4] && written_q[rd_word_i[3:0]]) rd_data_q <= shadow_word;
    else                                                 rd_data_q <= words[32*rd_word_i +: 32];
  end
  assign rd_data_o = rd_data_q;

endmodule

`default_nettype wire
