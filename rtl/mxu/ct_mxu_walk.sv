// SPDX-License-Identifier: Apache-2.0
//
// The rows of A of one context's MM with Walk: the address of each, or that it is padding (docs/programming.md, "Walks"). Beside ct_mxu_agen, which
// counts rows, tiles, columns and k steps and says when the next row is due.
//
//   pixel, seen   the pixel of the row that is due, and what its tap sees: address and coordinates of the word
//   first         the pixel that a tile (ATrans) or a step's rows begin with
//   tap           what the tap sees of that pixel; what follows a tap is a step from here
//   step          what the first tap sees of it
//   ahead         ATrans: first and step of the k step after this one, known when the first tile's 16 pixels have been walked
//
// Whether X or Y is a line's or an image's last is kept beside each pixel, and found as a step is made: so no comparison stands before an
// adder. Everything is one addition from a register to a register. pad_o compares two registered coordinates with W and H.
//
// Commands    wpix_i, wtap_i (pulses) set the walk of the MMs that begin later, with the command in cmd_i; so what an MM goes by is a copy, taken as it
//             begins. load_i begins an MM: in the cycle of the last row of the one before, or later.
// Rows        addr_o and pad_o are those of the row that is due. next_i: it has been asked for; with row_last_i, m_last_i, n_last_i: it is the last of
//             its tile, its tile the last row tile, of the last column of the k step. tile0_i: its tile is the first of the k step.
//             What lies between next_i with all three and the next one belongs to the next k step.

`default_nettype none
`include "ct_assert.svh"

