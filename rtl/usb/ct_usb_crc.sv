// SPDX-License-Identifier: Apache-2.0
//
// One step of the CRC-32 of Ethernet and zlib (polynomial 0x04c11db7 reflected): what the register is after one more byte, least
// significant bit first. It begins with all ones and goes onto the wire inverted, least significant byte first. Combinational.

`default_nettype none

module ct_usb_crc (
  input  logic [31:0] crc_i,
  input  logic [7:0]  byte_i,
  output logic [31:0] crc_o
);

  // What each bit of the byte that leaves the register adds: the register after eight steps from that bit alone.
  localparam logic [255:0] Table = {32'hedb88320, 32'h76dc4190, 32'h3b6e20c8, 32'h1db71064,
                                    32'h0edb8832, 32'h076dc419, 32'hee0e612c, 32'h77073096};

  logic [7:0]  out;
  logic [31:0] sum;
  assign out = crc_i[7:0] ^ byte_i;

  always_comb begin
    sum = '0;
    for (int i = 0; i < 8; i++) sum = sum ^ (Table[32*i +: 32] & {32{out[i]}});
  end

  assign crc_o = {8'd0, crc_i[31:8]} ^ sum;

endmodule

`default_nettype wire
