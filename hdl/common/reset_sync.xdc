# SPDX-License-Identifier: Apache-2.0
# NEVER RUN IN VIVADO by us.
#
# Of every reset_sync: the reset presets the flip-flops at any time. Its end reaches only the first of them as a level.
set_false_path -to [get_pins -quiet -hierarchical -filter {NAME =~ */reset_sync_q_reg[*]/PRE}]
