# SPDX-License-Identifier: Apache-2.0
# NEVER RUN IN VIVADO by us.
#
# Of every sync: the first flip-flop takes a level of another clock at any time.
set_false_path -to [get_pins -quiet -hierarchical -filter {NAME =~ */value_sync_q_reg[0]*/D}]
