// SPDX-License-Identifier: Apache-2.0
//
// Program buffer and sequencer of one context: executes CTL and ADDI, adds registers to fields, refuses illegal commands,
// dispatches the others to the queues of the six units.
//
// Program     arrives as 2 * ncmds_i beats of 128 bits, low half of each command first, while it already executes; it is kept in
//             block RAM (512 commands), so loops replay without memory traffic.
// Pipeline    read (P: the output register of the RAM) -> execute (IR). A command stays in IR for one cycle for each register it
//             adds (a field whose register is r0 costs none; at most three), and one more in which it is checked and dispatched.
//             ADDI takes a cycle for each pair (a pair with Rd = 0 costs none), at least one. So a command takes 1 to 4
//             cycles; an ENDL that goes back costs one more (the refill of P).
// Job         load_i (one cycle) forgets the program; the beats that follow are another. start_i (one cycle, with load_i or later)
//             begins to execute it; ncmds_i (1..512) is stable from then to END. If its beats come again (load_i while it runs), execution
//             goes on when those of the next command are there.
//             stop_i (level) ends execution at once. end_o stays high from END to the next start.
// Arguments   arg_we_i writes four registers: group g, word w goes to r[4*g + w + 1] (so group 7's last word goes nowhere).
//             Only while no program runs.
// Queues      q_valid_o is one-hot at most, q_cmd_o is the resolved command; a full queue blocks all commands behind it (order).
// Errors      err_o (one cycle): illegal command, with its index in idx_o; execution ends there. idx_o is at all times the index
//             of the next command (the watchdog reports it).
//
// Batches     rows_i is the number of requests of the batch that the program runs for, 0 in a job of the ring; stable while it runs. An LD or ST
//             with Gather gets it as its N2.
//
// Illegal are: unknown codes; reserved values (VL/VS Mode > 2, VA ASrc = 3, Fn > 3, Func other than 0, 8, 9, 10; VS Round not 0);
// LD/ST Nb = 0 or > 256, or > 16 with Hdr, N1 = 0, N2 = 0 (without Gather), Gather outside a batch; MM Kt = 0, Nt = 0, Rows outside 1..128, Mt * Nt > 8, an ACC tile above 15; VL,
// VA, VS Rows outside 1..16; VA Cols outside 1..16, both BSrc and CSrc in {1, 2}, Td = Tq when RowXor or LaneXor is not 0
// (whether Tq is used or not) or BSrc or CSrc is 2; two enabled waits of a command for one semaphore; an enabled wait or signal on CTL and ADDI; LOOP with
// Count = 0 or nested deeper than 4; ENDL without LOOP; the end of the program without END. Ranges hold for the sums, modulo the field's
// width. Fields a command does not use are not looked at (so Count matters to LOOP only).

`default_nettype none
`include "ct_assert.svh"

