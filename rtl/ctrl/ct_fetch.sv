// SPDX-License-Identifier: Apache-2.0
//
// Program buffer and sequencer of one context: executes CTL and ADDI, adds registers to fields, refuses illegal commands,
// dispatches the others to the queues of the six units.
//
// Program     arrives as 2 * ncmds_i beats of 128 bits, low half of each command first, while it already executes; it is kept in
//             block RAM (512 commands), so loops replay without memory traffic.
//             What a command is and which registers it adds is decoded as it arrives (ct_fetch_decode), and kept in bits that the RAM has to spare.
// Pipeline    read (P: the output register of the RAM) -> execute (IR) -> dispatch (O). A command stays in IR for one cycle for each register it
//             adds (a field whose register is r0 costs none; at most four, that of MM), and one more in which it is checked (ct_legal).
//             ADDI takes a cycle for each pair (a pair with Rd = 0 costs none), at least one. So a command takes 1 to 5
//             cycles; an ENDL that goes back costs one more (the refill of P). O holds the command and the verdict: a cycle later it goes to its queue,
//             or is refused. Loops turn as a command leaves IR, before the verdict: what a refused one has done to them nobody sees.
// Job         load_i (one cycle) forgets the program; the beats that follow are another. start_i (one cycle, with load_i or later)
//             begins to execute it; ncmds_i (1..512) is stable from then to END. If its beats come again (load_i while it runs), execution
//             goes on when those of the next command are there.
//             stop_i (level) ends execution at once. end_o stays high from END to the next start.
// Arguments   arg_we_i writes four registers: group g, word w goes to r[4*g + w + 1]; group 7's last word would be r0, which
//             becomes 0 there. Only while no program runs, and before the first program all of them.
// Queues      q_valid_o is one-hot at most, q_cmd_o is the resolved command; a full queue blocks all commands behind it (order).
// Errors      err_o (one cycle, the next one): illegal command, with its index in idx_o; execution ends there. idx_o is at all times the index
//             of the next command (the watchdog reports it).
//
// Batches     rows_i is the number of requests of the batch that the program runs for, 0 in a job of the ring; stable while it runs. An LD or ST
//             with Gather gets it as its N2.
//
// What is illegal: ct_legal.
//
// Parameters
//   Conv      1: there are walks (WPIX, WTAP, MM with Walk)
//   Compress  1: there are compressed LD and ST

`default_nettype none
`include "ct_assert.svh"

