// SPDX-License-Identifier: Apache-2.0
//
//   `PCIE_PINS(prefix, Lanes)   in a top's list of ports, before others and without a comma, which it brings: a slot's pins
//
// hdl/cards/shell/*.xdc name the pins with the prefix pcie.
`ifndef WHERRY_CARDS_SVH
`define WHERRY_CARDS_SVH

`define PCIE_PINS(prefix, Lanes) \
  input  wire                prefix``_refclk_p_i, \
  input  wire                prefix``_refclk_n_i, \
  input  wire                prefix``_perst_ni, \
  input  wire  [(Lanes)-1:0] prefix``_rx_p_i, \
  input  wire  [(Lanes)-1:0] prefix``_rx_n_i, \
  output logic [(Lanes)-1:0] prefix``_tx_p_o, \
  output logic [(Lanes)-1:0] prefix``_tx_n_o,

`endif
