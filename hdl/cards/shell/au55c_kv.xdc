# SPDX-License-Identifier: Apache-2.0
# NEVER RUN IN VIVADO by us. What bypass_kv_card has besides the pins of au55c.xdc: the reference clock of the HBM, SYSCLK3 (BK43/BK44 in the OpenNIC shell's
# board_files/Xilinx/au55c/part0_pins.xml).
set_property -dict {PACKAGE_PIN BK43 IOSTANDARD LVDS} [get_ports hbm_refclk_p_i]
set_property -dict {PACKAGE_PIN BK44 IOSTANDARD LVDS} [get_ports hbm_refclk_n_i]
create_clock -period 10.000 -name hbm_refclk [get_ports hbm_refclk_p_i]
