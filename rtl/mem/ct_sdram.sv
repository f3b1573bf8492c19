// SPDX-License-Identifier: Apache-2.0
//
// SDRAM controller: an AXI4 slave on 16-bit SDR SDRAM (four banks; 32 MB as on the ULX3S: MT48LC16M16, AS4C16M16, W9825G6, IS42S16160).
//
// AXI         what the master of ct_core does: 128 bit data, INCR, 16 bytes a beat, addresses a multiple of 16, 1 to 17 beats (MaxBeats), within
//             4 KB. Bursts that begin outside the memory answer DECERR; their reads give zeros, their writes change nothing.
//             No output depends on an input of the same cycle.
// Order       one burst after the other, whole, in the order in which it was chosen; so in order for each ID, and beats of two bursts never mix.
//             A write is answered when it is chosen and its last beat has been sent: a read that is asked for after the answer sees it. (One that is
//             asked for before may go first, as AXI lets it.)
// Choice      a read may go when its beats have room in the buffer of R, a write when its beats are all here: nothing waits for the master
//             inside a burst. Where both may go they take turns. So from when it may go, a burst waits for at most the one
//             under way and one of the other direction: 2 * BurstCycles cycles, with all refreshes (WaitBound_A, OvertakenOnce_A).
// Address     row, bank, column: 1 KB in a row of a bank, then the next bank; 4 KB a row of all four. While a beat's words move, the next
//             beat's bank closes and opens (ct_sdram_seq), so long streams keep the data pins busy. docs/fpga.md has the figures.
// Pins        all outputs come from registers that nothing reads, and with no logic behind them (sdram_dq_oe_o's is the inverse), so that they fit into
//             the cells of the pins; dq_i goes into one. The board adds the tristate buffer (sdram_dq_oe_o high: we drive) and the
//             chip's clock: clk_i's, or one half a cycle before it if dq_i then comes from a register with that clock (what the chip sends
//             is there when its next edge comes, and gone by ours). ReadDelay counts further cycles between the chip and dq_i, of
//             registers in the pins, say.
// Clock       ClockHz of clk_i, which the chip's times in nanoseconds are counted in; 10 MHz or more. CasLatency 2 is for up to 100 MHz. The default
//             times hold for the chips named above in their 133 MHz grades (-75) and for faster ones, but for one: AS4C16M16SA-7 has 21 ns for tRCD and
//             tRP (its -6 has 18). The defaults, 20 ns, give it a cycle too few from 47.7 to 50 and from 95.3 to 100 MHz: set RcdNs and RpNs to 21 there.
//
// Parameters
//   ClockHz, CasLatency, RcdNs .. RrdNs, PowerUpUs, RowBits, ColBits   the chip (ct_sdram_seq)
//   ReadDelay   further cycles of read data, 0 to 3
//   MaxBeats    beats of the longest burst, 1 to 32
//   IdW         bits of an ID, at least 1

`default_nettype none
`include "ct_assert.svh"

