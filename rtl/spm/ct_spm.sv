// SPDX-License-Identifier: Apache-2.0
//
// The scratchpad: 5 read ports and 2 write ports over banks of 144-bit words (16 mantissas, an exponent, 8 parity bits).
//
// Ports       read: 0 MXU A, 1 MXU B of context 0, 2 MXU B of context 1, 3 ST, 4 VL; write: 0 LD, 1 VS.
// Rank        of the reads that want a bank the one goes whose port was served least recently: each of the four others goes before it
//             once at most, so no read waits for more than 4 cycles. With strict_i (ct_core: PRIORITY with the floor at 0) reads with
//             rd_yield_i (training's) go after all without, and among equals the first port goes: VL is the last one because it may stand in for
//             inference with words of training (urgent_q of ct_vpu). While reads without rd_yield_i wait, age counts among them in every
//             64th cycle, once one has waited for the 64 before: none waits for more than 384 cycles. (A read with rd_yield_i never
//             changes the order of others, nor does the hour: what inference sees is the same beside training and alone, then and now.)
//             Of two writes LD's goes (see ct_vpu_guard).
// Banks       word address modulo Banks. A bank does one read and one write a cycle; rd_ready_o and wr_ready_o (combinational) say
//             whether the request is served in this cycle. Write port 0 is always served.
// Latency     read data come exactly ct_pkg::SpmLat = 2 cycles after the cycle of the grant, marked by rd_vld_o; data and parity
//             outputs mean nothing in other cycles.
// Order       a write granted in cycle t is seen by reads granted in t + 1 and later. A read of the same word in the same cycle
//             gets an undefined value (race-free programs do not do that).
// Addresses   physical; bits above Words are ignored, the windows are checked by the units.
// Parity      bit g is the even parity of bits g, g + 8, ... of {exp, data}; made at the write, checked at the read. A word that was
//             never written reads as zeros with good parity.
// Debug       peek_i reads a word, flip_arm_i inverts one bit of a word (0..127 data, 128..135 exponent, 136..143 parity) in the memory
//             itself, so that it lasts until the word is written. Both read through port 4, in a cycle in which that is idle and nobody
//             else wants the bank, the flip before the peek; if, two cycles later, port 1 writes or port 0 writes the bank, the flip
//             reads once more. A word written while its flip waits or is under way is left as written. One of each kind may wait;
//             a new one replaces it. peek_vld_o is a pulse with the data.
// Cost        a multiplexer of Banks words in front of each read port's register, one of two words in front of each bank. The one-hot
//             choices are registered, so that the former are ANDs and an OR: 5 LUT4 a bit with 8 banks, 3 with 4, one with 2.
//
// Parameters
//   Words  a power of two, 128 .. 2^20; per bank Words / Banks words of 144 bits, which is 8 DP16KD of ECP5 at Words / Banks = 1024
//   Banks  8, 4 or 2

`default_nettype none
`include "ct_assert.svh"

