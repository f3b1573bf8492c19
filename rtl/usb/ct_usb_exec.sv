// SPDX-License-Identifier: Apache-2.0
//
// Does what the frames of docs/usb.md ask for, one frame after the other, each once, and makes the answers.
//
// Order       an operation begins when the one before it is over, the bus's answer included.
// Repetition  the last answer stays in its buffer; a REQUEST with its tag gets it again and does nothing.
// Bound       each access to a bus is given 2^TimeoutLog2 - 1 cycles. One that takes longer has failed (REG or MEM), and so has at once
//             every later access to that bus until its answer came after all. So a frame is answered in bounded time, whatever a bus does.
// Bytes       operations, data and addresses may begin at any byte. All bytes go two at a time through one mover, which shifts by one
//             where source and destination differ in their lowest bit.
// Halves      a memory access is done in bursts of up to 128 bytes, which use the halves of the buffer of ct_usb_mem in turns: while one is
//             on the bus, the mover fills the other half with what comes next, or empties it of what came before.

`default_nettype none
`include "ct_assert.svh"

module ct_usb_exec #(
  parameter int unsigned TimeoutLog2 = 20
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  // The oldest frame and the words of its payload.
  input  logic        frame_valid_i,
  output logic        frame_ready_o,
  input  logic        frame_hello_i,
  input  logic        frame_damaged_i,
  input  logic [15:0] frame_tag_i,
  input  logic [11:0] frame_size_i,
  output logic [9:0]  frame_addr_o,
  input  logic [15:0] frame_word_i,     // a cycle later

  // The answer.
  output logic        answer_valid_o,
  input  logic        answer_ready_i,
  output logic [2:0]  answer_code_o,
  output logic [15:0] answer_tag_o,
  output logic [11:0] answer_size_o,
  output logic        answer_buf_o,
  output logic [1:0]  answer_we_o,
  output logic [10:0] answer_addr_o,
  output logic [15:0] answer_word_o,

  // Bursts: ct_usb_mem.
  output logic        burst_start_o,
  output logic        burst_write_o,
  output logic [27:0] burst_block_o,
  output logic [7:0]  burst_first_o,
  output logic [7:0]  burst_last_o,
  input  logic        burst_busy_i,
  input  logic        burst_done_i,
  input  logic        burst_error_i,
  output logic        fill_o,
  output logic [6:0]  fill_at_o,
  output logic [15:0] fill_word_o,
  output logic [6:0]  beat_at_o,
  input  logic [15:0] beat_word_i,      // two cycles later

  // Registers: ct_usb_reg.
  output logic        reg_start_o,
  output logic        reg_write_o,
  output logic [11:0] reg_addr_o,
  output logic [31:0] reg_data_o,
  input  logic        reg_busy_i,
  input  logic        reg_done_i,
  input  logic        reg_error_i,
  input  logic [31:0] reg_data_i
);

  if (TimeoutLog2 < 4 || TimeoutLog2 > 31) begin : g_check_timeout
    ct_error_usb_timeout_log2_must_be_4_to_31 u_error ();
  end

  localparam logic [2:0]  CodeOk      = 3'd0;
  localparam logic [2:0]  CodeBad     = 3'd1;
  localparam logic [2:0]  CodeReg     = 3'd2;
  localparam logic [2:0]  CodeMem     = 3'd3;
  localparam logic [2:0]  CodeDamaged = 3'd4;
  localparam logic [31:0] HelloWord   = {16'd2048, 16'd1};  // largest payload, version; four zeros follow

  //   Idle -> Next -> Op -> Check -> Bounds -> RegGo -> RegWait ----------------> Drain -> Next ...
  //    ^       |                          \--> MemNext -> MemFill -> MemNext ...  -> MemWait -> Next   (write)
  //   Send <---+ (end, or an error)                   \-> MemWait -> MemNext ...  -> Drain -> Next     (read)
  typedef enum logic [3:0] {Idle, Next, Op, Check, Bounds, RegGo, RegWait, MemNext, MemFill, MemWait, Drain, Send} state_e;
  localparam logic [1:0] FromFrame = 2'd0;
  localparam logic [1:0] FromBeats = 2'd1;
  localparam logic [1:0] FromReg   = 2'd2;
  localparam logic [1:0] ToOp      = 2'd0;
  localparam logic [1:0] ToBeats   = 2'd1;
  localparam logic [1:0] ToAnswer  = 2'd2;

  state_e      state_d, state_q;
  logic [2:0]  code_d, code_q;             // of this answer so far
  logic [11:0] from_d, from_q;             // bytes of the payload used
  logic [11:0] size_d, size_q;             // bytes of the answer made
  logic        fresh_d, fresh_q;           // the operation has moved nothing yet

  // ---- The operation ------------------------------------------------------------------------------------------------------------

  logic [63:0] op_d, op_q;                 // word, n, high, code
  logic [7:0]  op_code;
  logic [11:0] n_less_1, end_d, end_q;     // end: the last byte in the block of 4 KB
  logic [12:0] last_byte;
  logic        wrong_d, wrong_q, is_read, is_reg;
  logic [11:0] left;
  logic        final_chunk;
  logic [7:0]  first, last;
  assign op_code     = op_q[7:0];
  assign is_read     = !op_code[0];
  assign is_reg      = !op_code[2] && op_code[1:0] != 2'd3;
  assign n_less_1    = op_q[27:16];
  assign last_byte   = {1'b0, op_q[43:32]} + {1'b0, n_less_1};
  assign left        = frame_size_i - from_q;
  assign final_chunk = op_q[43:39] == end_q[11:7];
  assign first       = op_q[39:32];
  assign last        = {op_q[39], final_chunk ? end_q[6:0] : 7'h7f};

  // ---- The mover: words of two bytes, three cycles from the address to the place --------------------------------------------------

  logic        mv_start, mv_busy, mv_first, mv_odd_d, mv_odd_q, mv_skip_d, mv_skip_q, mv_half_d, mv_half_q;
  logic [1:0]  mv_from_d, mv_from_q, mv_to_d, mv_to_q;
  logic [9:0]  mv_src_d, mv_src_q;
  logic [6:0]  mv_left_d, mv_left_q;      // words after this one,
  logic        mv_more_d, mv_more_q, run_q; // and one more
  logic [10:0] mv_dst_d, mv_dst_q;
  logic        v1_q, v2_q, v3_q, put;
  logic [15:0] early_q, reg_word, word_q, unit;
  logic [7:0]  high_q;
  logic [31:0] reg_d, reg_q;
  logic [1:0]  reg_at_q, reg_at2_q;

  assign mv_busy = run_q || v1_q || v2_q || v3_q;
  assign put     = v3_q && !mv_skip_q;
  assign unit    = mv_odd_q ? {word_q[7:0], high_q} : word_q;

  assign frame_addr_o  = mv_src_q;
  assign beat_at_o     = mv_src_q[6:0];
  assign fill_o        = put && mv_to_q == ToBeats;
  assign fill_at_o     = mv_dst_q[6:0];
  assign fill_word_o   = unit;
  assign answer_we_o   = {2{put && mv_to_q == ToAnswer && !mv_dst_q[10]}} & {1'b1, !mv_half_q};
  assign answer_addr_o = {!answer_buf_o, mv_dst_q[9:0]};
  assign answer_word_o = unit;
  assign reg_word      = reg_at2_q[1] ? 16'd0 : reg_at2_q[0] ? reg_q[31:16] : reg_q[15:0];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      run_q <= 1'b0;
      v1_q  <= 1'b0;
      v2_q  <= 1'b0;
      v3_q  <= 1'b0;
    end else begin
      run_q <= mv_start || (run_q && (mv_left_q != 7'd0 || mv_more_q));
      v1_q  <= run_q;
      v2_q  <= v1_q;
      v3_q  <= v2_q;
    end
  end

  always_ff @(posedge clk_i) begin
    early_q   <= frame_word_i;
    reg_at_q  <= mv_src_q[1:0];
    reg_at2_q <= reg_at_q;
    if (v2_q) word_q <= (mv_from_q == FromBeats) ? beat_word_i : (mv_from_q == FromReg) ? reg_word : early_q;
    if (v3_q) begin
      high_q    <= word_q[15:8];
      mv_skip_q <= 1'b0;
    end
    if (put) mv_half_q <= 1'b0;
    if (run_q) begin
      mv_src_q <= mv_src_q + 10'd1;
      if (mv_left_q != 7'd0) mv_left_q <= mv_left_q - 7'd1;
      else                   mv_more_q <= 1'b0;
    end
    if (put) mv_dst_q <= mv_dst_q + 11'd1;
    if (mv_start) begin
      mv_left_q <= mv_left_d;
      mv_more_q <= mv_more_d;
      mv_from_q <= mv_from_d;
      mv_to_q   <= mv_to_d;
      // In the middle of an access one side goes on from where it is: the frame of a write, the answer of a read.
      if (mv_first || mv_from_d == FromBeats) mv_src_q <= mv_src_d;
      if (mv_first || mv_to_d == ToBeats) mv_dst_q <= mv_dst_d;
      if (mv_first) begin
        mv_odd_q  <= mv_odd_d;
        mv_skip_q <= mv_skip_d;
        mv_half_q <= mv_half_d;
      end
    end
  end

  // ---- Sequence -------------------------------------------------------------------------------------------------------------------

  logic                   kept_vld_q, kept_d, again, late;
  logic                   own_d, own_q;  // a burst of this operation is under way
  logic                   bad_d, bad_q;  // one has failed
  logic [2:0]             kept_code_q;
  logic [15:0]            kept_tag_q;
  logic [11:0]            kept_size_q;
  logic [TimeoutLog2-1:0] timer_q;
  logic                   settled, mem_failed, failed, op_next;
  logic [6:0]             chunk_left;
  logic [12:0]            answer_end;
  logic [11:0]            answer_next, from_next;

  assign again       = !frame_hello_i && kept_vld_q && frame_tag_i == kept_tag_q;
  assign late        = timer_q == '1;
  // The mover rests and no burst is under way. A burst that failed or takes too long ends the operation, when the mover rests.
  assign settled     = !mv_busy && !own_q && !bad_q;
  assign mem_failed  = !mv_busy && (own_q ? late && !burst_done_i : bad_q);
  assign chunk_left  = last[7:1] - first[7:1];
  assign answer_next = size_q + n_less_1 + 12'd1;
  assign from_next   = from_q + ((state_q == Next) ? 12'd7 : n_less_1) + 12'd1;
  assign answer_end  = {1'b0, size_q} + {1'b0, op_q[27:16]};

  always_comb begin
    state_d = state_q;
    code_d  = code_q;
    from_d  = from_q;
    size_d  = size_q;
    fresh_d = fresh_q;
    op_d    = op_q;
    end_d   = end_q;
    wrong_d = wrong_q;
    reg_d   = reg_q;
    kept_d  = 1'b0;
    own_d   = own_q && !burst_done_i;
    bad_d   = bad_q || (own_q && burst_done_i && burst_error_i);
    if (put && mv_to_q == ToOp) op_d = {unit, op_q[63:16]};

    mv_start  = 1'b0;
    mv_first  = 1'b1;
    mv_from_d = FromFrame;
    mv_to_d   = ToOp;
    mv_src_d  = from_q[10:1];
    mv_dst_d  = size_q[11:1];
    mv_odd_d  = from_q[0];
    mv_skip_d = from_q[0];
    mv_half_d = 1'b0;
    mv_left_d = 7'd3;
    mv_more_d = from_q[0];

    burst_start_o = 1'b0;
    op_next       = 1'b0;
    failed        = 1'b0;

    case (state_q)
      // from, size and code are 0.
      Idle: begin
        reg_d = HelloWord;
        if (frame_valid_i) begin
          state_d = (frame_damaged_i || again) ? Send : Next;
          if (frame_hello_i && !frame_damaged_i) begin
            state_d   = Drain;
            size_d    = 12'd8;
            mv_start  = 1'b1;
            mv_from_d = FromReg;
            mv_to_d   = ToAnswer;
          end
        end
      end

      // The next operation, or the end of the frame or of its good part.
      Next: begin
        if (code_q != CodeOk || left == 12'd0) begin
          state_d = Send;
          kept_d  = 1'b1;
        end else if (left[11:3] == 9'd0) begin
          code_d = CodeBad;
        end else begin
          mv_start = 1'b1;
          from_d   = from_next;
          state_d  = Op;
        end
      end

      Op: if (!mv_busy) state_d = Check;

      Check: begin
        fresh_d = 1'b1;
        bad_d   = 1'b0;
        state_d = Bounds;
        if (is_reg) begin
          wrong_d = is_read && (size_q[11] || (size_q[10:2] == '1 && size_q[1:0] != 2'd0));
        end else begin
          op_d[27:16] = op_q[27:16] - 12'd1;
          wrong_d     = op_q[31:16] == 16'd0 || op_q[31:28] != 4'd0 || op_q[15:12] != 4'd0 ||
                        (is_read ? answer_end[12] || (answer_end[11] && answer_end[10:0] != 11'd0) : op_q[27:16] > left);
        end
        if (op_code == 8'd0 || op_code > 8'd4) begin
          code_d  = CodeBad;
          state_d = Next;
        end else if (is_reg && (op_q[31:28] != 4'd0 || op_q[17:16] != 2'd0)) begin
          code_d  = CodeReg;
          state_d = Next;
        end
      end

      Bounds: begin
        end_d   = last_byte[11:0];
        state_d = is_reg ? RegGo : MemNext;
        if (wrong_q || (!is_reg && last_byte[12])) begin
          code_d  = CodeBad;
          state_d = Next;
        end
      end

      RegGo: begin
        op_d[27:16] = 12'd3;  // 4 bytes, as n - 1
        state_d     = RegWait;
        if (reg_busy_i) begin
          code_d  = CodeReg;
          state_d = Next;
        end
      end

      RegWait: begin
        reg_d = reg_data_i;
        if (reg_done_i || late) begin
          state_d = Next;
          if (!reg_done_i || reg_error_i) begin
            code_d = CodeReg;
          end else if (is_read) begin
            state_d   = Drain;
            size_d    = answer_next;
            mv_start  = 1'b1;
            mv_from_d = FromReg;
            mv_to_d   = ToAnswer;
            mv_src_d  = 10'd0;
            mv_odd_d  = size_q[0];
            mv_skip_d = 1'b0;
            mv_half_d = size_q[0];
            mv_left_d = 7'd1;
            mv_more_d = size_q[0];
          end
        end
      end

      Drain: begin
        if (!mv_busy) begin
          state_d = frame_hello_i ? Send : Next;
          kept_d  = frame_hello_i;
        end
      end

      // A part within 128 bytes: the data of a write into the buffer, the burst of a read onto the bus.
      MemNext: begin
        if (fresh_q && burst_busy_i) begin
          failed = 1'b1;
        end else if (is_read) begin
          burst_start_o = 1'b1;
          state_d       = MemWait;
        end else begin
          mv_start  = 1'b1;
          mv_first  = fresh_q;
          mv_to_d   = ToBeats;
          mv_dst_d  = {4'd0, first[7:1]};
          mv_odd_d  = from_q[0] ^ first[0];
          mv_skip_d = from_q[0] && !first[0];
          mv_left_d = chunk_left;
          mv_more_d = fresh_q && mv_skip_d;
          fresh_d   = 1'b0;
          state_d   = MemFill;
        end
      end

      // The half is filled, and the burst out of the other one is over.
      MemFill: begin
        if (settled) begin
          burst_start_o = 1'b1;
          op_next       = !final_chunk;
          state_d       = final_chunk ? MemWait : MemNext;
        end
        failed = mem_failed;
      end

      // The end of a write, or a part of a read, whose bytes leave while the next part comes.
      MemWait: begin
        if (settled && !is_read) begin
          from_d  = from_next;
          state_d = Next;
        end else if (settled) begin
          mv_start  = 1'b1;
          mv_first  = fresh_q;
          mv_from_d = FromBeats;
          mv_to_d   = ToAnswer;
          mv_src_d  = {3'd0, first[7:1]};
          mv_odd_d  = size_q[0] ^ first[0];
          mv_skip_d = first[0] && !size_q[0];
          mv_half_d = size_q[0];
          // The last byte may still be in the mover.
          mv_left_d = chunk_left;
          mv_more_d = final_chunk;
          fresh_d   = 1'b0;
          op_next   = !final_chunk;
          state_d   = MemNext;
          if (final_chunk) begin
            size_d  = answer_next;
            state_d = Drain;
          end
        end
        failed = mem_failed;
      end

      default: begin  // Send
        from_d = 12'd0;
        size_d = 12'd0;
        code_d = CodeOk;
        if (answer_ready_i) state_d = Idle;
      end
    endcase
    if (burst_start_o) own_d = 1'b1;
    if (op_next) begin
      op_d[38:32] = 7'd0;
      op_d[43:39] = op_q[43:39] + 5'd1;
    end
    if (failed) begin
      own_d   = 1'b0;
      code_d  = CodeMem;
      state_d = Next;
    end
  end

  assign frame_ready_o  = state_q == Send && answer_ready_i;
  assign answer_valid_o = state_q == Send;
  assign answer_code_o  = frame_damaged_i ? CodeDamaged : kept_code_q;
  assign answer_tag_o   = frame_tag_i;
  assign answer_size_o  = frame_damaged_i ? '0 : kept_size_q;

  assign reg_start_o    = state_q == RegGo && !reg_busy_i;
  assign reg_write_o    = !is_read;
  assign reg_addr_o     = op_q[27:16];
  assign reg_data_o     = op_q[63:32];

  assign burst_write_o  = !is_read;
  assign burst_block_o  = {op_q[11:8], op_q[63:40]};
  assign burst_first_o  = first;
  assign burst_last_o   = last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q      <= Idle;
      code_q       <= CodeOk;
      from_q       <= '0;
      size_q       <= '0;
      kept_vld_q   <= 1'b0;
      answer_buf_o <= 1'b0;
      timer_q      <= '0;
      own_q        <= 1'b0;
    end else begin
      state_q <= state_d;
      own_q   <= own_d;
      code_q  <= code_d;
      from_q  <= from_d;
      size_q  <= size_d;
      if (kept_d) begin
        kept_vld_q   <= 1'b1;
        answer_buf_o <= !answer_buf_o;
      end
      timer_q <= (state_q == RegWait || own_q) ? timer_q + TimeoutLog2'(!late) : '0;
    end
  end

  always_ff @(posedge clk_i) begin
    fresh_q <= fresh_d;
    bad_q   <= bad_d;
    op_q    <= op_d;
    end_q   <= end_d;
    wrong_q <= wrong_d;
    reg_q   <= reg_d;
    if (kept_d) begin
      kept_code_q <= code_q;
      kept_tag_q  <= frame_tag_i;
      kept_size_q <= (code_q == CodeOk) ? size_q : '0;
    end
  end

`ifdef FORMAL
  `include "ct_usb_exec_formal.svh"
`endif

endmodule

`default_nettype wire