module ct_fetch (
  input  logic         clk_i,
  input  logic         rst_ni,

  // From ct_job.
  input  logic         load_i,
  input  logic         start_i,
  input  logic [9:0]   ncmds_i,
  input  logic         stop_i,
  output logic         first_o,   // the first command has arrived
  output logic         loaded_o,  // the whole program has arrived
  output logic         end_o,
  output logic         err_o,
  output logic [9:0]   idx_o,
  output logic         done_o,    // a command has been executed or dispatched
  input  logic [4:0]   rows_i,

  // Program beats (never refused) and arguments.
  input  logic         prog_valid_i,
  input  logic [127:0] prog_data_i,
  input  logic         arg_we_i,
  input  logic [2:0]   arg_group_i,
  input  logic [127:0] arg_data_i,

  // To the queues: LD, ST, MM, VL, VA, VS.
  output logic [5:0]   q_valid_o,
  output logic [255:0] q_cmd_o,
  input  logic [5:0]   q_ready_i
);

  localparam int unsigned ProgMax = ct_pkg::ProgMax;

  // What a command is, decoded from its code when it enters IR.
  typedef enum logic [3:0] {
    KindBad, KindNop, KindEnd, KindLoop, KindEndl, KindAddi, KindLd, KindSt, KindMm, KindVl, KindVa, KindVs
  } kind_e;

  // ---- Program buffer ----------------------------------------------------------------------------------------------------

  // Never read where they are written (ReadArrived_A).
  (* no_rw_check *) logic [127:0] mem_lo [0:ProgMax-1];
  (* no_rw_check *) logic [127:0] mem_hi [0:ProgMax-1];

  logic [10:0]  beats_q;      // beats that have arrived; bits 10..1: whole commands
  logic [9:0]   avail;
  logic         read;
  logic [9:0]   read_pc;
  logic [255:0] p_cmd_q;

  assign avail = beats_q[10:1];

  always_ff @(posedge clk_i) begin
    if (prog_valid_i && !beats_q[0]) mem_lo[beats_q[9:1]] <= prog_data_i;
    if (prog_valid_i &&  beats_q[0]) mem_hi[beats_q[9:1]] <= prog_data_i;
    if (read) p_cmd_q <= {mem_hi[read_pc[8:0]], mem_lo[read_pc[8:0]]};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)           beats_q <= '0;
    else if (load_i)       beats_q <= '0;
    else if (prog_valid_i) beats_q <= beats_q + 1'b1;
  end

  assign first_o  = (avail != '0);
  assign loaded_o = (avail == ncmds_i);

  // ---- Pipeline control --------------------------------------------------------------------------------------------------

  logic         run_d, run_q;
  logic         end_d, end_q;
  logic         p_vld_d, p_vld_q;
  logic         ir_vld_d, ir_vld_q;
  logic [9:0]   fpc_d, fpc_q;    // next command to read
  logic [9:0]   pc_d, pc_q;      // the command in IR, or the next to enter it
  kind_e        kind_d, kind_q;
  logic [3:0]   need_d, need_q;  // sums (or pairs of ADDI) still to do
  logic [3:0]   slot;            // one-hot: the lowest of them
  logic [255:0] ir_q;

  logic         fin;             // the command in IR has all its sums (ADDI: does its last)
  logic         illegal;
  logic         done;            // it leaves IR
  logic         bad;             // it is refused
  logic         off_end;
  logic         jump;            // ENDL goes back
  logic         p_move;
  logic [8:0]   body;            // top of the loop stack: first command of the body
  logic         q_ready;

  assign fin     = ir_vld_q && (need_q == '0 || (kind_q == KindAddi && need_q == slot)) && run_q && !stop_i;
  assign bad     = fin && illegal;
  assign q_ready = ((q_valid_o & ~q_ready_i) == '0);
  assign done    = fin && !illegal && q_ready;
  assign off_end = run_q && !stop_i && !ir_vld_q && !p_vld_q && (fpc_q == ncmds_i);

  assign p_move  = p_vld_q && (!ir_vld_q || done) && !jump;
  assign read_pc = jump ? {1'b0, body} : fpc_q;
  assign read    = run_q && (read_pc < avail) && (jump || !p_vld_q || p_move);

  always_comb begin
    run_d    = run_q;
    end_d    = end_q;
    pc_d     = pc_q;
    fpc_d    = read_pc + 10'(read);  // the body's first command if ENDL goes back, whether it is here or not
    p_vld_d  = read || (p_vld_q && !p_move && !jump);
    ir_vld_d = p_move || (ir_vld_q && !done);
    if (done) pc_d = jump ? {1'b0, body} : pc_q + 1'b1;
    if (done && kind_q == KindEnd) begin
      run_d = 1'b0;
      end_d = 1'b1;
    end
    if (bad || off_end || stop_i) run_d = 1'b0;
    if (!run_d) begin
      p_vld_d  = 1'b0;
      ir_vld_d = 1'b0;
    end
    if (start_i) begin
      run_d = 1'b1;
      end_d = 1'b0;
      pc_d  = '0;
      fpc_d = '0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      run_q    <= 1'b0;
      end_q    <= 1'b0;
      p_vld_q  <= 1'b0;
      ir_vld_q <= 1'b0;
      pc_q     <= '0;
      fpc_q    <= '0;
    end else begin
      run_q    <= run_d;
      end_q    <= end_d;
      p_vld_q  <= p_vld_d;
      ir_vld_q <= ir_vld_d;
      pc_q     <= pc_d;
      fpc_q    <= fpc_d;
    end
  end

  assign end_o = end_q;
  assign err_o = bad || off_end;
  assign idx_o = pc_q;
  assign done_o = done;

  // ---- Decoding, on the way from P to IR ---------------------------------------------------------------------------------

  // (Guards by p_vld_q and ir_vld_q here and below only keep a simulator from work whose result nobody uses.)
  always_comb begin
    kind_d = KindBad;
    if (p_vld_q) unique case (p_cmd_q[ct_pkg::AllOpLsb +: ct_pkg::AllOpW])
      ct_pkg::OpNop:  kind_d = KindNop;
      ct_pkg::OpEnd:  kind_d = KindEnd;
      ct_pkg::OpLoop: kind_d = KindLoop;
      ct_pkg::OpEndl: kind_d = KindEndl;
      ct_pkg::OpAddi: kind_d = KindAddi;
      ct_pkg::OpLd:   kind_d = KindLd;
      ct_pkg::OpSt:   kind_d = KindSt;
      ct_pkg::OpMm:   kind_d = KindMm;
      ct_pkg::OpVl:   kind_d = KindVl;
      ct_pkg::OpVa:   kind_d = KindVa;
      ct_pkg::OpVs:   kind_d = KindVs;
      default:        kind_d = KindBad;
    endcase
  end

  always_comb begin
    need_d = '0;
    if (p_vld_q) unique case (kind_d)
      KindLoop: need_d[0] = (p_cmd_q[ct_pkg::CtlCountRegLsb +: 5] != '0);
      KindAddi: need_d = {p_cmd_q[ct_pkg::AddiRd3Lsb +: 5] != '0, p_cmd_q[ct_pkg::AddiRd2Lsb +: 5] != '0,
                          p_cmd_q[ct_pkg::AddiRd1Lsb +: 5] != '0, p_cmd_q[ct_pkg::AddiRd0Lsb +: 5] != '0};
      KindLd, KindSt: need_d[2:0] = {p_cmd_q[ct_pkg::DmaN1RegLsb +: 5] != '0, p_cmd_q[ct_pkg::DmaSpmRegLsb +: 5] != '0,
                                     p_cmd_q[ct_pkg::DmaDramRegLsb +: 5] != '0};
      KindMm: need_d[2:0] = {p_cmd_q[ct_pkg::MmRowsRegLsb +: 5] != '0, p_cmd_q[ct_pkg::MmBRegLsb +: 5] != '0,
                             p_cmd_q[ct_pkg::MmARegLsb +: 5] != '0};
      KindVl: need_d[1:0] = {p_cmd_q[ct_pkg::VlRowsRegLsb +: 5] != '0, p_cmd_q[ct_pkg::VlSpmRegLsb +: 5] != '0};
      KindVa: need_d[2:0] = {p_cmd_q[ct_pkg::VaRowsRegLsb +: 5] != '0, p_cmd_q[ct_pkg::VaScRegLsb +: 5] != '0,
                             p_cmd_q[ct_pkg::VaSbRegLsb +: 5] != '0};
      KindVs: need_d[1:0] = {p_cmd_q[ct_pkg::VsRowsRegLsb +: 5] != '0, p_cmd_q[ct_pkg::VsSpmRegLsb +: 5] != '0};
      default: need_d = '0;
    endcase
  end

  // ---- One sum a cycle: field or immediate + register --------------------------------------------------------------------

  logic        summing;
  logic [4:0]  rs, rd;
  logic [31:0] addend, rs_val, sum;

  assign slot    = need_q & (~need_q + 4'd1);
  assign summing = ir_vld_q && (need_q != '0);

  // Where the addend stands: slot by slot in one of three words whatever the kind, but for the small fields. Bits above a field only
  // reach bits of the sum that are not written back, so the word comes as a whole.
  localparam int unsigned W1 = ct_pkg::AddiImm0Lsb;
  localparam int unsigned W2 = ct_pkg::AddiImm1Lsb;
  localparam int unsigned W3 = ct_pkg::AddiImm2Lsb;
  localparam int unsigned W4 = ct_pkg::AddiImm3Lsb;

  if (ct_pkg::CtlCountLsb != W1 || ct_pkg::DmaDramLsb != W1 || ct_pkg::MmALsb != W1 || ct_pkg::VlSpmLsb != W1 ||
      ct_pkg::VsSpmLsb != W1 || ct_pkg::DmaSpmLsb != W2 || ct_pkg::MmBLsb != W2 || ct_pkg::VaSbLsb != W2 || ct_pkg::VaScLsb != W3) begin : g_check_words
    ct_error_addends_do_not_stand_where_ct_fetch_looks u_error ();
  end

  always_comb begin
    unique case (kind_q)
      KindAddi: begin
        unique case (slot)
          4'b0001: {rd, rs} = {ir_q[ct_pkg::AddiRd0Lsb +: 5], ir_q[ct_pkg::AddiRs0Lsb +: 5]};
          4'b0010: {rd, rs} = {ir_q[ct_pkg::AddiRd1Lsb +: 5], ir_q[ct_pkg::AddiRs1Lsb +: 5]};
          4'b0100: {rd, rs} = {ir_q[ct_pkg::AddiRd2Lsb +: 5], ir_q[ct_pkg::AddiRs2Lsb +: 5]};
          default: {rd, rs} = {ir_q[ct_pkg::AddiRd3Lsb +: 5], ir_q[ct_pkg::AddiRs3Lsb +: 5]};
        endcase
      end
      KindLd, KindSt: {rd, rs} = {5'd0, slot[0] ? ir_q[ct_pkg::DmaDramRegLsb +: 5] :
                                        slot[1] ? ir_q[ct_pkg::DmaSpmRegLsb +: 5] : ir_q[ct_pkg::DmaN1RegLsb +: 5]};
      KindMm:         {rd, rs} = {5'd0, slot[0] ? ir_q[ct_pkg::MmARegLsb +: 5] :
                                        slot[1] ? ir_q[ct_pkg::MmBRegLsb +: 5] : ir_q[ct_pkg::MmRowsRegLsb +: 5]};
      KindVl:         {rd, rs} = {5'd0, slot[0] ? ir_q[ct_pkg::VlSpmRegLsb +: 5] : ir_q[ct_pkg::VlRowsRegLsb +: 5]};
      KindVa:         {rd, rs} = {5'd0, slot[0] ? ir_q[ct_pkg::VaSbRegLsb +: 5] :
                                        slot[1] ? ir_q[ct_pkg::VaScRegLsb +: 5] : ir_q[ct_pkg::VaRowsRegLsb +: 5]};
      KindVs:         {rd, rs} = {5'd0, slot[0] ? ir_q[ct_pkg::VsSpmRegLsb +: 5] : ir_q[ct_pkg::VsRowsRegLsb +: 5]};
      default:        {rd, rs} = {5'd0, ir_q[ct_pkg::CtlCountRegLsb +: 5]};
    endcase
  end

  always_comb begin
    addend = 'x;
    if (ir_vld_q) begin
      addend = slot[3] ? ir_q[W4 +: 32] :
               (slot[2] || (slot[1] && kind_q == KindVa)) ? ir_q[W3 +: 32] :
               (slot[1] || kind_q == KindVa) ? ir_q[W2 +: 32] : ir_q[W1 +: 32];
      unique case (kind_q)
        KindLd, KindSt: if (slot[2]) addend[ct_pkg::DmaN1W-1:0] = ir_q[ct_pkg::DmaN1Lsb +: ct_pkg::DmaN1W];
        KindMm:         if (slot[2]) addend[ct_pkg::MmRowsW-1:0] = ir_q[ct_pkg::MmRowsLsb +: ct_pkg::MmRowsW];
        KindVl:         if (slot[1]) addend[ct_pkg::VlRowsW-1:0] = ir_q[ct_pkg::VlRowsLsb +: ct_pkg::VlRowsW];
        KindVa:         if (slot[2]) addend[ct_pkg::VaRowsW-1:0] = ir_q[ct_pkg::VaRowsLsb +: ct_pkg::VaRowsW];
        KindVs:         if (slot[1]) addend[ct_pkg::VsRowsW-1:0] = ir_q[ct_pkg::VsRowsLsb +: ct_pkg::VsRowsW];
        default: ;
      endcase
    end
  end

  assign sum = addend + rs_val;

  always_ff @(posedge clk_i) begin
    if (p_move) begin
      ir_q   <= p_cmd_q;
      kind_q <= kind_d;
    end else if (summing) begin
      unique case (kind_q)
        KindLoop: ir_q[ct_pkg::CtlCountLsb +: 32] <= sum;
        KindLd, KindSt: begin
          if (slot[0]) ir_q[ct_pkg::DmaDramLsb +: 32] <= sum;
          if (slot[1]) ir_q[ct_pkg::DmaSpmLsb +: ct_pkg::DmaSpmW] <= sum[ct_pkg::DmaSpmW-1:0];
          if (slot[2]) ir_q[ct_pkg::DmaN1Lsb +: ct_pkg::DmaN1W] <= sum[ct_pkg::DmaN1W-1:0];
        end
        KindMm: begin
          if (slot[0]) ir_q[ct_pkg::MmALsb +: ct_pkg::MmAW] <= sum[ct_pkg::MmAW-1:0];
          if (slot[1]) ir_q[ct_pkg::MmBLsb +: ct_pkg::MmBW] <= sum[ct_pkg::MmBW-1:0];
          if (slot[2]) ir_q[ct_pkg::MmRowsLsb +: ct_pkg::MmRowsW] <= sum[ct_pkg::MmRowsW-1:0];
        end
        KindVl: begin
          if (slot[0]) ir_q[ct_pkg::VlSpmLsb +: ct_pkg::VlSpmW] <= sum[ct_pkg::VlSpmW-1:0];
          if (slot[1]) ir_q[ct_pkg::VlRowsLsb +: ct_pkg::VlRowsW] <= sum[ct_pkg::VlRowsW-1:0];
        end
        KindVa: begin
          if (slot[0]) ir_q[ct_pkg::VaSbLsb +: 32] <= sum;
          if (slot[1]) ir_q[ct_pkg::VaScLsb +: 32] <= sum;
          if (slot[2]) ir_q[ct_pkg::VaRowsLsb +: ct_pkg::VaRowsW] <= sum[ct_pkg::VaRowsW-1:0];
        end
        KindVs: begin
          if (slot[0]) ir_q[ct_pkg::VsSpmLsb +: ct_pkg::VsSpmW] <= sum[ct_pkg::VsSpmW-1:0];
          if (slot[1]) ir_q[ct_pkg::VsRowsLsb +: ct_pkg::VsRowsW] <= sum[ct_pkg::VsRowsW-1:0];
        end
        default: ;
      endcase
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)      need_q <= '0;
    else if (p_move)  need_q <= need_d;
    else if (summing) need_q <= need_q & ~slot;
  end

  // ---- Scalar registers: four banks by the low bits of the number, so that a beat of arguments is one write --------------------

  logic         rf_we;
  logic [127:0] rf_rdata;

  assign rf_we  = summing && (kind_q == KindAddi) && !stop_i;
  assign rs_val = (rs == '0) ? 32'd0 : rf_rdata[32*rs[1:0] +: 32];

  for (genvar b = 0; b < 4; b++) begin : g_bank
    // Word w of an argument beat is register 4*g + w + 1: bank b takes word b - 1, and bank 0 word 3 in the next line.
    localparam int unsigned Word = (b + 3) % 4;
    logic [31:0] rf [0:7];
    logic [2:0]  waddr;
    assign waddr = !arg_we_i ? rd[4:2] : (b == 0) ? arg_group_i + 3'd1 : arg_group_i;
    assign rf_rdata[32*b +: 32] = rf[rs[4:2]];
    always_ff @(posedge clk_i) begin
      if (arg_we_i || (rf_we && rd[1:0] == 2'(b))) rf[waddr] <= arg_we_i ? arg_data_i[32*Word +: 32] : sum;
    end
  end

  // ---- Loops: the innermost on top; a push and a pop shift the stack ---------------------------------------------------------

  localparam int unsigned Loops = ct_pkg::NumLoops;

  logic [9*Loops-1:0]  body_q;
  logic [32*Loops-1:0] left_q;   // passes left, this one included
  logic [2:0]          depth_q;
  logic                push, pop;

  assign body = body_q[8:0];
  assign push = done && (kind_q == KindLoop);
  assign jump = fin && !illegal && (kind_q == KindEndl) && (left_q[31:0] != 32'd1);
  assign pop  = done && (kind_q == KindEndl) && !jump;

  always_ff @(posedge clk_i) begin
    if (push) begin
      body_q <= {body_q[9*(Loops-1)-1:0], pc_d[8:0]};
      left_q <= {left_q[32*(Loops-1)-1:0], ir_q[ct_pkg::CtlCountLsb +: 32]};
    end
    if (pop) begin
      body_q <= {9'd0, body_q[9*Loops-1:9]};
      left_q <= {32'd0, left_q[32*Loops-1:32]};
    end
    if (jump) left_q[31:0] <= left_q[31:0] - 32'd1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)      depth_q <= '0;
    else if (start_i) depth_q <= '0;
    else if (push)    depth_q <= depth_q + 3'd1;
    else if (pop)     depth_q <= depth_q - 3'd1;
  end

  // ---- Legality -----------------------------------------------------------------------------------------------------------

  logic [2:0] wait_en;
  logic       sem_used, wait_twice;
  logic [4:0] rows16;         // VL, VA, VS
  logic       rows16_bad;
  logic       mm_bad;
  logic [7:0] mm_rows;
  logic [3:0] mm_nt;
  logic [2:0] mm_nt_1;
  logic [3:0] mm_accn;
  logic [3:0] mm_mt;          // ceil(Rows / 16): 1..8 for legal Rows
  logic       mm_area_bad;
  logic [7:0] mm_top;         // highest ACC tile, at most 15 + 7 * 15 + 7
  logic [8:0] nb;
  logic       dma_bad;
  logic       va_crosses;     // elements of Tq are read where other elements are written
  logic [3:0] va_ahead;       // Tq comes that many tiles after Td
  logic       va_bad;

  always_comb begin
    wait_en     = '0;
    sem_used    = 1'b0;
    wait_twice  = 1'b0;
    rows16      = '0;
    rows16_bad  = 1'b0;
    mm_rows     = '0;
    mm_nt       = '0;
    mm_nt_1     = '0;
    mm_accn     = '0;
    mm_mt       = '0;
    mm_area_bad = 1'b0;
    mm_top      = '0;
    mm_bad      = 1'b0;
    nb          = '0;
    dma_bad     = 1'b0;
    va_crosses  = 1'b0;
    va_ahead    = '0;
    va_bad      = 1'b0;
    illegal     = 1'b0;
    if (ir_vld_q) begin
      wait_en    = {ir_q[ct_pkg::AllWait2Lsb+4], ir_q[ct_pkg::AllWait1Lsb+4], ir_q[ct_pkg::AllWait0Lsb+4]};
      sem_used   = (wait_en != '0) || ir_q[ct_pkg::AllSig0Lsb+4] || ir_q[ct_pkg::AllSig1Lsb+4];
      wait_twice = (wait_en[0] && wait_en[1] && ir_q[ct_pkg::AllWait0Lsb +: 4] == ir_q[ct_pkg::AllWait1Lsb +: 4]) ||
                   (wait_en[0] && wait_en[2] && ir_q[ct_pkg::AllWait0Lsb +: 4] == ir_q[ct_pkg::AllWait2Lsb +: 4]) ||
                   (wait_en[1] && wait_en[2] && ir_q[ct_pkg::AllWait1Lsb +: 4] == ir_q[ct_pkg::AllWait2Lsb +: 4]);

      unique case (kind_q)
        KindVl:  rows16 = ir_q[ct_pkg::VlRowsLsb +: 5];
        KindVs:  rows16 = ir_q[ct_pkg::VsRowsLsb +: 5];
        default: rows16 = ir_q[ct_pkg::VaRowsLsb +: 5];
      endcase
      rows16_bad = (rows16 == 5'd0) || (rows16 > 5'd16);

      nb      = ir_q[ct_pkg::DmaNbLsb +: ct_pkg::DmaNbW];
      dma_bad = (nb == '0) || (nb > (ir_q[ct_pkg::DmaHdrLsb] ? 9'd16 : 9'd256)) ||
                (ir_q[ct_pkg::DmaN1Lsb +: ct_pkg::DmaN1W] == '0) ||
                (ir_q[ct_pkg::DmaGatherLsb] ? rows_i == '0 : ir_q[ct_pkg::DmaN2Lsb +: ct_pkg::DmaN2W] == '0);

      mm_rows = ir_q[ct_pkg::MmRowsLsb +: ct_pkg::MmRowsW];
      mm_nt   = ir_q[ct_pkg::MmNtLsb +: ct_pkg::MmNtW];
      mm_nt_1 = mm_nt[2:0] - 3'd1;
      mm_accn = ir_q[ct_pkg::MmAccNLsb +: 4];
      mm_mt   = mm_rows[7:4] + {3'd0, mm_rows[3:0] != 4'd0};
      // The product by hand: three terms in logic are cheaper than a DSP. (Nt > 8 is refused anyway.)
      mm_top  = 8'(ir_q[ct_pkg::MmAccLsb +: 4]) + (mm_nt_1[0] ? {4'd0, mm_accn} : 8'd0) +
                (mm_nt_1[1] ? {3'd0, mm_accn, 1'b0} : 8'd0) + (mm_nt_1[2] ? {2'd0, mm_accn, 2'b00} : 8'd0) + 8'(mm_mt) - 8'd1;
      unique case (mm_nt)
        4'd1:                   mm_area_bad = (mm_mt > 4'd8);
        4'd2:                   mm_area_bad = (mm_mt > 4'd4);
        4'd3, 4'd4:             mm_area_bad = (mm_mt > 4'd2);
        4'd5, 4'd6, 4'd7, 4'd8: mm_area_bad = (mm_mt > 4'd1);
        default:                mm_area_bad = 1'b1;
      endcase
      mm_bad = (mm_rows == 8'd0) || (mm_rows > 8'd128) || mm_area_bad || (mm_top > 8'd15) ||
               (ir_q[ct_pkg::MmKtLsb +: ct_pkg::MmKtW] == '0);

      va_crosses = (ir_q[ct_pkg::VaRowXorLsb +: 4] != '0) || (ir_q[ct_pkg::VaLaneXorLsb +: 4] != '0) ||
                   (ir_q[ct_pkg::VaBSrcLsb +: 2] == 2'd2) || (ir_q[ct_pkg::VaCSrcLsb +: 2] == 2'd2);
      va_ahead   = ir_q[ct_pkg::VaTqLsb +: 4] - ir_q[ct_pkg::VaTdLsb +: 4];
      va_bad = (ir_q[ct_pkg::VaASrcLsb +: 2] == 2'd3) || ir_q[ct_pkg::VaFnLsb+2] ||
               (ir_q[ct_pkg::VaFuncLsb +: 4] != 4'd0 && ir_q[ct_pkg::VaFuncLsb+2 +: 2] != 2'b10) ||
               (ir_q[ct_pkg::VaColsLsb +: 5] == 5'd0) || (ir_q[ct_pkg::VaColsLsb +: 5] > 5'd16) ||
               ((ir_q[ct_pkg::VaBSrcLsb] != ir_q[ct_pkg::VaBSrcLsb+1]) &&
                (ir_q[ct_pkg::VaCSrcLsb] != ir_q[ct_pkg::VaCSrcLsb+1])) ||
               (va_crosses && (va_ahead <= {1'b0, ir_q[ct_pkg::VaMoreLsb +: 3]}));

      unique case (kind_q)
        KindNop, KindEnd, KindAddi: illegal = sem_used;
        KindLoop: illegal = sem_used || (ir_q[ct_pkg::CtlCountLsb +: 32] == '0) || (depth_q == 3'(Loops));
        KindEndl: illegal = sem_used || (depth_q == '0);
        KindLd, KindSt: illegal = wait_twice || dma_bad;
        KindMm:   illegal = wait_twice || mm_bad;
        KindVl:   illegal = wait_twice || rows16_bad || (ir_q[ct_pkg::VlModeLsb +: 3] > 3'd2);
        KindVa:   illegal = wait_twice || rows16_bad || va_bad;
        KindVs:   illegal = wait_twice || rows16_bad || (ir_q[ct_pkg::VsModeLsb +: 3] > 3'd2) ||
                            (ir_q[ct_pkg::VsRoundLsb +: 2] != 2'd0);
        default:  illegal = 1'b1;
      endcase
    end
  end

  // ---- Dispatch -----------------------------------------------------------------------------------------------------------

  always_comb begin
    q_valid_o = '0;
    if (fin && !illegal) begin
      unique case (kind_q)
        KindLd:  q_valid_o[0] = 1'b1;
        KindSt:  q_valid_o[1] = 1'b1;
        KindMm:  q_valid_o[2] = 1'b1;
        KindVl:  q_valid_o[3] = 1'b1;
        KindVa:  q_valid_o[4] = 1'b1;
        KindVs:  q_valid_o[5] = 1'b1;
        default: q_valid_o = '0;
      endcase
    end
  end
  always_comb begin
    q_cmd_o = ir_q;
    if ((q_valid_o[0] || q_valid_o[1]) && ir_q[ct_pkg::DmaGatherLsb]) q_cmd_o[ct_pkg::DmaN2Lsb +: ct_pkg::DmaN2W] = ct_pkg::DmaN2W'(rows_i);
  end

  // ---- Invariants -----------------------------------------------------------------------------------------------------------

  // 1. Only commands that have arrived whole are read.
  `CT_ASSERT(ReadArrived_A, !read || read_pc < avail)
  // 2. The commands between the one to execute and the one to read are in IR and P.
  `CT_ASSERT(PcOrder_A, !run_q || fpc_q == pc_q + 10'(ir_vld_q) + 10'(p_vld_q))
  // 3. One queue at a time.
  `CT_ASSERT(OneQueue_A, $onehot0(q_valid_o))
  // 4. The stack holds 0..4 loops, and a loop on it has at least one pass left.
  `CT_ASSERT(Depth_A, depth_q <= 3'(Loops))
  `CT_ASSERT(PassesLeft_A, depth_q == '0 || left_q[31:0] != '0)
  // 5. Nothing runs without a program, and the program fits.
  `CT_ASSERT(BeatsFit_A, !run_q || beats_q <= {ncmds_i, 1'b0})
  `CT_ASSUME(ArgsBeforeRun_M, !(arg_we_i && run_q))
  // A program starts when none runs, or again when it is read again before its first command has come; of it no more comes than there is.
  `CT_ASSUME(StartWhenStill_M, !start_i || (run_q ? load_i && !ir_vld_q && !p_vld_q && avail == '0 : load_i || beats_q <= {ncmds_i, 1'b0}))
  `CT_ASSUME(BeatsInNumber_M, !prog_valid_i || load_i || !(run_q || start_i) || beats_q < {ncmds_i, 1'b0})

  `CT_COVER(LoopBack_C, jump)
  `CT_COVER(QueueFull_C, fin && !illegal && !q_ready)
  `CT_COVER(WaitsForProgram_C, run_q && !ir_vld_q && !p_vld_q && fpc_q >= avail && avail != '0 && fpc_q != ncmds_i)

`ifdef FORMAL
  `include "ct_fetch_formal.svh"
`endif

endmodule

`default_nettype wire