module ct_sdram #(
  parameter  int unsigned ClockHz    = 100000000,
  parameter  int unsigned RowBits    = 13,
  parameter  int unsigned ColBits    = 9,
  parameter  int unsigned CasLatency = 3,
  parameter  int unsigned RcdNs      = 20,
  parameter  int unsigned RpNs       = 20,
  parameter  int unsigned RasNs      = 45,
  parameter  int unsigned RcNs       = 66,
  parameter  int unsigned RfcNs      = 70,
  parameter  int unsigned WrNs       = 15,
  parameter  int unsigned RrdNs      = 15,
  parameter  int unsigned PowerUpUs  = 200,
  parameter  int unsigned ReadDelay  = 0,
  parameter  int unsigned MaxBeats   = 17,
  parameter  int unsigned IdW        = 1
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  logic               s_axi_awvalid_i,
  output logic               s_axi_awready_o,
  input  logic [IdW-1:0]     s_axi_awid_i,
  input  logic [35:0]        s_axi_awaddr_i,
  input  logic [7:0]         s_axi_awlen_i,
  input  logic               s_axi_wvalid_i,
  output logic               s_axi_wready_o,
  input  logic [127:0]       s_axi_wdata_i,
  input  logic [15:0]        s_axi_wstrb_i,
  input  logic               s_axi_wlast_i,
  output logic               s_axi_bvalid_o,
  input  logic               s_axi_bready_i,
  output logic [IdW-1:0]     s_axi_bid_o,
  output logic [1:0]         s_axi_bresp_o,
  input  logic               s_axi_arvalid_i,
  output logic               s_axi_arready_o,
  input  logic [IdW-1:0]     s_axi_arid_i,
  input  logic [35:0]        s_axi_araddr_i,
  input  logic [7:0]         s_axi_arlen_i,
  output logic               s_axi_rvalid_o,
  input  logic               s_axi_rready_i,
  output logic [IdW-1:0]     s_axi_rid_o,
  output logic [127:0]       s_axi_rdata_o,
  output logic [1:0]         s_axi_rresp_o,
  output logic               s_axi_rlast_o,

  // The chip's pins.
  output logic               sdram_cke_o,
  output logic               sdram_cs_no,
  output logic               sdram_ras_no,
  output logic               sdram_cas_no,
  output logic               sdram_we_no,
  output logic [1:0]         sdram_ba_o,
  output logic [RowBits-1:0] sdram_a_o,
  output logic [1:0]         sdram_dqm_o,
  output logic [15:0]        sdram_dq_o,
  output logic               sdram_dq_oe_o,
  input  logic [15:0]        sdram_dq_i
);

  if (MaxBeats == 0 || MaxBeats > 32) begin : g_check_beats
    ct_error_sdram_max_beats_must_be_1_to_32 u_error ();
  end
  if (IdW == 0) begin : g_check_id
    ct_error_sdram_id_must_have_at_least_1_bit u_error ();
  end
  if (ReadDelay > 3) begin : g_check_delay
    ct_error_sdram_read_delay_must_be_0_to_3 u_error ();
  end

  localparam int unsigned BeatW  = RowBits + 2 + ColBits - 3;  // address of 16 bytes
  localparam int unsigned Places = 32;                         // beats in the buffers of R and W
  localparam int unsigned CountW = 6;
  localparam int unsigned LenW   = 5;
  localparam int unsigned ReqW   = IdW + 1 + BeatW + LenW;

  // ---- The channels' buffers --------------------------------------------------------------------------------------------------

  logic            ar_valid, ar_take, aw_valid, aw_take, ar_err, aw_err;
  logic [ReqW-1:0] ar_req, aw_req;
  logic            w_valid, w_take, b_room, b_put, r_put, r_room, m_room, m_valid, b_err, r_err;
  logic [143:0]    w_beat;
  logic [127:0]    r_data;
  logic [IdW+1:0]  m_head;  // of the oldest beat on its way from the chip: id, last, error

  assign ar_err = (s_axi_araddr_i[35:BeatW+4] != '0);
  assign aw_err = (s_axi_awaddr_i[35:BeatW+4] != '0);

  ct_fifo #(.Width(ReqW), .Depth(2)) u_ar (
    .clk_i, .rst_ni,
    .valid_i(s_axi_arvalid_i), .ready_o(s_axi_arready_o),
    .data_i({s_axi_arid_i, ar_err, s_axi_araddr_i[4 +: BeatW], s_axi_arlen_i[LenW-1:0]}),
    .valid_o(ar_valid), .ready_i(ar_take), .data_o(ar_req), .count_o()
  );
  ct_fifo #(.Width(ReqW), .Depth(2)) u_aw (
    .clk_i, .rst_ni,
    .valid_i(s_axi_awvalid_i), .ready_o(s_axi_awready_o),
    .data_i({s_axi_awid_i, aw_err, s_axi_awaddr_i[4 +: BeatW], s_axi_awlen_i[LenW-1:0]}),
    .valid_o(aw_valid), .ready_i(aw_take), .data_o(aw_req), .count_o()
  );
  ct_fifo #(.Width(144), .Depth(Places)) u_w (
    .clk_i, .rst_ni,
    .valid_i(s_axi_wvalid_i), .ready_o(s_axi_wready_o), .data_i({s_axi_wstrb_i, s_axi_wdata_i}),
    .valid_o(w_valid), .ready_i(w_take), .data_o(w_beat), .count_o()
  );

  // ---- The burst under way, and which is next -----------------------------------------------------------------------------------

  logic              run_q, write_q, err_q, turn_q;  // turn_q: the last burst chosen was a read
  logic [IdW-1:0]    id_q;
  logic [BeatW-1:0]  beat_q;
  logic [LenW-1:0]   left_q;   // beats behind this one
  logic [CountW-1:0] room_q;   // beats of R that no burst has asked for
  logic [CountW-1:0] whole_q;  // bursts that are whole in the buffer of W
  logic              rd_can, wr_can, rd_go, wr_go, go, last, w_whole;

  assign rd_can  = ar_valid && (room_q > {1'b0, ar_req[LenW-1:0]});
  assign wr_can  = aw_valid && (whole_q != '0) && b_room;
  assign rd_go   = !run_q && rd_can && !(wr_can && turn_q);
  assign wr_go   = !run_q && wr_can && !(rd_can && !turn_q);
  assign ar_take = rd_go;
  assign aw_take = wr_go;
  assign last    = (left_q == '0);
  assign w_take  = go && write_q;
  assign w_whole = s_axi_wvalid_i && s_axi_wready_o && s_axi_wlast_i;
  assign b_put   = go && write_q && last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      run_q   <= 1'b0;
      turn_q  <= 1'b0;
      room_q  <= CountW'(Places);
      whole_q <= '0;
    end else begin
      if (rd_go || wr_go) begin
        run_q  <= 1'b1;
        turn_q <= rd_go;
      end else if (go && last) begin
        run_q  <= 1'b0;
      end
      room_q  <= room_q + CountW'(s_axi_rvalid_o && s_axi_rready_i) - (rd_go ? CountW'(ar_req[LenW-1:0]) + 1'b1 : '0);
      whole_q <= whole_q + CountW'(w_whole) - CountW'(wr_go);
    end
  end

  always_ff @(posedge clk_i) begin
    if (rd_go || wr_go) begin
      write_q                       <= wr_go;
      {id_q, err_q, beat_q, left_q} <= wr_go ? aw_req : ar_req;
    end else if (go) begin
      beat_q <= beat_q + 1'b1;
      left_q <= left_q - 1'b1;
    end
  end

  ct_fifo #(.Width(IdW + 1), .Depth(4)) u_b (
    .clk_i, .rst_ni,
    .valid_i(b_put), .ready_o(b_room), .data_i({id_q, err_q}),
    .valid_o(s_axi_bvalid_o), .ready_i(s_axi_bready_i), .data_o({s_axi_bid_o, b_err}), .count_o()
  );
  assign s_axi_bresp_o = {2{b_err}};  // DECERR or OKAY

  // ---- Commands and pins --------------------------------------------------------------------------------------------------------

  logic [2:0]         cmd, cmd_q;
  logic [1:0]         ba, ba_q, dqm_q;
  logic [RowBits-1:0] a, a_q;
  logic [15:0]        word_q;
  logic [111:0]       wdata_q;  // the words to come, the next at the bottom
  logic [13:0]        wmask_q;  // their DQM
  logic [2:0]         wleft_q;
  logic               let_go_q;  // the data pins are not ours
  // The same a cycle later, in the pins' cells at the rim of the chip: a whole cycle for the way there.
  logic [2:0]         pin_cmd_q;
  logic [1:0]         pin_ba_q, pin_dqm_q;
  logic [RowBits-1:0] pin_a_q;
  logic [15:0]        pin_word_q;
  logic               pin_let_go_q;

  ct_sdram_seq #(
    .ClockHz(ClockHz), .RowBits(RowBits), .ColBits(ColBits), .CasLatency(CasLatency), .RcdNs(RcdNs), .RpNs(RpNs),
    .RasNs(RasNs), .RcNs(RcNs), .RfcNs(RfcNs), .WrNs(WrNs), .RrdNs(RrdNs), .PowerUpUs(PowerUpUs)
  ) u_seq (
    .clk_i, .rst_ni,
    .valid_i(run_q), .write_i(write_q), .beat_i(beat_q), .go_o(go),
    .cmd_o(cmd), .bank_o(ba), .addr_o(a)
  );

  assign sdram_cke_o = 1'b1;
  assign sdram_cs_no = 1'b0;
  assign {sdram_ras_no, sdram_cas_no, sdram_we_no} = pin_cmd_q;
  assign sdram_ba_o    = pin_ba_q;
  assign sdram_a_o     = pin_a_q;
  assign sdram_dqm_o   = pin_dqm_q;
  assign sdram_dq_o    = pin_word_q;
  assign sdram_dq_oe_o = !pin_let_go_q;

  // DQM is high (nothing is written, nothing driven) but while words move. A chip that reads looks at it two cycles ahead of
  // each word, so it is low from the command on for 6 + CasLatency cycles.
  logic [3:0] rlow_q;  // cycles for which a read still needs it low
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cmd_q        <= 3'b111;
      let_go_q     <= 1'b1;
      dqm_q        <= 2'b11;
      wleft_q      <= '0;
      rlow_q       <= '0;
      pin_cmd_q    <= 3'b111;
      pin_let_go_q <= 1'b1;
      pin_dqm_q    <= 2'b11;
      pin_word_q   <= '0;  // (a pin's registers for data and for letting go share their reset)
    end else begin
      cmd_q        <= cmd;
      let_go_q     <= !(w_take || wleft_q != '0);
      pin_cmd_q    <= cmd_q;
      pin_let_go_q <= let_go_q;
      pin_dqm_q    <= dqm_q;
      pin_word_q   <= word_q;
      if (w_take)               wleft_q <= 3'd7;
      else if (wleft_q != '0)   wleft_q <= wleft_q - 1'b1;
      if (go && !write_q)       rlow_q <= 4'(5 + CasLatency);
      else if (rlow_q != '0)    rlow_q <= rlow_q - 1'b1;
      if (w_take)               dqm_q <= ~w_beat[129:128] | {2{err_q}};
      else if (wleft_q != '0)   dqm_q <= wmask_q[1:0];
      else                      dqm_q <= {2{!((go && !write_q) || rlow_q != '0)}};
    end
  end
  always_ff @(posedge clk_i) begin
    ba_q     <= ba;
    a_q      <= a;
    pin_ba_q <= ba_q;
    pin_a_q  <= a_q;
    word_q   <= w_take ? w_beat[15:0] : wdata_q[15:0];
    wdata_q  <= w_take ? w_beat[127:16] : {16'd0, wdata_q[111:16]};
    wmask_q  <= w_take ? ~w_beat[143:130] | {14{err_q}} : {2'b11, wmask_q[13:2]};
  end

  // ---- What comes back ----------------------------------------------------------------------------------------------------------

  // From the decision to read: two cycles to the pins, CasLatency, a cycle in dq_q.
  localparam int unsigned Delay = CasLatency + 3 + ReadDelay;
  logic [Delay-1:0] coming_q;  // bit 0: a READ was decided a cycle ago
  logic [15:0]      dq_q;
  logic [111:0]     words_q;   // of the beat that is coming in, the newest at the top
  logic [2:0]       nth_q;
  logic             moving;

  assign moving = coming_q[Delay-1] || (nth_q != '0);
  assign r_put  = (nth_q == 3'd7);
  assign r_data = {dq_q, words_q} & {128{!m_head[0]}};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      coming_q <= '0;
      nth_q    <= '0;
    end else begin
      coming_q <= {coming_q[Delay-2:0], go && !write_q};
      nth_q    <= nth_q + 3'(moving);
    end
  end
  always_ff @(posedge clk_i) begin
    dq_q <= sdram_dq_i;
    if (moving) words_q <= {dq_q, words_q[111:16]};
  end

  ct_fifo #(.Width(IdW + 2), .Depth(4)) u_meta (
    .clk_i, .rst_ni,
    .valid_i(go && !write_q), .ready_o(m_room), .data_i({id_q, last, err_q}),
    .valid_o(m_valid), .ready_i(r_put), .data_o(m_head), .count_o()
  );
  ct_fifo #(.Width(IdW + 130), .Depth(Places)) u_r (
    .clk_i, .rst_ni,
    .valid_i(r_put), .ready_o(r_room), .data_i({m_head, r_data}),
    .valid_o(s_axi_rvalid_o), .ready_i(s_axi_rready_i),
    .data_o({s_axi_rid_o, s_axi_rlast_o, r_err, s_axi_rdata_o}), .count_o()
  );
  assign s_axi_rresp_o = {2{r_err}};

  // ---- Rules ------------------------------------------------------------------------------------------------------------------

  // 8 cycles for a beat, and the time of 16 beats for rows, turning the pins and refreshes.
  localparam int unsigned BurstCycles = 8 * (MaxBeats + 16);
  logic        rd_over_q, wr_over_q;        // one of the other direction went while this one could
  logic [15:0] rd_wait_q, wr_wait_q;        // cycles this one could go and did not
  logic        up_q;                        // power-up is over
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rd_over_q <= 1'b0;
      wr_over_q <= 1'b0;
      rd_wait_q <= '0;
      wr_wait_q <= '0;
      up_q      <= 1'b0;
    end else begin
      up_q      <= up_q || go;
      rd_over_q <= rd_can && !rd_go && (rd_over_q || wr_go);
      wr_over_q <= wr_can && !wr_go && (wr_over_q || rd_go);
      rd_wait_q <= (rd_can && !rd_go && up_q) ? rd_wait_q + 1'b1 : '0;
      wr_wait_q <= (wr_can && !wr_go && up_q) ? wr_wait_q + 1'b1 : '0;
    end
  end
  `CT_ASSERT(OvertakenOnce_A, !(rd_over_q && wr_go) && !(wr_over_q && rd_go))
  `CT_ASSERT(WaitBound_A, rd_wait_q <= 16'(2 * BurstCycles) && wr_wait_q <= 16'(2 * BurstCycles))
  `CT_ASSERT(RoomKept_A, !r_put || (r_room && m_valid))
  `CT_ASSERT(MetaRoom_A, !(go && !write_q) || m_room)
  `CT_ASSERT(WholeInBuffer_A, !w_take || w_valid)
  `CT_ASSERT(AnswerRoom_A, !b_put || b_room)
  `CT_ASSERT(OneDriver_A, !(!pin_let_go_q && moving && ReadDelay == 0))
  `CT_ASSUME(ReadBurst_M, !s_axi_arvalid_i || (s_axi_arlen_i < 8'(MaxBeats) && s_axi_araddr_i[3:0] == '0))
  `CT_ASSUME(WriteBurst_M, !s_axi_awvalid_i || (s_axi_awlen_i < 8'(MaxBeats) && s_axi_awaddr_i[3:0] == '0))

`ifdef FORMAL
  `include "ct_sdram_formal.svh"
`endif

endmodule

`default_nettype wire
