// SPDX-License-Identifier: Apache-2.0
//
// Where groups of compressed activations lie: pages of 256 units that are taken as they fill and freed by count (docs/compression.md, "Where groups lie";
// host/emu/ct_act_pages.c is the same in C).
//
// Take        take_valid_i with the group's units, 1 to 70, until take_ready_o, in which cycle take_place_o says where it goes, in units from the arena's
//             base, or take_none_o that there is no room. (A take may be given up.)
// Free        free_valid_i with the place of a group until free_ready_o, in which cycle free_bad_o says that no group can be in use there. Frees go first.
// Latency     a take 1 cycle, 2 or 3 where a page is opened; a free 1 cycle in the open page, else 2.
// Reset       reset_i: no page is in use. pages_i, how many there are (at most Pages), must not fall below what was used.
// Account     held_o pages are in use, most_o were at a time.
//
// Parameters
//   Pages  pages at most, a power of two: two block memories of so many words

`default_nettype none
`include "ct_assert.svh"

module ct_act_pages #(
  parameter  int unsigned Pages  = 1024,
  localparam int unsigned PageW  = $clog2(Pages),
  localparam int unsigned PlaceW = PageW + 8
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              reset_i,
  input  logic [PageW:0]    pages_i,
  output logic [PageW:0]    held_o,
  output logic [PageW:0]    most_o,

  input  logic              take_valid_i,
  input  logic [6:0]        take_units_i,
  output logic              take_ready_o,
  output logic              take_none_o,
  output logic [PlaceW-1:0] take_place_o,

  input  logic              free_valid_i,
  input  logic [PlaceW-1:0] free_place_i,
  output logic              free_ready_o,
  output logic              free_bad_o
);

  if (Pages < 2 || Pages > 131072 || (Pages & (Pages - 1)) != 0) begin : g_check_pages
    ct_error_act_pages_must_be_a_power_of_two_of_2_to_131072 u_error ();
  end

  typedef enum logic [1:0] {
    Idle,
    Open,    // the page that was freed last is being read
    Count    // the groups of the page of a free are being read
  } state_e;

  state_e           state_d, state_q;
  logic [PageW:0]   fresh_d, fresh_q;   // the lowest page that was never used
  logic [PageW:0]   tops_d, tops_q;     // freed pages
  logic [PageW:0]   held_d, held_q, most_d, most_q;
  logic             open_d, open_q;     // there is an open page, its groups and units:
  logic [PageW-1:0] page_d, page_q;
  logic [8:0]       groups_d, groups_q, used_d, used_q;

  logic [8:0]       count_mem [0:Pages-1];  // groups of closed pages
  logic [PageW-1:0] freed_mem [0:Pages-1];
  logic [8:0]       count_q;
  logic [PageW-1:0] freed_q;
  logic             count_we, freed_we;
  logic [PageW-1:0] count_at, freed_at, free_page;
  logic [8:0]       count_in;
  logic             fits, mine, opens;
  logic [PageW-1:0] next;

  assign free_page    = free_place_i[PlaceW-1:8];
  assign fits         = open_q && used_q + {2'd0, take_units_i} <= 9'd256;
  assign mine         = open_q && free_page == page_q;
  assign take_place_o = {page_q, used_q[7:0]};
  assign next         = (state_q == Open) ? freed_q : fresh_q[PageW-1:0];
  assign freed_at     = freed_we ? tops_q[PageW-1:0] : PageW'(tops_q - 1'b1);
  assign held_o       = held_q;
  assign most_o       = most_q;
  logic unused_place;
  assign unused_place = ^free_place_i[7:0];

  always_comb begin
    state_d      = state_q;
    fresh_d      = fresh_q;
    tops_d       = tops_q;
    held_d       = held_q;
    open_d       = open_q;
    page_d       = page_q;
    groups_d     = groups_q;
    used_d       = used_q;
    take_ready_o = 1'b0;
    take_none_o  = 1'b0;
    free_ready_o = 1'b0;
    free_bad_o   = 1'b0;
    count_we     = 1'b0;
    count_at     = free_page;
    count_in     = count_q - 9'd1;
    freed_we     = 1'b0;
    opens        = 1'b0;
    unique case (state_q)
      Idle: begin
        if (free_valid_i && mine) begin
          free_ready_o = 1'b1;
          free_bad_o   = groups_q == 9'd0;
          if (groups_q != 9'd0) groups_d = groups_q - 9'd1;
          if (groups_q <= 9'd1) used_d = 9'd0;
        end else if (free_valid_i && {1'b0, free_page} >= fresh_q) begin
          free_ready_o = 1'b1;
          free_bad_o   = 1'b1;
        end else if (free_valid_i) begin
          state_d = Count;
        end else if (take_valid_i && fits) begin
          take_ready_o = 1'b1;
          used_d       = used_q + {2'd0, take_units_i};
          groups_d     = groups_q + 9'd1;
        end else if (take_valid_i && tops_q != '0) begin
          state_d = Open;
        end else if (take_valid_i) begin
          take_none_o  = fresh_q >= pages_i;
          take_ready_o = take_none_o;
          opens        = !take_none_o;
          if (opens) fresh_d = fresh_q + 1'b1;
        end
      end
      Open: begin
        opens   = 1'b1;
        tops_d  = tops_q - 1'b1;
        state_d = Idle;
      end
      default: begin
        free_ready_o = 1'b1;
        free_bad_o   = count_q == 9'd0;
        count_we     = !free_bad_o;
        freed_we     = count_q == 9'd1;
        if (freed_we) begin
          tops_d = tops_q + 1'b1;
          held_d = held_q - 1'b1;
        end
        state_d = Idle;
      end
    endcase
    // The page that was open is closed: its groups are written down.
    if (opens) begin
      count_we = open_q;
      count_at = page_q;
      count_in = groups_q;
      open_d   = 1'b1;
      page_d   = next;
      groups_d = 9'd0;
      used_d   = 9'd0;
      held_d   = held_q + 1'b1;
    end
    most_d = (held_d > most_q) ? held_d : most_q;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q  <= Idle;
      fresh_q  <= '0;
      tops_q   <= '0;
      held_q   <= '0;
      most_q   <= '0;
      open_q   <= 1'b0;
      page_q   <= '0;
      groups_q <= '0;
      used_q   <= '0;
    end else if (reset_i) begin
      state_q  <= Idle;
      fresh_q  <= '0;
      tops_q   <= '0;
      held_q   <= '0;
      most_q   <= '0;
      open_q   <= 1'b0;
      page_q   <= '0;
      groups_q <= '0;
      used_q   <= '0;
    end else begin
      state_q  <= state_d;
      fresh_q  <= fresh_d;
      tops_q   <= tops_d;
      held_q   <= held_d;
      most_q   <= most_d;
      open_q   <= open_d;
      page_q   <= page_d;
      groups_q <= groups_d;
      used_q   <= used_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (count_we) count_mem[count_at] <= count_in;
    count_q <= count_mem[free_page];
  end

  always_ff @(posedge clk_i) begin
    if (freed_we) freed_mem[freed_at] <= free_page;
    freed_q <= freed_mem[freed_at];
  end

  `CT_ASSUME(FreeStays_M, state_q != Count || free_valid_i)
  `CT_ASSERT(UsedInPage_A, used_q <= 9'd256)
`ifdef FORMAL
  `include "ct_act_pages_formal.svh"
`endif

  `CT_COVER(Reopened_C, state_q == Open)

endmodule

`default_nettype wire
