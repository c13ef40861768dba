# SPDX-License-Identifier: Apache-2.0
# NEVER RUN IN VIVADO by us. Pins as in the constraints of AMD's OpenNIC shell (constr/au50/pins.xdc).
#
# For a top whose ports have bypass_card's names, with hbm_cattrip_o besides.
# Lanes 0 to 15 have two reference clocks: AF9/AF8 (lanes 0 to 7) and AB9/AB8. The OpenNIC shell takes the former, since the latter is too far from lane 0.
set_property PACKAGE_PIN AF9 [get_ports pcie_refclk_p_i]
set_property PACKAGE_PIN AF8 [get_ports pcie_refclk_n_i]
create_clock -period 10.000 -name pcie_refclk [get_ports pcie_refclk_p_i]

set_property -dict {PACKAGE_PIN AW27 IOSTANDARD LVCMOS18} [get_ports pcie_perst_ni]
set_false_path -from [get_ports pcie_perst_ni]

# The card is switched off if this is high, or open: a top drives it with 0 (AMD's AR 72926).
set_property -dict {PACKAGE_PIN J18 IOSTANDARD LVCMOS18 PULLDOWN TRUE} [get_ports hbm_cattrip_o]

set_operating_conditions -design_power_budget 63
set_property CONFIG_VOLTAGE 1.8 [current_design]
set_property BITSTREAM.CONFIG.CONFIGFALLBACK Enable [current_design]
set_property BITSTREAM.GENERAL.COMPRESS TRUE [current_design]
set_property CONFIG_MODE SPIx4 [current_design]
set_property BITSTREAM.CONFIG.SPI_BUSWIDTH 4 [current_design]
set_property BITSTREAM.CONFIG.CONFIGRATE 63.8 [current_design]
set_property BITSTREAM.CONFIG.EXTMASTERCCLK_EN disable [current_design]
set_property BITSTREAM.CONFIG.SPI_FALL_EDGE YES [current_design]
set_property BITSTREAM.CONFIG.SPI_32BIT_ADDR Yes [current_design]