module ct_fetch #(
  parameter int unsigned Conv     = 0,
  parameter int unsigned Compress = 0
) (
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

  `include "ct_fetch_kinds.svh"

  // ---- Program buffer ----------------------------------------------------------------------------------------------------

  // Never read where they are written (ReadArrived_A).
  (* no_rw_check *) logic [127:0] mem_lo [0:ProgMax-1];
  (* no_rw_check *) logic [135:0] mem_hi [0:ProgMax-1];  // with what has been decoded

  logic [10:0]  beats_q;      // beats that have arrived; bits 10..1: whole commands
  logic [9:0]   avail;
  logic         read;
  logic [9:0]   read_pc;
  logic [255:0] p_cmd_q;
  kind_e        p_kind_q;
  logic [3:0]   p_need_q;     // its sums, or pairs of ADDI
  logic [3:0]   w_kind, w_need; // what has been decoded of the command whose high half comes

  assign avail = beats_q[10:1];

  always_ff @(posedge clk_i) begin
    if (prog_valid_i && !beats_q[0]) mem_lo[beats_q[9:1]] <= prog_data_i;
    if (prog_valid_i &&  beats_q[0]) mem_hi[beats_q[9:1]] <= {w_need, w_kind, prog_data_i};
    if (read) {p_need_q, p_kind_q, p_cmd_q} <= {mem_hi[read_pc[8:0]], mem_lo[read_pc[8:0]]};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)           beats_q <= '0;
    else if (load_i)       beats_q <= '0;
    else if (prog_valid_i) beats_q <= beats_q + 1'b1;
  end

  assign first_o  = (avail != '0);
  assign loaded_o = (avail == ncmds_i);

  // ---- Decoding, beat by beat --------------------------------------------------------------------------------------------

  ct_fetch_decode #(.Conv(Conv)) u_decode (
    .clk_i,
    .valid_i (prog_valid_i),
    .high_i  (beats_q[0]),
    .data_i  (prog_data_i),
    .kind_o  (w_kind),
    .need_o  (w_need)
  );

  // ---- Pipeline control --------------------------------------------------------------------------------------------------

  logic         run_d, run_q;
  logic         end_d, end_q;
  logic         p_vld_d, p_vld_q;
  logic         ir_vld_d, ir_vld_q;
  logic [9:0]   fpc_d, fpc_q;    // next command to read
  logic [9:0]   pc_d, pc_q;      // the command in IR, or the next to enter it
  logic         o_vld_d, o_vld_q;
  logic [9:0]   o_pc_q;          // the command in O
  logic [255:0] o_cmd_q;
  logic [5:0]   o_unit_q;        // one-hot: its unit, none: not for a unit
  logic         o_end_q;         // it is END
  logic         o_bad_q;         // it is illegal
  kind_e        kind_q;
  logic [3:0]   need_q;          // sums (or pairs of ADDI) still to do
  logic [3:0]   need_d;
  logic [3:0]   slot_q;          // one-hot: the lowest of them
  logic [255:0] ir_q;

  logic         fin;             // the command in IR has all its sums (ADDI: does its last)
  logic         illegal;         // it is not to be executed
  logic         take;            // it leaves IR
  logic         out;             // the command in O is done
  logic         bad;             // it is refused
  logic         off_end;         // there is none: the program has no END
  logic         wrong, wrong_q;  // one of the two
  logic         jump;            // ENDL goes back
  logic         p_move;
  logic         turns;           // it would go back
  logic         here, body_here; // the next command, the body's first one can be read
  logic         fill, follow;    // one is read if the command in IR stays, if it leaves
  logic [9:0]   fpc_up, body_up, fpc_stay, fpc_take;
  logic [8:0]   body_q;          // top of the loop stack: first command of the body

  assign fin     = ir_vld_q && (need_q == '0 || (kind_q == KindAddi && need_q == slot_q));
  assign take    = fin && (!o_vld_q || (out && !o_end_q));
  assign out     = o_vld_q && !o_bad_q && ((o_unit_q & ~q_ready_i) == '0) && !stop_i;
  assign bad     = o_vld_q && o_bad_q && !stop_i;
  assign off_end = run_q && !stop_i && !o_vld_q && !ir_vld_q && !p_vld_q && (fpc_q == ncmds_i);

  assign wrong   = bad || off_end;

  assign read_pc = jump ? {1'b0, body_q} : fpc_q;
  // Take is known late: both possibilities are looked at beside it. If the command in IR stays, P fills what is empty. If it leaves, what was in P
  // follows it, and the next is read; or, if it goes back, the body's first, whether it is here or not: what was in P is not the next.
  assign here      = run_q && (fpc_q < avail);
  assign body_here = run_q && ({1'b0, body_q} < avail);
  assign fill      = here && !(p_vld_q && ir_vld_q);
  assign follow    = turns ? body_here : here;
  assign read      = take ? follow : fill;
  assign p_move    = take ? p_vld_q && !turns : p_vld_q && !ir_vld_q;
  assign fpc_up    = fpc_q + 10'd1;
  assign body_up   = {1'b0, body_q} + 10'd1;
  assign fpc_take  = turns ? (body_here ? body_up : {1'b0, body_q}) : (here ? fpc_up : fpc_q);
  assign fpc_stay  = fill ? fpc_up : fpc_q;

  always_comb begin
    run_d    = run_q;
    end_d    = end_q;
    pc_d     = pc_q;
    fpc_d    = take ? fpc_take : fpc_stay;
    p_vld_d  = take ? follow : fill || (p_vld_q && ir_vld_q);
    ir_vld_d = p_move || (ir_vld_q && !take);
    o_vld_d  = take || (o_vld_q && !out);
    if (take) pc_d = jump ? {1'b0, body_q} : pc_q + 1'b1;
    if (out && o_end_q) begin
      run_d = 1'b0;
      end_d = 1'b1;
    end
    if (bad) pc_d = o_pc_q;
    if (bad || off_end || stop_i) run_d = 1'b0;
    if (!run_d) begin
      p_vld_d  = 1'b0;
      ir_vld_d = 1'b0;
      o_vld_d  = 1'b0;
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
      wrong_q  <= 1'b0;
      p_vld_q  <= 1'b0;
      ir_vld_q <= 1'b0;
      o_vld_q  <= 1'b0;
      pc_q     <= '0;
      fpc_q    <= '0;
    end else begin
      run_q    <= run_d;
      end_q    <= end_d;
      wrong_q  <= wrong;
      p_vld_q  <= p_vld_d;
      ir_vld_q <= ir_vld_d;
      o_vld_q  <= o_vld_d;
      pc_q     <= pc_d;
      fpc_q    <= fpc_d;
    end
  end

  assign end_o  = end_q;
  assign err_o  = wrong_q;
  assign idx_o  = o_vld_q ? o_pc_q : pc_q;
  assign done_o = out;

  // ---- One sum a cycle: field or immediate + register --------------------------------------------------------------------

  logic        summing;
  logic [4:0]  rs, rd;
  logic [31:0] addend, rs_val, sum;

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
        unique case (slot_q)
          4'b0001: {rd, rs} = {ir_q[ct_pkg::AddiRd0Lsb +: 5], ir_q[ct_pkg::AddiRs0Lsb +: 5]};
          4'b0010: {rd, rs} = {ir_q[ct_pkg::AddiRd1Lsb +: 5], ir_q[ct_pkg::AddiRs1Lsb +: 5]};
          4'b0100: {rd, rs} = {ir_q[ct_pkg::AddiRd2Lsb +: 5], ir_q[ct_pkg::AddiRs2Lsb +: 5]};
          default: {rd, rs} = {ir_q[ct_pkg::AddiRd3Lsb +: 5], ir_q[ct_pkg::AddiRs3Lsb +: 5]};
        endcase
      end
      KindLd, KindSt: {rd, rs} = {5'd0, slot_q[0] ? ir_q[ct_pkg::DmaDramRegLsb +: 5] :
                                        slot_q[1] ? ir_q[ct_pkg::DmaSpmRegLsb +: 5] : ir_q[ct_pkg::DmaN1RegLsb +: 5]};
      KindMm:         {rd, rs} = {5'd0, slot_q[0] ? ir_q[ct_pkg::MmARegLsb +: 5] :
                                        slot_q[1] ? ir_q[ct_pkg::MmBRegLsb +: 5] :
                                        slot_q[2] ? ir_q[ct_pkg::MmRowsRegLsb +: 5] : ir_q[ct_pkg::MmPosRegLsb +: 5]};
      KindVl:         {rd, rs} = {5'd0, slot_q[0] ? ir_q[ct_pkg::VlSpmRegLsb +: 5] : ir_q[ct_pkg::VlRowsRegLsb +: 5]};
      KindVa:         {rd, rs} = {5'd0, slot_q[0] ? ir_q[ct_pkg::VaSbRegLsb +: 5] :
                                        slot_q[1] ? ir_q[ct_pkg::VaScRegLsb +: 5] : ir_q[ct_pkg::VaRowsRegLsb +: 5]};
      KindVs:         {rd, rs} = {5'd0, slot_q[0] ? ir_q[ct_pkg::VsSpmRegLsb +: 5] : ir_q[ct_pkg::VsRowsRegLsb +: 5]};
      default:        {rd, rs} = {5'd0, ir_q[ct_pkg::CtlCountRegLsb +: 5]};
    endcase
  end

  always_comb begin
    addend = 'x;
    if (ir_vld_q) begin
      addend = slot_q[3] ? ir_q[W4 +: 32] :
               (slot_q[2] || (slot_q[1] && kind_q == KindVa)) ? ir_q[W3 +: 32] :
               (slot_q[1] || kind_q == KindVa) ? ir_q[W2 +: 32] : ir_q[W1 +: 32];
      unique case (kind_q)
        KindLd, KindSt: if (slot_q[2]) addend[ct_pkg::DmaN1W-1:0] = ir_q[ct_pkg::DmaN1Lsb +: ct_pkg::DmaN1W];
        KindMm: begin
          if (slot_q[2]) addend[ct_pkg::MmRowsW-1:0] = ir_q[ct_pkg::MmRowsLsb +: ct_pkg::MmRowsW];
          if (Conv != 0 && slot_q[3]) addend[ct_pkg::MmPosW-1:0] = ir_q[ct_pkg::MmPosLsb +: ct_pkg::MmPosW];
        end
        KindVl:         if (slot_q[1]) addend[ct_pkg::VlRowsW-1:0] = ir_q[ct_pkg::VlRowsLsb +: ct_pkg::VlRowsW];
        KindVa:         if (slot_q[2]) addend[ct_pkg::VaRowsW-1:0] = ir_q[ct_pkg::VaRowsLsb +: ct_pkg::VaRowsW];
        KindVs:         if (slot_q[1]) addend[ct_pkg::VsRowsW-1:0] = ir_q[ct_pkg::VsRowsLsb +: ct_pkg::VsRowsW];
        default: ;
      endcase
    end
  end

  assign sum = addend + rs_val;

  always_ff @(posedge clk_i) begin
    if (p_move) begin
      ir_q   <= p_cmd_q;
      kind_q <= p_kind_q;
    end else if (summing) begin
      unique case (kind_q)
        KindLoop: ir_q[ct_pkg::CtlCountLsb +: 32] <= sum;
        KindLd, KindSt: begin
          if (slot_q[0]) ir_q[ct_pkg::DmaDramLsb +: 32] <= sum;
          if (slot_q[1]) ir_q[ct_pkg::DmaSpmLsb +: ct_pkg::DmaSpmW] <= sum[ct_pkg::DmaSpmW-1:0];
          if (slot_q[2]) ir_q[ct_pkg::DmaN1Lsb +: ct_pkg::DmaN1W] <= sum[ct_pkg::DmaN1W-1:0];
        end
        KindMm: begin
          if (slot_q[0]) ir_q[ct_pkg::MmALsb +: ct_pkg::MmAW] <= sum[ct_pkg::MmAW-1:0];
          if (slot_q[1]) ir_q[ct_pkg::MmBLsb +: ct_pkg::MmBW] <= sum[ct_pkg::MmBW-1:0];
          if (slot_q[2]) ir_q[ct_pkg::MmRowsLsb +: ct_pkg::MmRowsW] <= sum[ct_pkg::MmRowsW-1:0];
          if (Conv != 0 && slot_q[3]) ir_q[ct_pkg::MmPosLsb +: ct_pkg::MmPosW] <= sum[ct_pkg::MmPosW-1:0];
        end
        KindVl: begin
          if (slot_q[0]) ir_q[ct_pkg::VlSpmLsb +: ct_pkg::VlSpmW] <= sum[ct_pkg::VlSpmW-1:0];
          if (slot_q[1]) ir_q[ct_pkg::VlRowsLsb +: ct_pkg::VlRowsW] <= sum[ct_pkg::VlRowsW-1:0];
        end
        KindVa: begin
          if (slot_q[0]) ir_q[ct_pkg::VaSbLsb +: 32] <= sum;
          if (slot_q[1]) ir_q[ct_pkg::VaScLsb +: 32] <= sum;
          if (slot_q[2]) ir_q[ct_pkg::VaRowsLsb +: ct_pkg::VaRowsW] <= sum[ct_pkg::VaRowsW-1:0];
        end
        KindVs: begin
          if (slot_q[0]) ir_q[ct_pkg::VsSpmLsb +: ct_pkg::VsSpmW] <= sum[ct_pkg::VsSpmW-1:0];
          if (slot_q[1]) ir_q[ct_pkg::VsRowsLsb +: ct_pkg::VsRowsW] <= sum[ct_pkg::VsRowsW-1:0];
        end
        default: ;
      endcase
    end
  end

  always_comb begin
    need_d = need_q;
    if (p_move)       need_d = p_need_q;
    else if (summing) need_d = need_q & ~slot_q;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      need_q <= '0;
      slot_q <= '0;
    end else begin
      need_q <= need_d;
      slot_q <= need_d & (~need_d + 4'd1);
    end
  end

  // ---- Scalar registers: four banks by the low bits of the number, so that a beat of arguments is one write. r0 is one of them, and 0 ----

  logic         rf_we;
  logic [127:0] rf_rdata;

  assign rf_we  = summing && (kind_q == KindAddi);
  assign rs_val = rf_rdata[32*rs[1:0] +: 32];

  for (genvar b = 0; b < 4; b++) begin : g_bank
    // Word w of an argument beat is register 4*g + w + 1: bank b takes word b - 1, and bank 0 word 3 in the next line.
    localparam int unsigned Word = (b + 3) % 4;
    logic [31:0] rf [0:7];
    logic [2:0]  waddr;
    logic [31:0] arg;
    assign arg   = (b == 0 && arg_group_i == 3'd7) ? 32'd0 : arg_data_i[32*Word +: 32];
    assign waddr = !arg_we_i ? rd[4:2] : (b == 0) ? arg_group_i + 3'd1 : arg_group_i;
    assign rf_rdata[32*b +: 32] = rf[rs[4:2]];
    always_ff @(posedge clk_i) begin
      if (arg_we_i || (rf_we && rd[1:0] == 2'(b))) rf[waddr] <= arg_we_i ? arg : sum;
    end
  end

  // ---- Loops: the innermost in registers, the others in a stack ----------------------------------------------------------------

  localparam int unsigned Loops = ct_pkg::NumLoops;

  if (Loops != 4) begin : g_check_loops
    ct_error_the_stack_of_ct_fetch_has_four_places u_error ();
  end

  logic [41:0] stack [0:3];      // of a loop {last, body, left}
  logic [31:0] count;
  logic [31:0] left_q;           // passes left, this one included
  logic        last_q;           // it is the last one
  logic [2:0]  depth_q;
  logic [1:0]  under, below;     // where the loop around the innermost is to be written, and lies
  logic        push, pop;

  assign count = ir_q[ct_pkg::CtlCountLsb +: 32];
  assign under = depth_q[1:0] - 2'd1;
  assign below = depth_q[1:0] - 2'd2;
  assign push  = take && (kind_q == KindLoop) && (depth_q != 3'(Loops));
  assign turns = (kind_q == KindEndl) && (depth_q != '0) && !last_q;
  assign jump  = take && turns;
  assign pop   = take && (kind_q == KindEndl) && (depth_q != '0) && last_q;

  always_ff @(posedge clk_i) begin
    if (push) begin
      stack[under] <= {last_q, body_q, left_q};
      body_q       <= 9'(pc_q + 10'd1);
      left_q       <= count;
      last_q       <= (count == 32'd1);
    end
    if (pop) {last_q, body_q, left_q} <= stack[below];
    if (jump) begin
      left_q <= left_q - 32'd1;
      last_q <= (left_q == 32'd2);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)      depth_q <= '0;
    else if (start_i) depth_q <= '0;
    else if (push)    depth_q <= depth_q + 3'd1;
    else if (pop)     depth_q <= depth_q - 3'd1;
  end

  // ---- Verdict and dispatch ---------------------------------------------------------------------------------------------------

  logic [1:0] walks_q;  // WTAP, WPIX have gone out

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                                    walks_q <= '0;
    else if (start_i)                               walks_q <= '0;
    else if (Conv != 0 && take && kind_q == KindWalk) walks_q <= walks_q | ir_q[1:0];
  end

  if (Conv != 0 && (ct_pkg::OpWpix[1:0] != 2'b01 || ct_pkg::OpWtap[1:0] != 2'b10 || ct_pkg::OpMm[1:0] != 2'b00)) begin : g_check_walks
    ct_error_codes_of_walks_are_not_told_by_their_low_bits u_error ();
  end

  ct_legal #(.Conv(Conv), .Compress(Compress)) u_legal (
    .vld_i     (ir_vld_q),
    .cmd_i     (ir_q),
    .rows_i,
    .walks_i   (walks_q),
    .inner_i   (depth_q != 3'd0),
    .deepest_i (depth_q == 3'(Loops)),
    .illegal_o (illegal)
  );

  always_ff @(posedge clk_i) begin
    if (take) begin
      o_cmd_q <= ir_q;
      if ((kind_q == KindLd || kind_q == KindSt) && ir_q[ct_pkg::DmaGatherLsb]) o_cmd_q[ct_pkg::DmaN2Lsb +: ct_pkg::DmaN2W] <= ct_pkg::DmaN2W'(rows_i);
      o_unit_q <= {kind_q == KindVs, kind_q == KindVa, kind_q == KindVl, kind_q == KindMm || kind_q == KindWalk, kind_q == KindSt, kind_q == KindLd};
      o_end_q  <= (kind_q == KindEnd);
      o_bad_q  <= illegal;
      o_pc_q   <= pc_q;
    end
  end

  assign q_valid_o = (o_vld_q && !o_bad_q && !stop_i) ? o_unit_q : '0;
  assign q_cmd_o   = o_cmd_q;

  // ---- Invariants -----------------------------------------------------------------------------------------------------------

  // 1. Only commands that have arrived whole are read.
  `CT_ASSERT(ReadArrived_A, !read || read_pc < avail)
  // 2. The commands between the one to execute and the one to read are in IR and P. (O's has been executed, but for the verdict.)
  `CT_ASSERT(PcOrder_A, !run_q || fpc_q == pc_q + 10'(ir_vld_q) + 10'(p_vld_q))
  `CT_ASSERT(SlotIsLowest_A, slot_q == (need_q & (~need_q + 4'd1)))
  // 3. One queue at a time.
  `CT_ASSERT(OneQueue_A, $onehot0(q_valid_o))
  // 4. The stack holds 0..4 loops, and a loop on it has at least one pass left.
  `CT_ASSERT(Depth_A, depth_q <= 3'(Loops))
  `CT_ASSERT(PassesLeft_A, depth_q == '0 || left_q != '0 || bad || stop_i || !run_q)
  // 5. Nothing runs without a program, and the program fits.
  `CT_ASSERT(BeatsFit_A, !run_q || beats_q <= {ncmds_i, 1'b0})
  `CT_ASSUME(ArgsBeforeRun_M, !(arg_we_i && run_q))
  // A program starts when none runs, or again when it is read again before its first command has come; of it no more comes than there is.
  `CT_ASSUME(StartWhenStill_M, !start_i || (run_q ? load_i && !o_vld_q && !ir_vld_q && !p_vld_q && avail == '0 : load_i || beats_q <= {ncmds_i, 1'b0}))
  `CT_ASSUME(BeatsInNumber_M, !prog_valid_i || load_i || !(run_q || start_i) || beats_q < {ncmds_i, 1'b0})

  `CT_COVER(LoopBack_C, jump)
  `CT_COVER(QueueFull_C, o_vld_q && !o_bad_q && !out)
  `CT_COVER(WaitsForProgram_C, run_q && !ir_vld_q && !p_vld_q && fpc_q >= avail && avail != '0 && fpc_q != ncmds_i)

`ifdef FORMAL
  `include "ct_fetch_formal.svh"
`endif

endmodule

`default_nettype wire
