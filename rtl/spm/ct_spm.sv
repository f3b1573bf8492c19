// SPDX-License-Identifier: Apache-2.0
//
// The scratchpad: 5 read ports and 2 write ports over 8 banks of 144-bit words (16 mantissas, an exponent, 8 parity bits).
//
// Ports       read, in order of priority: 0 MXU A, 1 MXU B of context 0, 2 MXU B of context 1, 3 VL, 4 ST; write: 0 LD, 1 VS.
//             They rank by unit and not by context, so that no access of training inside a unit holds an inference one for long.
// Banks       word address modulo 8. A bank does one read and one write a cycle; rd_ready_o and wr_ready_o (combinational) say
//             whether the request is served in this cycle. Port 0 of each kind is always served.
// Latency     read data come exactly ct_pkg::SpmLat = 2 cycles after the cycle of the grant, marked by rd_vld_o; data and parity
//             outputs mean nothing in other cycles.
// Order       a write granted in cycle t is seen by reads granted in t + 1 and later. A read of the same word in the same cycle
//             gets an undefined value (race-free programs do not do that).
// Addresses   physical; bits above Words are ignored, the windows are checked by the units.
// Parity      bit g is the even parity of bits g, g + 8, ... of {exp, data}; made at the write, checked at the read. A word that was
//             never written reads as zeros with good parity.
// Debug       peek_i reads a word, flip_arm_i inverts one bit of a word (0..127 data, 128..135 exponent, 136..143 parity) in the memory
//             itself, so that it lasts until the word is written. Both wait for a cycle in which nobody else wants the bank (the flip
//             for one without a write on port 1, too), the flip before the peek; a word written while its flip waits or is under
//             way is left as written. One of each kind may wait; a new one replaces it. peek_vld_o is a pulse with the data.
//
// Parameters
//   Words  a power of two, 128 .. 2^20; per bank Words / 8 words of 144 bits, which is 8 DP16KD of ECP5 at Words = 8192

`default_nettype none
`include "ct_assert.svh"