module ct_spm #(
  parameter  int unsigned Words = 65536,
  parameter  int unsigned Banks = 8,
  localparam int unsigned AddrW = ct_pkg::SpmAddrW
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  logic [4:0]         rd_valid_i,
  input  logic [5*AddrW-1:0] rd_addr_i,
  input  logic               strict_i,
  input  logic [4:0]         rd_yield_i,
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

  if (Banks != 8 && Banks != 4 && Banks != 2) begin : g_check_banks
    ct_error_spm_banks_must_be_8_4_or_2 u_error ();
  end

  localparam int Ports = 5;
  localparam int Dbg   = 4;  // the read port that the debug port shares
  localparam int WordW = 144;
  localparam int BankW = $clog2(Banks);
  localparam int RowW  = $clog2(Words) - BankW;
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

  typedef enum logic [1:0] {
    DbgIdle,   // nothing waits
    DbgRead,   // wants a read
    DbgWait,   // the word is in the bank's output
    DbgData    // the word is in the port's output: answers the peek, writes the flipped word
  } dbg_state_e;

  dbg_state_e       dbg_d, dbg_q;
  logic             flip_d, flip_q;      // a flip waits or is under way
  logic             peek_d, peek_q;      // a peek waits or is under way
  logic             is_flip_d, is_flip_q;
  logic [AddrW-1:0] flip_addr_q, peek_addr_q;
  logic [7:0]       flip_bit_q;
  logic [AddrW-1:0] dbg_addr;
  logic             dbg_rd_valid, dbg_rd_go, dbg_wr_valid, dbg_wr_go;
  logic             overwritten;

  // ---------------------------------------------------------------------------------------------------------------------------
  // Requests of all ports in one shape.

  logic [Ports-1:0]       rd_valid, rd_yield;
  logic [BankW*Ports-1:0] rd_bank;
  logic [RowW*Ports-1:0]  rd_row;
  logic [Ports-1:0]       rd_ready;
  logic [Banks*Ports-1:0] rd_gnt_d, rd_gnt_q;  // port p gets bank b: bit Banks*p + b
  logic [1:0]             wr_valid;
  logic [BankW*2-1:0]     wr_bank;
  logic [RowW*2-1:0]      wr_row;
  logic [WordW*2-1:0]     wr_word;

  logic [Banks-1:0]       bank_we;
  logic [Banks-1:0]       bank_wport;
  logic [RowW*Banks-1:0]  bank_rrow, bank_wrow;

  logic [Ports-1:0]       vld1_q, vld2_q;
  logic [Ports-1:0]       bad;  // the parity of what each port has read is wrong

  assign rd_valid   = {rd_valid_i[Dbg] || dbg_rd_valid, rd_valid_i[Dbg-1:0]};
  assign rd_yield   = {(strict_i && rd_yield_i[Dbg]) || !rd_valid_i[Dbg], rd_yield_i[Dbg-1:0] & {Dbg{strict_i}}};
  assign rd_ready_o = rd_ready;
  assign dbg_rd_go  = dbg_rd_valid && !rd_valid_i[Dbg] && rd_ready[Dbg];

  always_comb begin
    for (int p = 0; p < Ports; p++) begin
      rd_bank[BankW*p +: BankW] = rd_addr_i[AddrW*p +: BankW];
      rd_row[RowW*p +: RowW]    = rd_addr_i[AddrW*p + BankW +: RowW];
    end
    if (!rd_valid_i[Dbg]) begin
      rd_bank[BankW*Dbg +: BankW] = dbg_addr[BankW-1:0];
      rd_row[RowW*Dbg +: RowW]    = dbg_addr[BankW +: RowW];
    end
  end

  // Which of two ports was served less recently: bit Ports*q + p, for q < p, says that it is p. Of several that are served in one
  // cycle the order stays, so it is always one of all ports. Reads that yield do not count in it.
  logic [Ports*Ports-1:0] later_d, later_q;
  logic [Ports-1:0]       served;
  logic [5:0]             tick_d, tick_q;  // cycles since reads that do not yield began to wait, modulo 64
  logic                   tick, by_age;
  logic [Ports-1:0]       waits;           // and does not yield
  logic [Ports-1:0]       seen_d, seen_q;  // has waited since the last tick
  assign served = rd_valid_i & rd_ready & ~rd_yield;
  assign waits  = rd_valid_i & ~rd_ready & ~rd_yield;
  assign tick   = tick_q == 6'd63;
  assign tick_d = (waits != '0) ? tick_q + 6'd1 : 6'd0;
  assign by_age = !strict_i || (tick && seen_q != '0);
  assign seen_d = waits & (seen_q | {Ports{tick}});
  always_comb begin
    later_d = later_q;
    for (int p = 1; p < Ports; p++) begin
      for (int q = 0; q < p; q++) begin
        if (served[q] != served[p]) later_d[Ports*q + p] = served[q];
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      later_q <= '0;
      seen_q  <= '0;
      tick_q  <= '0;
    end else begin
      if (rd_valid_i != '0) later_q <= later_d;
      seen_q  <= seen_d;
      tick_q  <= tick_d;
    end
  end

  // Of two reads that want one bank, one that yields waits for one that does not, and of equals the one behind. (Each bank chooses for
  // itself, and whether the address of a read is that of a bank is known before who goes first.)
  logic [Ports*Ports-1:0] after;   // bit Ports*p + q: p waits for q
  logic [Ports*Banks-1:0] want;    // bit Ports*b + p: p wants bank b
  logic [Ports*Banks-1:0] win;     // and has it
  always_comb begin
    after = '0;
    for (int p = 1; p < Ports; p++) begin
      for (int q = 0; q < p; q++) begin
        after[Ports*q + p] = (rd_yield[q] == rd_yield[p]) ? by_age && later_q[Ports*q + p] && (p != Dbg || rd_valid_i[Dbg]) : rd_yield[q];
        after[Ports*p + q] = !after[Ports*q + p];
      end
    end
  end

  always_comb begin
    rd_ready = '1;
    rd_gnt_d = '0;
    want     = '0;
    win      = '0;
    if (rd_valid != '0) begin
      for (int b = 0; b < Banks; b++) begin
        for (int p = 0; p < Ports; p++) want[Ports*b + p] = rd_valid[p] && rd_bank[BankW*p +: BankW] == BankW'(b);
        for (int p = 0; p < Ports; p++) begin
          win[Ports*b + p]       = want[Ports*b + p] && (want[Ports*b +: Ports] & after[Ports*p +: Ports]) == '0;
          rd_gnt_d[Banks*p + b]  = win[Ports*b + p];
          if (want[Ports*b + p] && !win[Ports*b + p]) rd_ready[p] = 1'b0;
        end
      end
    end
  end

  always_comb begin
    bank_rrow = '0;
    if (rd_valid != '0) begin
      for (int b = 0; b < Banks; b++) begin
        for (int p = 0; p < Ports; p++) begin
          if (rd_gnt_d[Banks*p + b]) bank_rrow[RowW*b +: RowW] = bank_rrow[RowW*b +: RowW] | rd_row[RowW*p +: RowW];
        end
      end
    end
  end

  // Writes: LD always, VS unless LD wants its bank, the debug port in the place of an idle VS.
  assign wr_valid   = {wr_valid_i[1] || dbg_wr_valid, wr_valid_i[0]};
  assign wr_ready_o = {!(wr_valid_i[0] && wr_bank[BankW-1:0] == wr_addr_i[AddrW +: BankW]), 1'b1};
  assign dbg_wr_go  = dbg_wr_valid && !(wr_valid_i[0] && wr_bank[BankW-1:0] == dbg_addr[BankW-1:0]);

  // Words that are not written may be anything.
  always_comb begin
    wr_bank = {dbg_wr_valid ? dbg_addr[BankW-1:0] : wr_addr_i[AddrW +: BankW], wr_addr_i[BankW-1:0]};
    wr_row  = {dbg_wr_valid ? dbg_addr[BankW +: RowW] : wr_addr_i[AddrW + BankW +: RowW], wr_addr_i[BankW +: RowW]};
    wr_word = 'x;
    if (wr_valid_i[0]) wr_word[0 +: WordW] = {parity(wr_data_i[127:0], wr_exp_i[7:0]), wr_exp_i[7:0], wr_data_i[127:0]};
    if (dbg_wr_valid) begin
      wr_word[WordW +: WordW] = g_port[Dbg].data_q;
    end else if (wr_valid_i[1]) begin
      wr_word[WordW +: WordW] = {parity(wr_data_i[255:128], wr_exp_i[15:8]), wr_exp_i[15:8], wr_data_i[255:128]};
    end
  end

  always_comb begin
    bank_we    = '0;
    bank_wport = '0;
    bank_wrow  = '0;
    if (wr_valid != '0) begin
      for (int b = 0; b < Banks; b++) begin
        bank_wport[b] = !(wr_valid[0] && wr_bank[BankW-1:0] == BankW'(b));
        bank_we[b]    = !bank_wport[b] || (wr_valid[1] && wr_bank[2*BankW-1:BankW] == BankW'(b));
        bank_wrow[RowW*b +: RowW] = bank_wport[b] ? wr_row[RowW +: RowW] : wr_row[0 +: RowW];
      end
    end
  end

  for (genvar b = 0; b < Banks; b++) begin : g_bank
    (* no_rw_check *) logic [WordW-1:0] mem [0:Rows-1];
    logic [WordW-1:0] data_q;

    always_ff @(posedge clk_i) begin
      if (bank_we[b]) mem[bank_wrow[RowW*b +: RowW]] <= bank_wport[b] ? wr_word[WordW +: WordW] : wr_word[0 +: WordW];
      if (rd_valid != '0) data_q <= mem[bank_rrow[RowW*b +: RowW]];
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------------
  // Read data: the port that asked takes the output of its bank.

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      vld1_q <= '0;
      vld2_q <= '0;
    end else begin
      vld1_q <= rd_valid_i & rd_ready;
      vld2_q <= vld1_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rd_valid != '0) rd_gnt_q <= rd_gnt_d;
  end

  function automatic logic [WordW-1:0] gate(input logic on, input logic [WordW-1:0] x);
    gate = on ? x : '0;
  endfunction

  // The bit that a flip inverts, as row and column of a square: inverted on the way into the port's register, where it costs nothing.
  logic [15:0]      flip_row, flip_col;
  logic [WordW-1:0] flip_mask;
  always_comb begin
    flip_row  = '0;
    flip_col  = '0;
    flip_mask = '0;
    if (dbg_q == DbgWait && is_flip_q) begin
      flip_row = 16'd1 << flip_bit_q[7:4];
      flip_col = 16'd1 << flip_bit_q[3:0];
      for (int i = 0; i < WordW; i++) flip_mask[i] = flip_row[i / 16] && flip_col[i % 16];
    end
  end

  for (genvar p = 0; p < Ports; p++) begin : g_port
    logic [WordW-1:0] data_q;
    logic [7:0]       gnt;
    logic             load;

    assign gnt  = 8'(rd_gnt_q[Banks*p +: Banks]);
    assign load = vld1_q[p] || (p == Dbg && dbg_q == DbgWait);

    // With fewer banks than 8 the last ones are never granted.
    always_ff @(posedge clk_i) begin
      if (load) begin
        data_q <= ((p == Dbg) ? flip_mask : '0)
                ^ (gate(gnt[0], g_bank[0].data_q) | gate(gnt[1], g_bank[1 % Banks].data_q)
                | gate(gnt[2], g_bank[2 % Banks].data_q) | gate(gnt[3], g_bank[3 % Banks].data_q)
                | gate(gnt[4], g_bank[4 % Banks].data_q) | gate(gnt[5], g_bank[5 % Banks].data_q)
                | gate(gnt[6], g_bank[6 % Banks].data_q) | gate(gnt[7], g_bank[7 % Banks].data_q));
      end
    end

    assign bad[p] = parity(data_q[127:0], data_q[135:128]) != data_q[143:136];
  end

  // One concatenation each: the simulator then passes the slices on without copying the whole.
  assign rd_vld_o  = vld2_q;
  assign rd_perr_o = bad & vld2_q;
  assign rd_data_o = {g_port[4].data_q[127:0], g_port[3].data_q[127:0], g_port[2].data_q[127:0], g_port[1].data_q[127:0],
                      g_port[0].data_q[127:0]};
  assign rd_exp_o  = {g_port[4].data_q[135:128], g_port[3].data_q[135:128], g_port[2].data_q[135:128],
                      g_port[1].data_q[135:128], g_port[0].data_q[135:128]};

  // ---------------------------------------------------------------------------------------------------------------------------
  // Debug state machine.

  assign dbg_addr     = is_flip_q ? flip_addr_q : peek_addr_q;
  assign dbg_rd_valid = (dbg_q == DbgRead);
  assign dbg_wr_valid = (dbg_q == DbgData) && is_flip_q && flip_q && !wr_valid_i[1];

  // The word of a flip that waits or is under way is being written by its owner, who wins.
  assign overwritten = flip_q && ((wr_valid_i[0] && wr_addr_i[0 +: RowW+BankW] == flip_addr_q[RowW+BankW-1:0]) ||
                       (wr_valid_i[1] && wr_ready_o[1] && wr_addr_i[AddrW +: RowW+BankW] == flip_addr_q[RowW+BankW-1:0]));

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
      DbgRead: if (dbg_rd_go) dbg_d = DbgWait;
      DbgWait: dbg_d = DbgData;
      default: begin
        dbg_d = DbgIdle;
        if (!is_flip_q)     peek_d = 1'b0;
        else if (dbg_wr_go) flip_d = 1'b0;
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
  assign peek_perr_o = peek_vld_o && bad[Dbg];

  logic unused_addr;
  assign unused_addr = ^{rd_addr_i, wr_addr_i, dbg_addr, flip_addr_q, peek_addr_q};

  `CT_ASSERT(FirstReadServed_A, !strict_i || by_age || !rd_valid_i[0] || rd_yield_i[0] || rd_ready_o[0])
  // Nobody waits for a read that yields, unless it yields itself.
  logic [Banks-1:0] first_want, late_gnt;
  always_comb begin
    first_want = '0;
    late_gnt   = '0;
    for (int p = 0; p < Ports; p++) begin
      if (rd_valid[p] && !rd_yield[p])               first_want[rd_bank[BankW*p +: BankW]] = 1'b1;
      if (rd_valid[p] && rd_yield[p] && rd_ready[p]) late_gnt[rd_bank[BankW*p +: BankW]]   = 1'b1;
    end
  end
  `CT_ASSERT(YieldingReadLast_A, (first_want & late_gnt) == '0)
  `CT_ASSERT(LdWriteServed_A, wr_ready_o[0])
  `CT_ASSERT(DebugReadAlone_A, dbg_q != DbgData || !vld2_q[Dbg])
  `CT_ASSERT(OneWritePerBank_A, !(wr_valid_i == 2'b11 && wr_ready_o[1]) || wr_bank[BankW-1:0] != wr_bank[2*BankW-1:BankW])

`ifdef FORMAL
  `include "ct_spm_formal.svh"
`endif

endmodule

`default_nettype wire
