# SPDX-License-Identifier: Apache-2.0
# NEVER RUN IN VIVADO by us.
#
# The plugin needs no pins: its clocks are the box's, and hbm_cattrip is the shell's, which ties it to 0.
# axis_aclk and axil_aclk are related clocks (the shell makes the second of the first), so the toggles between them are timed, which
# they can bear. What crosses to and from the HBM's reset clock, 100 MHz of the same source, is a level through two flip-flops.
set_false_path -to [get_pins -quiet -hierarchical -filter {NAME =~ *kv_hbm_inst/axi_up_sync_q_reg[0]/D}]
set_false_path -to [get_pins -quiet -hierarchical -filter {NAME =~ *kv_hbm_inst/complete_sync_q_reg[0]*/D}]