module ct_spm #(
  parameter  int unsigned Words = 65536,
  localparam int unsigned AddrW = ct_pkg::SpmAddrW
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  logic [4:0]         rd_valid_i,
  input  logic [5*AddrW-1:0] rd_addr_i,
  output logic [4:0]         rd_ready_o,
  output logic [4:0]         rd_vld_o,
  output logic [5*128-1:0]   rd_data_o,
  output logic [5*8-1:0]     rd_exp_o,
  output logic [4:0]         rd_perr_o,

  input  logic [1:0]         wr_valid_i,
  input  logic [2*AddrW-1:0] wr_addr_i,
  input  logic [2*128-1:0]   wr_data_i,
  input  logic [2*8-1:0]     wr_exp_i,
  output logic [1:0]         wr_ready_o,

  input  logic               flip_arm_i,
  input  logic [AddrW-1:0]   flip_addr_i,
  input  logic [7:0]         flip_bit_i,
  input  logic               peek_i,
  input  logic [AddrW-1:0]   peek_addr_i,
  output logic               peek_vld_o,
  output logic [127:0]       peek_data_o,
  output logic [7:0]         peek_exp_o,
  output logic               peek_perr_o
);

  if (Words < 128 || Words > 2 ** AddrW || (Words & (Words - 1)) != 0) begin : g_check_words
    ct_error_spm_words_must_be_a_power_of_two_from_128_to_2_to_the_20 u_error ();
  end

  localparam int Banks = 8;
  localparam int Ports = 6;  // read ports with the debug port, which is the last
  localparam int Dbg   = 5;
  localparam int WordW = 144;
  localparam int RowW  = $clog2(Words) - 3;
  localparam int unsigned Rows  = Words / Banks;

  // The parity byte of 136 bits: the exclusive or of the 17 bytes, folded so that a simulator needs few operations.
  function automatic logic [7:0] parity(input logic [127:0] data, input logic [7:0] exponent);
    logic [63:0] a;
    logic [31:0] b;
    logic [15:0] c;
    a = data[127:64] ^ data[63:0];
    b = a[63:32] ^ a[31:0];
    c = b[31:16] ^ b[15:0];
    parity = c[15:8] ^ c[7:0] ^ exponent;
  endfunction

  // ---------------------------------------------------------------------------------------------------------------------------
  // Debug port: a read like the others', and for a flip the word written back with one bit inverted.

  typedef enum logic [2:0] {
    DbgIdle,   // nothing waits
    DbgRead,   // wants a read
    DbgWait,   // the word is in the bank's output
    DbgData,   // the word is in the port's output
    DbgWrite   // wants the write
  } dbg_state_e;

  dbg_state_e       dbg_d, dbg_q;
  logic             flip_d, flip_q;      // a flip waits or is under way
  logic             peek_d, peek_q;      // a peek waits or is under way
  logic             is_flip_d, is_flip_q;
  logic [AddrW-1:0] flip_addr_q, peek_addr_q;
  logic [7:0]       flip_bit_q;
  logic [AddrW-1:0] dbg_addr;
  logic             dbg_rd_valid, dbg_rd_ready, dbg_wr_valid, dbg_wr_go;
  logic             overwritten;

  // ---------------------------------------------------------------------------------------------------------------------------
  // Requests of all ports in one shape.

  logic [Ports-1:0]       rd_valid;
  logic [3*Ports-1:0]     rd_bank;
  logic [RowW*Ports-1:0]  rd_row;
  logic [Ports-1:0]       rd_ready;
  logic [1:0]             wr_valid;
  logic [3*2-1:0]         wr_bank;
  logic [RowW*2-1:0]      wr_row;
  logic [WordW*2-1:0]     wr_word;

  logic [Banks-1:0]       bank_re, bank_we;
  logic [Banks-1:0]       bank_wport;
  logic [RowW*Banks-1:0]  bank_rrow, bank_wrow;

  logic [Ports-1:0]       vld1_q, vld2_q;
  logic [3*Ports-1:0]     bank1_q;
  logic [Ports-1:0]       bad;  // the parity of what each port has read is wrong

  assign rd_valid     = {dbg_rd_valid, rd_valid_i};
  assign rd_ready_o   = rd_ready[4:0];
  assign dbg_rd_ready = rd_ready[Dbg];

  always_comb begin
    for (int p = 0; p < 5; p++) begin
      rd_bank[3*p +: 3]      = rd_addr_i[AddrW*p +: 3];
      rd_row[RowW*p +: RowW] = rd_addr_i[AddrW*p + 3 +: RowW];
    end
    rd_bank[3*Dbg +: 3]      = dbg_addr[2:0];
    rd_row[RowW*Dbg +: RowW] = dbg_addr[3 +: RowW];
  end

  // A read is served unless a port of higher rank wants its bank.
  always_comb begin
    rd_ready = '1;
    if (rd_valid != '0) begin
      for (int p = 1; p < Ports; p++) begin
        for (int q = 0; q < p; q++) begin
          if (rd_valid[q] && rd_bank[3*q +: 3] == rd_bank[3*p +: 3]) rd_ready[p] = 1'b0;
        end
      end
    end
  end

  always_comb begin
    bank_re   = '0;
    bank_rrow = '0;
    if (rd_valid != '0) begin
      for (int b = 0; b < Banks; b++) begin
        for (int p = Ports - 1; p >= 0; p--) begin
          if (rd_valid[p] && rd_bank[3*p +: 3] == 3'(b)) begin
            bank_re[b]                = 1'b1;
            bank_rrow[RowW*b +: RowW] = rd_row[RowW*p +: RowW];
          end
        end
      end
    end
  end

  // Writes: LD always, VS unless LD wants its bank, the debug port in the place of an idle VS.
  assign wr_valid   = {wr_valid_i[1] || dbg_wr_valid, wr_valid_i[0]};
  assign wr_ready_o = {!(wr_valid_i[0] && wr_bank[2:0] == wr_addr_i[AddrW +: 3]), 1'b1};
  assign dbg_wr_go  = dbg_wr_valid && !(wr_valid_i[0] && wr_bank[2:0] == dbg_addr[2:0]);

  always_comb begin
    wr_bank = {dbg_wr_valid ? dbg_addr[2:0] : wr_addr_i[AddrW +: 3], wr_addr_i[2:0]};
    wr_row  = {dbg_wr_valid ? dbg_addr[3 +: RowW] : wr_addr_i[AddrW + 3 +: RowW], wr_addr_i[3 +: RowW]};
    wr_word = '0;
    if (wr_valid_i[0]) wr_word[0 +: WordW] = {parity(wr_data_i[127:0], wr_exp_i[7:0]), wr_exp_i[7:0], wr_data_i[127:0]};
    if (wr_valid_i[1]) begin
      wr_word[WordW +: WordW] = {parity(wr_data_i[255:128], wr_exp_i[15:8]), wr_exp_i[15:8], wr_data_i[255:128]};
    end else if (dbg_wr_valid) begin
      wr_word[WordW +: WordW] = g_port[Dbg].data_q ^ (WordW'(1) << flip_bit_q);
    end
  end

  always_comb begin
    bank_we    = '0;
    bank_wport = '0;
    bank_wrow  = '0;
    if (wr_valid != '0) begin
      for (int b = 0; b < Banks; b++) begin
        bank_wport[b] = !(wr_valid[0] && wr_bank[2:0] == 3'(b));
        bank_we[b]    = !bank_wport[b] || (wr_valid[1] && wr_bank[5:3] == 3'(b));
        bank_wrow[RowW*b +: RowW] = bank_wport[b] ? wr_row[RowW +: RowW] : wr_row[0 +: RowW];
      end
    end
  end

  for (genvar b = 0; b < Banks; b++) begin : g_bank
    (* no_rw_check *) logic [WordW-1:0] mem [0:Rows-1];
    logic [WordW-1:0] data_q;

    always_ff @(posedge clk_i) begin
      if (bank_we[b]) mem[bank_wrow[RowW*b +: RowW]] <= bank_wport[b] ? wr_word[WordW +: WordW] : wr_word[0 +: WordW];
      if (bank_re[b]) data_q <= mem[bank_rrow[RowW*b +: RowW]];
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // Read data: the port that asked takes the output of its bank.

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      vld1_q <= '0;
      vld2_q <= '0;
    end else begin
      vld1_q <= rd_valid & rd_ready;
      vld2_q <= vld1_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rd_valid != '0) bank1_q <= rd_bank;
  end

  for (genvar p = 0; p < Ports; p++) begin : g_port
    logic [WordW-1:0] data_q;

    always_ff @(posedge clk_i) begin
      if (vld1_q[p]) begin
        unique case (bank1_q[3*p +: 3])
          3'd0:    data_q <= g_bank[0].data_q;
          3'd1:    data_q <= g_bank[1].data_q;
          3'd2:    data_q <= g_bank[2].data_q;
          3'd3:    data_q <= g_bank[3].data_q;
          3'd4:    data_q <= g_bank[4].data_q;
          3'd5:    data_q <= g_bank[5].data_q;
          3'd6:    data_q <= g_bank[6].data_q;
          default: data_q <= g_bank[7].data_q;
        endcase
      end
    end

    assign bad[p] = vld2_q[p] && parity(data_q[127:0], data_q[135:128]) != data_q[143:136];
  end

  // One concatenation each: the simulator then passes the slices on without copying the whole.
  assign rd_vld_o  = vld2_q[4:0];
  assign rd_perr_o = bad[4:0];
  assign rd_data_o = {g_port[4].data_q[127:0], g_port[3].data_q[127:0], g_port[2].data_q[127:0], g_port[1].data_q[127:0],
                      g_port[0].data_q[127:0]};
  assign rd_exp_o  = {g_port[4].data_q[135:128], g_port[3].data_q[135:128], g_port[2].data_q[135:128],
                      g_port[1].data_q[135:128], g_port[0].data_q[135:128]};

  // ---------------------------------------------------------------------------------------------------------------------------
  // Debug state machine.

  assign dbg_addr     = is_flip_q ? flip_addr_q : peek_addr_q;
  assign dbg_rd_valid = (dbg_q == DbgRead);
  assign dbg_wr_valid = (dbg_q == DbgWrite) && flip_q && !wr_valid_i[1];

  // The word of a flip that waits or is under way is being written by its owner, who wins.
  assign overwritten = flip_q && ((wr_valid_i[0] && wr_addr_i[0 +: RowW+3] == flip_addr_q[RowW+2:0]) ||
                       (wr_valid_i[1] && wr_ready_o[1] && wr_addr_i[AddrW +: RowW+3] == flip_addr_q[RowW+2:0]));

  always_comb begin
    dbg_d     = dbg_q;
    flip_d    = flip_q;
    peek_d    = peek_q;
    is_flip_d = is_flip_q;
    if (overwritten) flip_d = 1'b0;
    unique case (dbg_q)
      DbgIdle: begin
        if (flip_q || peek_q) begin
          dbg_d     = DbgRead;
          is_flip_d = flip_q;
        end
      end
      DbgRead: if (dbg_rd_ready) dbg_d = DbgWait;
      DbgWait: dbg_d = DbgData;
      DbgData: begin
        dbg_d = is_flip_q ? DbgWrite : DbgIdle;
        if (!is_flip_q) peek_d = 1'b0;
      end
      default: begin
        if (!flip_q || dbg_wr_go) begin
          dbg_d  = DbgIdle;
          flip_d = 1'b0;
        end
      end
    endcase
    // A new request replaces what waits, and starts over what is under way.
    if (flip_arm_i) begin
      flip_d = 1'b1;
      if (is_flip_q) dbg_d = DbgIdle;
    end
    if (peek_i) begin
      peek_d = 1'b1;
      if (!is_flip_q) dbg_d = DbgIdle;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      dbg_q     <= DbgIdle;
      flip_q    <= 1'b0;
      peek_q    <= 1'b0;
      is_flip_q <= 1'b0;
    end else begin
      dbg_q     <= dbg_d;
      flip_q    <= flip_d;
      peek_q    <= peek_d;
      is_flip_q <= is_flip_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (flip_arm_i) begin
      flip_addr_q <= flip_addr_i;
      flip_bit_q  <= flip_bit_i;
    end
    if (peek_i) peek_addr_q <= peek_addr_i;
  end

  assign peek_vld_o  = (dbg_q == DbgData) && !is_flip_q;
  assign peek_data_o = g_port[Dbg].data_q[127:0];
  assign peek_exp_o  = g_port[Dbg].data_q[135:128];
  assign peek_perr_o = bad[Dbg];

  logic unused_addr;
  assign unused_addr = ^{rd_addr_i, wr_addr_i, dbg_addr, flip_addr_q, peek_addr_q};

  `CT_ASSERT(FirstReadServed_A, !rd_valid_i[0] || rd_ready_o[0])
  `CT_ASSERT(LdWriteServed_A, wr_ready_o[0])
  `CT_ASSERT(DebugReadComes_A, dbg_q != DbgData || vld2_q[Dbg])
  `CT_ASSERT(OneWritePerBank_A, !(wr_valid_i == 2'b11 && wr_ready_o[1]) || wr_bank[2:0] != wr_bank[5:3])

endmodule

`default_nettype wire
