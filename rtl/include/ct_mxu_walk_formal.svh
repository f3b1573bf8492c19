// SPDX-License-Identifier: Apache-2.0
//
// What is proven of ct_mxu_walk (tb/formal/ct_mxu_walk.proof), included at its end.

  // (The walk has no reset: nothing is said of it before an MM begins.)
  (* keep, anyseq *) logic rst_ni;

  // The walk as docs/programming.md has it. A pixel, or a tap, is what so many steps make of the first one, and goes with their number.
  typedef struct packed {
    logic [8:0]  x0, xe, y0, ye;
    logic [3:0]  sx, sy;
    logic [19:0] ax, ay, ai;
    logic [7:0]  w, h;
  } f_wpix_t;
  typedef struct packed {
    logic [9:0]  x, y;
    logic [5:0]  dx, dy;
    logic [19:0] tc, tx, ty;
    logic [3:0]  kx;
    logic [7:0]  cb;
  } f_wtap_t;
  typedef struct packed {
    logic [15:0] number;
    logic [9:0]  x, y;
    logic [7:0]  images;
    logic [19:0] at;      // of its word at the first tap
  } f_pixel_t;
  typedef struct packed {
    logic [15:0] number;
    logic [9:0]  x, y;
    logic [19:0] at;      // added to the pixel's
    logic [7:0]  b;       // channel blocks and taps of the line before this one
    logic [3:0]  j;
  } f_tap_t;

  f_wpix_t  f_wpix, f_said_pix_q, f_pix_q;
  f_wtap_t  f_wtap, f_said_tap_q, f_tap_q;
  f_pixel_t f_p_q, f_first_q, f_ahead_q, f_p_next;  // of the row that is due; the one that laps begin with; that of the next k step, once it is known
  f_tap_t   f_t_q, f_t_next, f_t_first;
  logic     f_pix_said_q, f_tap_said_q, f_on_q, f_trans_q;

  always_comb begin
    f_wpix.x0 = cmd_i[ct_pkg::WpixX0Lsb +: 9];
    f_wpix.xe = cmd_i[ct_pkg::WpixXELsb +: 9];
    f_wpix.y0 = cmd_i[ct_pkg::WpixY0Lsb +: 9];
    f_wpix.ye = cmd_i[ct_pkg::WpixYELsb +: 9];
    f_wpix.sx = cmd_i[ct_pkg::WpixSXLsb +: 4];
    f_wpix.sy = cmd_i[ct_pkg::WpixSYLsb +: 4];
    f_wpix.ax = cmd_i[ct_pkg::WpixAXLsb +: 20];
    f_wpix.ay = cmd_i[ct_pkg::WpixAYLsb +: 20];
    f_wpix.ai = cmd_i[ct_pkg::WpixAILsb +: 20];
    f_wpix.w  = cmd_i[ct_pkg::WpixWLsb +: 8];
    f_wpix.h  = cmd_i[ct_pkg::WpixHLsb +: 8];
    f_wtap.x  = cmd_i[ct_pkg::WtapXLsb +: 10];
    f_wtap.y  = cmd_i[ct_pkg::WtapYLsb +: 10];
    f_wtap.dx = cmd_i[ct_pkg::WtapDXLsb +: 6];
    f_wtap.dy = cmd_i[ct_pkg::WtapDYLsb +: 6];
    f_wtap.tc = cmd_i[ct_pkg::WtapTCLsb +: 20];
    f_wtap.tx = cmd_i[ct_pkg::WtapTXLsb +: 20];
    f_wtap.ty = cmd_i[ct_pkg::WtapTYLsb +: 20];
    f_wtap.kx = cmd_i[ct_pkg::WtapKXLsb +: 4];
    f_wtap.cb = cmd_i[ct_pkg::WtapCBLsb +: 8];
  end

  // The next pixel.
  always_comb begin
    f_p_next        = f_p_q;
    f_p_next.number = f_p_q.number + 16'd1;
    if (f_p_q.x != extend(f_pix_q.xe)) begin
      f_p_next.x  = f_p_q.x + {{6{f_pix_q.sx[3]}}, f_pix_q.sx};
      f_p_next.at = f_p_q.at + f_pix_q.ax;
    end else if (f_p_q.y != extend(f_pix_q.ye)) begin
      f_p_next.x  = extend(f_pix_q.x0);
      f_p_next.y  = f_p_q.y + {{6{f_pix_q.sy[3]}}, f_pix_q.sy};
      f_p_next.at = f_p_q.at + f_pix_q.ay;
    end else begin
      f_p_next.x  = extend(f_pix_q.x0);
      f_p_next.y  = extend(f_pix_q.y0);
      f_p_next.at = f_p_q.at + f_pix_q.ai;
      if (f_p_q.images != '0) f_p_next.images = f_p_q.images - 8'd1;
    end
  end

  // The next tap, and the first one.
  always_comb begin
    f_t_next        = f_t_q;
    f_t_next.number = f_t_q.number + 16'd1;
    if (f_t_q.b + 8'd1 != f_tap_q.cb) begin
      f_t_next.b  = f_t_q.b + 8'd1;
      f_t_next.at = f_t_q.at + f_tap_q.tc;
    end else if (f_t_q.j + 4'd1 != f_tap_q.kx) begin
      f_t_next.b  = '0;
      f_t_next.j  = f_t_q.j + 4'd1;
      f_t_next.x  = f_t_q.x + {{4{f_tap_q.dx[5]}}, f_tap_q.dx};
      f_t_next.at = f_t_q.at + f_tap_q.tx;
    end else begin
      f_t_next.b  = '0;
      f_t_next.j  = '0;
      f_t_next.x  = f_tap_q.x;
      f_t_next.y  = f_t_q.y + {{4{f_tap_q.dy[5]}}, f_tap_q.dy};
      f_t_next.at = f_t_q.at + f_tap_q.ty;
    end
    f_t_first   = '0;
    f_t_first.x = load_i ? f_said_tap_q.x : f_tap_q.x;
    f_t_first.y = load_i ? f_said_tap_q.y : f_tap_q.y;
  end

  // The MM by four counters, as ct_mxu_agen has them: row in tile m in column n of step k.
  (* anyseq *) logic [6:0] f_rows_new;
  (* anyseq *) logic [2:0] f_nt_new;
  logic [6:0]  f_rows_q;
  logic [2:0]  f_nt_q, f_m_q, f_n_q, f_m, f_n;
  logic [3:0]  f_r_q, f_r;
  logic [11:0] f_k_q, f_k;
  logic [15:0] f_want_p, f_want_t, f_is_p, f_is_t;  // numbers of pixel and tap: of the row behind the one that is due; of that one
  logic        f_row_last, f_m_last, f_n_last, f_later;  // f_later: a tile behind the first one of a transposed k step is due
  assign f_m_last   = f_m_q == f_rows_q[6:4];
  assign f_n_last   = f_n_q == f_nt_q;
  assign f_row_last = f_r_q == (f_trans_q || !f_m_last ? 4'd15 : f_rows_q[3:0]);
  assign f_later    = f_trans_q && !(f_m_q == '0 && f_n_q == '0);
  `CT_ASSUME(Told_M, !f_on_q || !next_i || (row_last_i == f_row_last && m_last_i == f_m_last && n_last_i == f_n_last && tile0_i == (f_m_q == '0 && f_n_q == '0)))
  always_comb begin
    f_r = f_row_last ? 4'd0 : f_r_q + 4'd1;
    f_m = !f_row_last ? f_m_q : f_m_last ? 3'd0 : f_m_q + 3'd1;
    f_n = !(f_row_last && f_m_last) ? f_n_q : f_n_last ? 3'd0 : f_n_q + 3'd1;
    f_k = f_k_q + 12'(f_row_last && f_m_last && f_n_last);
    f_is_p   = f_trans_q ? {f_k_q, f_r_q} : {9'd0, f_m_q, f_r_q};
    f_is_t   = f_trans_q ? 16'(f_m_q) : 16'(f_k_q);
    f_want_p = f_trans_q ? {f_k, f_r} : {9'd0, f_m, f_r};
    f_want_t = f_trans_q ? 16'(f_m) : 16'(f_k);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      f_pix_said_q <= 1'b0;
      f_tap_said_q <= 1'b0;
      f_on_q       <= 1'b0;
    end else begin
      f_pix_said_q <= f_pix_said_q || wpix_i;
      f_tap_said_q <= f_tap_said_q || wtap_i;
      // (An MM with Walk goes behind both: WalkBehindBoth_A of ct_fetch.)
      if (load_i) f_on_q <= f_pix_said_q && f_tap_said_q;
      // (Steps are at most 4095.)
      else if (next_i && f_k != f_k_q && f_k_q == 12'hfff) f_on_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (wpix_i) f_said_pix_q <= f_wpix;
    if (wtap_i) f_said_tap_q <= f_wtap;
    if (next_i) begin
      {f_r_q, f_m_q, f_n_q, f_k_q} <= {f_r, f_m, f_n, f_k};
      f_p_q <= f_want_p == f_first_q.number ? f_first_q : f_later && f_want_p == f_ahead_q.number ? f_ahead_q : f_p_next;
      f_t_q <= f_want_t == f_t_q.number ? f_t_q : f_want_t == f_t_next.number ? f_t_next : f_t_first;
      // A transposed k step begins with the pixel behind the first tile of the one before.
      if (f_trans_q && !f_later && f_row_last) f_ahead_q <= f_p_next;
      if (f_trans_q && f_k != f_k_q) f_first_q <= f_later ? f_ahead_q : f_p_next;
    end
    if (load_i) begin
      f_pix_q   <= f_said_pix_q;
      f_tap_q   <= f_said_tap_q;
      f_trans_q <= trans_i;
      f_rows_q  <= f_rows_new;
      f_nt_q    <= f_nt_new;
      {f_r_q, f_m_q, f_n_q, f_k_q} <= '0;
      f_p_q     <= {16'd0, extend(pos_i[8:0]), extend(pos_i[17:9]), pos_i[25:18], a_i};
      f_first_q <= {16'd0, extend(pos_i[8:0]), extend(pos_i[17:9]), pos_i[25:18], a_i};
      f_t_q     <= f_t_first;
    end
  end

  // The walk is where its counters are.
  `CT_ASSERT(InMm_A, !f_on_q || (f_m_q <= f_rows_q[6:4] && f_n_q <= f_nt_q && (f_trans_q || !f_m_last || f_r_q <= f_rows_q[3:0])))
  `CT_ASSERT(PixelOfRow_A, !f_on_q || (f_p_q.number == f_is_p && f_first_q.number == (f_trans_q ? {f_k_q, 4'd0} : 16'd0)))
  `CT_ASSERT(TapOfRow_A, !f_on_q || f_t_q.number == f_is_t)
  `CT_ASSERT(FirstTap_A, !f_on_q || f_t_q.number != '0 || f_t_q == f_t_first || load_i)

  // What is kept here is what follows from the pixels and the tap.
  logic [9:0] f_tap_x, f_tap_y;
  assign f_tap_x = f_tap_q.x;
  assign f_tap_y = f_tap_q.y;
  logic f_said_pix_ok, f_said_tap_ok, f_pix_ok, f_tap_ok;
  assign f_said_pix_ok = {said_q.x0, said_q.xe, said_q.y0, said_q.ye} == {extend(f_said_pix_q.x0), extend(f_said_pix_q.xe), extend(f_said_pix_q.y0), extend(f_said_pix_q.ye)} &&
                         {said_q.ax, said_q.ay, said_q.ai, said_q.sx, said_q.sy, said_q.w, said_q.h} ==
                         {f_said_pix_q.ax, f_said_pix_q.ay, f_said_pix_q.ai, f_said_pix_q.sx, f_said_pix_q.sy, f_said_pix_q.w, f_said_pix_q.h};
  assign f_said_tap_ok = {said_taps_q.x, said_taps_q.y, said_taps_q.dx, said_taps_q.dy, said_taps_q.tc, said_taps_q.tx, said_taps_q.ty} ==
                         {f_said_tap_q.x, f_said_tap_q.y, f_said_tap_q.dx, f_said_tap_q.dy, f_said_tap_q.tc, f_said_tap_q.tx, f_said_tap_q.ty} &&
                         said_taps_q.kx_m1 == f_said_tap_q.kx - 4'd1 && said_taps_q.cb_m1 == f_said_tap_q.cb - 8'd1;
  assign f_pix_ok      = {pixels_q.x0, pixels_q.y0} == {extend(f_pix_q.x0), extend(f_pix_q.y0)} &&
                         pixels_q.xe + {{6{f_pix_q.sx[3]}}, f_pix_q.sx} == extend(f_pix_q.xe) && pixels_q.ye + {{6{f_pix_q.sy[3]}}, f_pix_q.sy} == extend(f_pix_q.ye) &&
                         x_one_q == (f_pix_q.x0 == f_pix_q.xe) && y_one_q == (f_pix_q.y0 == f_pix_q.ye) &&
                         {pixels_q.ax, pixels_q.ay, pixels_q.ai, pixels_q.sx, pixels_q.sy, pixels_q.w, pixels_q.h} ==
                         {f_pix_q.ax, f_pix_q.ay, f_pix_q.ai, f_pix_q.sx, f_pix_q.sy, f_pix_q.w, f_pix_q.h};
  assign f_tap_ok      = {taps_q.x, taps_q.y, taps_q.dx, taps_q.dy, taps_q.tc, taps_q.tx, taps_q.ty} ==
                         {f_tap_q.x, f_tap_q.y, f_tap_q.dx, f_tap_q.dy, f_tap_q.tc, f_tap_q.tx, f_tap_q.ty} &&
                         taps_q.kx_m1 == f_tap_q.kx - 4'd1 && taps_q.cb_m1 == f_tap_q.cb - 8'd1;
  `CT_ASSERT(Said_A, (!f_pix_said_q || f_said_pix_ok) && (!f_tap_said_q || f_said_tap_ok))
  `CT_ASSERT(Kept_A, !f_on_q || (f_pix_ok && f_tap_ok && trans_q == f_trans_q))
  `CT_ASSERT(Pixels_A, !f_on_q || (
      {pixel_q.x, pixel_q.y, pixel_q.images} == {f_p_q.x, f_p_q.y, f_p_q.images} &&
      pixel_q.x_last == (f_p_q.x == extend(f_pix_q.xe)) && pixel_q.y_last == (f_p_q.y == extend(f_pix_q.ye)) &&
      {first_q.x, first_q.y, first_q.images} == {f_first_q.x, f_first_q.y, f_first_q.images} &&
      first_q.x_last == (f_first_q.x == extend(f_pix_q.xe)) && first_q.y_last == (f_first_q.y == extend(f_pix_q.ye))))
  `CT_ASSERT(Ahead_A, !f_on_q || !f_later || (
      f_ahead_q.number == {f_k_q, 4'd0} + 16'd16 &&
      {ahead_pixel_q.x, ahead_pixel_q.y, ahead_pixel_q.images} == {f_ahead_q.x, f_ahead_q.y, f_ahead_q.images} &&
      ahead_pixel_q.x_last == (f_ahead_q.x == extend(f_pix_q.xe)) && ahead_pixel_q.y_last == (f_ahead_q.y == extend(f_pix_q.ye)) &&
      ahead_seen_q.addr == f_ahead_q.at && ahead_seen_q.x == f_ahead_q.x + f_tap_x && ahead_seen_q.y == f_ahead_q.y + f_tap_y))
  `CT_ASSERT(Lines_A, !f_on_q || (line_x_q == extend(f_pix_q.x0) + f_t_q.x && image_y_q == extend(f_pix_q.y0) + f_t_q.y))
  `CT_ASSERT(TapsLeft_A, !f_on_q || (f_t_q.b + cb_left_q + 8'd1 == f_tap_q.cb && cb_last_q == (cb_left_q == '0) &&
                                     f_t_q.j + kx_left_q + 4'd1 == f_tap_q.kx && kx_last_q == (kx_left_q == '0)))
  `CT_ASSERT(Starts_A, !f_on_q || (
      tap_q.addr == f_first_q.at + f_t_q.at && tap_q.x == f_first_q.x + f_t_q.x && tap_q.y == f_first_q.y + f_t_q.y &&
      step_q.addr == f_first_q.at && step_q.x == f_first_q.x + f_tap_x && step_q.y == f_first_q.y + f_tap_y))
  // The address of a row is its pixel's and its tap's, and it is padding if what the tap sees of the pixel is outside of the picture.
  logic [9:0] f_x, f_y;
  assign f_x = f_p_q.x + f_t_q.x;
  assign f_y = f_p_q.y + f_t_q.y;
  `CT_ASSERT(SeesSum_A, !f_on_q || (seen_q.x == f_x && seen_q.y == f_y))
  `CT_ASSERT(AddressOfRow_A, !f_on_q || addr_o == f_p_q.at + f_t_q.at)
  `CT_ASSERT(PaddingIsOutside_A, !f_on_q || pad_o == !($signed(f_x) >= 0 && $signed(f_x) < $signed({2'b00, f_pix_q.w}) &&
                                                      $signed(f_y) >= 0 && $signed(f_y) < $signed({2'b00, f_pix_q.h}) && f_p_q.images != '0))
