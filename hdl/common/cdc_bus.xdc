# SPDX-License-Identifier: Apache-2.0
# NEVER RUN IN VIVADO by us.
#
# Of every cdc_bus: m_valid comes two or more cycles of m_clk_i after the payload, so a payload that arrives within one cycle is in time.
# sync.xdc has the toggles.
foreach bus [get_cells -quiet -hierarchical -filter {REF_NAME == cdc_bus || ORIG_REF_NAME == cdc_bus}] {
    set m_clk [get_clocks -quiet -of_objects [get_pins "$bus/m_clk_i"]]
    set_max_delay -datapath_only -from [get_cells -quiet -hierarchical -filter "NAME =~ $bus/payload_q_reg*"] \
        [get_property -min PERIOD $m_clk]
}