module ct_mxu_walk (
  input  logic         clk_i,

  input  logic         wpix_i,
  input  logic         wtap_i,
  input  logic [255:0] cmd_i,

  input  logic         load_i,
  input  logic         trans_i,
  input  logic [19:0]  a_i,
  input  logic [25:0]  pos_i,

  input  logic         next_i,
  input  logic         row_last_i,
  input  logic         m_last_i,
  input  logic         n_last_i,
  input  logic         tile0_i,

  output logic [19:0]  addr_o,
  output logic         pad_o
);

  typedef struct packed {
    logic [9:0] x, y;
    logic       x_last, y_last;
    logic [7:0] images;
  } pixel_t;

  typedef struct packed {
    logic [19:0] addr;
    logic [9:0]  x, y;
  } seen_t;

  typedef struct packed {
    logic [19:0] ax, ay, ai;
    logic [9:0]  x0, xe, y0, ye;
    logic [3:0]  sx, sy;
    logic [7:0]  w, h;
  } pixels_t;

  typedef struct packed {
    logic [19:0] tc, tx, ty;
    logic [9:0]  x, y;
    logic [5:0]  dx, dy;
    logic [3:0]  kx_m1;
    logic [7:0]  cb_m1;
  } taps_t;

  function automatic logic [9:0] extend(input logic [8:0] x);
    extend = {x[8], x};
  endfunction

  // --- The walk: as the last commands say, and as the MM goes --------------------------------------------------------------------

  pixels_t    said_q, pixels_q;
  taps_t      said_taps_q, taps_q;
  logic       x_one_q, y_one_q;        // a line, an image has one pixel or line

  always_ff @(posedge clk_i) begin
    if (wpix_i) begin
      said_q.ax <= cmd_i[ct_pkg::WpixAXLsb +: 20];
      said_q.ay <= cmd_i[ct_pkg::WpixAYLsb +: 20];
      said_q.ai <= cmd_i[ct_pkg::WpixAILsb +: 20];
      said_q.x0 <= extend(cmd_i[ct_pkg::WpixX0Lsb +: 9]);
      said_q.xe <= extend(cmd_i[ct_pkg::WpixXELsb +: 9]);
      said_q.y0 <= extend(cmd_i[ct_pkg::WpixY0Lsb +: 9]);
      said_q.ye <= extend(cmd_i[ct_pkg::WpixYELsb +: 9]);
      said_q.sx <= cmd_i[ct_pkg::WpixSXLsb +: 4];
      said_q.sy <= cmd_i[ct_pkg::WpixSYLsb +: 4];
      said_q.w  <= cmd_i[ct_pkg::WpixWLsb +: 8];
      said_q.h  <= cmd_i[ct_pkg::WpixHLsb +: 8];
    end
    if (wtap_i) begin
      said_taps_q.tc    <= cmd_i[ct_pkg::WtapTCLsb +: 20];
      said_taps_q.tx    <= cmd_i[ct_pkg::WtapTXLsb +: 20];
      said_taps_q.ty    <= cmd_i[ct_pkg::WtapTYLsb +: 20];
      said_taps_q.x     <= cmd_i[ct_pkg::WtapXLsb +: 10];
      said_taps_q.y     <= cmd_i[ct_pkg::WtapYLsb +: 10];
      said_taps_q.dx    <= cmd_i[ct_pkg::WtapDXLsb +: 6];
      said_taps_q.dy    <= cmd_i[ct_pkg::WtapDYLsb +: 6];
      said_taps_q.kx_m1 <= cmd_i[ct_pkg::WtapKXLsb +: 4] - 4'd1;
      said_taps_q.cb_m1 <= cmd_i[ct_pkg::WtapCBLsb +: 8] - 8'd1;
    end
    if (load_i) begin
      pixels_q   <= said_q;
      taps_q     <= said_taps_q;
      x_one_q    <= said_q.x0 == said_q.xe;
      y_one_q    <= said_q.y0 == said_q.ye;
      // Here, what comes before the last.
      pixels_q.xe <= said_q.xe - {{6{said_q.sx[3]}}, said_q.sx};
      pixels_q.ye <= said_q.ye - {{6{said_q.sy[3]}}, said_q.sy};
    end
  end

  // --- Where the MM is ------------------------------------------------------------------------------------------------------

  logic        trans_q;
  pixel_t      pixel_q, first_q, ahead_pixel_q, pixel_next, pixel_start, ahead_pixel;
  seen_t       seen_q, tap_q, step_q, ahead_seen_q, seen_next, tap_next, seen_start, ahead_seen;
  logic [9:0]  line_x_q, image_y_q;     // what the tap sees of a line's first pixel, of an image's first line
  logic [3:0]  kx_left_q;               // taps along X, channel blocks after this one
  logic [7:0]  cb_left_q;
  logic        kx_last_q, cb_last_q;
  logic [9:0]  line_x_start, image_y_start, dx, dy;
  logic [3:0]  kx_start;
  logic [7:0]  cb_start;

  // The pixel after this one. All of it is of this tap.
  always_comb begin
    pixel_next = pixel_q;
    seen_next  = seen_q;
    if (!pixel_q.x_last) begin
      pixel_next.x      = pixel_q.x + {{6{pixels_q.sx[3]}}, pixels_q.sx};
      pixel_next.x_last = pixel_q.x == pixels_q.xe;
      seen_next.x       = seen_q.x + {{6{pixels_q.sx[3]}}, pixels_q.sx};
    end else begin
      pixel_next.x      = pixels_q.x0;
      pixel_next.x_last = x_one_q;
      seen_next.x       = line_x_q;
      if (!pixel_q.y_last) begin
        pixel_next.y      = pixel_q.y + {{6{pixels_q.sy[3]}}, pixels_q.sy};
        pixel_next.y_last = pixel_q.y == pixels_q.ye;
        seen_next.y       = seen_q.y + {{6{pixels_q.sy[3]}}, pixels_q.sy};
      end else begin
        pixel_next.y      = pixels_q.y0;
        pixel_next.y_last = y_one_q;
        seen_next.y       = image_y_q;
        pixel_next.images = pixel_q.images - 8'(pixel_q.images != '0);
      end
    end
    seen_next.addr = seen_q.addr + (!pixel_q.x_last ? pixels_q.ax : !pixel_q.y_last ? pixels_q.ay : pixels_q.ai);
  end

  // The tap after this one, of the first pixel.
  assign dx = {{4{taps_q.dx[5]}}, taps_q.dx};
  assign dy = {{4{taps_q.dy[5]}}, taps_q.dy};
  always_comb begin
    tap_next.addr = tap_q.addr + (!cb_last_q ? taps_q.tc : !kx_last_q ? taps_q.tx : taps_q.ty);
    tap_next.x    = !cb_last_q ? tap_q.x : !kx_last_q ? tap_q.x + dx : step_q.x;
    tap_next.y    = cb_last_q && kx_last_q ? tap_q.y + dy : tap_q.y;
  end

  // Of the first tap: of this MM, or of one that begins.
  assign line_x_start  = (load_i ? said_q.x0 : pixels_q.x0) + (load_i ? said_taps_q.x : taps_q.x);
  assign image_y_start = (load_i ? said_q.y0 : pixels_q.y0) + (load_i ? said_taps_q.y : taps_q.y);
  assign kx_start      = load_i ? said_taps_q.kx_m1 : taps_q.kx_m1;
  assign cb_start      = load_i ? said_taps_q.cb_m1 : taps_q.cb_m1;

  // An MM's start.
  always_comb begin
    pixel_start.x      = extend(pos_i[8:0]);
    pixel_start.y      = extend(pos_i[17:9]);
    pixel_start.images = pos_i[25:18];
    pixel_start.x_last = pixel_start.x == said_q.xe;
    pixel_start.y_last = pixel_start.y == said_q.ye;
    seen_start.addr    = a_i;
    seen_start.x       = pixel_start.x + said_taps_q.x;
    seen_start.y       = pixel_start.y + said_taps_q.y;
  end

  assign ahead_pixel = tile0_i ? pixel_next : ahead_pixel_q;
  assign ahead_seen  = tile0_i ? seen_next : ahead_seen_q;

  // What the row asked for was the last of: nothing, or the pixels before the walk goes back to the first ones.
  logic lap, new_tap, again, new_step;
  assign lap      = row_last_i && (trans_q || m_last_i);
  assign new_tap  = trans_q ? !m_last_i : n_last_i;   // at the next tap
  assign again    = trans_q && !n_last_i;             // else: from the first tap on
  assign new_step = trans_q && n_last_i;              // else: over the next pixels

  always_ff @(posedge clk_i) begin
    if (next_i) begin
      pixel_q <= pixel_next;
      seen_q  <= seen_next;
      if (row_last_i && tile0_i) begin
        ahead_pixel_q <= pixel_next;
        ahead_seen_q  <= seen_next;
      end
      if (lap) begin
        pixel_q <= first_q;
        if (new_tap) begin
          seen_q    <= tap_next;
          tap_q     <= tap_next;
          cb_left_q <= cb_last_q ? taps_q.cb_m1 : cb_left_q - 8'd1;
          cb_last_q <= cb_last_q ? taps_q.cb_m1 == '0 : cb_left_q == 8'd1;
          if (cb_last_q) begin
            kx_left_q <= kx_last_q ? taps_q.kx_m1 : kx_left_q - 4'd1;
            kx_last_q <= kx_last_q ? taps_q.kx_m1 == '0 : kx_left_q == 4'd1;
            line_x_q  <= kx_last_q ? line_x_start : line_x_q + dx;
            if (kx_last_q) image_y_q <= image_y_q + dy;
          end
        end else if (again) begin
          seen_q <= step_q;
          tap_q  <= step_q;
        end else if (new_step) begin
          pixel_q <= ahead_pixel;
          first_q <= ahead_pixel;
          seen_q  <= ahead_seen;
          tap_q   <= ahead_seen;
          step_q  <= ahead_seen;
        end else begin
          seen_q <= tap_q;
        end
      end
    end
    if (load_i) begin
      trans_q <= trans_i;
      pixel_q <= pixel_start;
      first_q <= pixel_start;
      seen_q  <= seen_start;
      tap_q   <= seen_start;
      step_q  <= seen_start;
    end
    if (load_i || (next_i && lap && trans_q && m_last_i)) begin
      kx_left_q <= kx_start;
      kx_last_q <= kx_start == '0;
      cb_left_q <= cb_start;
      cb_last_q <= cb_start == '0;
      line_x_q  <= line_x_start;
      image_y_q <= image_y_start;
    end
  end

  assign addr_o = seen_q.addr;
  assign pad_o  = seen_q.x[9:8] != 2'b00 || seen_q.x[7:0] >= pixels_q.w || seen_q.y[9:8] != 2'b00 || seen_q.y[7:0] >= pixels_q.h || pixel_q.images == '0;

  logic unused_bits;
  assign unused_bits = ^cmd_i;

`ifdef FORMAL
  `include "ct_mxu_walk_formal.svh"
`endif

endmodule

`default_nettype wire
