# SPDX-License-Identifier: Apache-2.0
# NEVER RUN IN VIVADO by us.
#
# Of every cdc_fifo: of the bits of a pointer, the one that changes first must arrive first, so their ways differ by less than a cycle of the
# pointer's clock. sync.xdc takes the same ways out of timing analysis, which set_bus_skew does not mind. A beat is read from the RAM
# two or more cycles of m_clk_i after it was written.
foreach fifo [get_cells -quiet -hierarchical -filter {REF_NAME == cdc_fifo || ORIG_REF_NAME == cdc_fifo}] {
    set s_period [get_property -min PERIOD [get_clocks -quiet -of_objects [get_pins "$fifo/s_clk_i"]]]
    set m_period [get_property -min PERIOD [get_clocks -quiet -of_objects [get_pins "$fifo/m_clk_i"]]]
    set_bus_skew -from [get_cells -quiet -hierarchical -filter "NAME =~ $fifo/write_gray_q_reg*"] \
        -to [get_cells -quiet -hierarchical -filter "NAME =~ $fifo/i_write/value_sync_q_reg*"] $s_period
    set_bus_skew -from [get_cells -quiet -hierarchical -filter "NAME =~ $fifo/read_gray_q_reg*"] \
        -to [get_cells -quiet -hierarchical -filter "NAME =~ $fifo/i_read/value_sync_q_reg*"] $m_period
    set_max_delay -datapath_only -from [get_cells -quiet -hierarchical -filter "NAME =~ $fifo/i_ram/memory_reg*"] \
        -to [get_cells -quiet -hierarchical -filter "NAME =~ $fifo/payload_q_reg*"] $m_period
}
