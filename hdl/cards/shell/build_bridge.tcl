# SPDX-License-Identifier: Apache-2.0
# NEVER RUN IN VIVADO by us. The IP's name and the names of its properties are those that public designs set; AMD's PG194 (DMA/Bridge Subsystem for PCI
# Express in AXI Bridge mode) says what they do. Check the IP's ports in Vivado against hdl/cards/ip/bypass_pcie_ip.sv before you trust it.
#
# The PCIe bridge for bypass_card.sv: an endpoint, Gen3 x16, 512 bits at 250 MHz. build_card.tcl sources this with `board` set. If `card_dma` is true, there is
# the DMA engine, too.

# Where the PCIe block of lanes 0 to 15 is, and its quad.
set bridge_places [dict create au50 {PCIE4C_X1Y0 GTY_Quad_227} au55c {PCIE4C_X1Y1 GTY_Quad_227}]
if {![dict exists $bridge_places $board]} {
    error "No PCIe block is known of $board: there are [dict keys $bridge_places]"
}
lassign [dict get $bridge_places $board] bridge_block bridge_quad

set bridge bypass_pcie_ip
create_ip -name xdma -vendor xilinx.com -library ip -version 4.1 -module_name $bridge

set_property -dict [list \
    CONFIG.functional_mode {AXI_Bridge} \
    CONFIG.mode_selection {Advanced} \
    CONFIG.device_port_type {PCI_Express_Endpoint_device} \
    CONFIG.pcie_blk_locn $bridge_block \
    CONFIG.en_gt_selection {true} \
    CONFIG.select_quad $bridge_quad \
    CONFIG.ref_clk_freq {100_MHz} \
    CONFIG.pl_link_cap_max_link_width {X16} \
    CONFIG.pl_link_cap_max_link_speed {8.0_GT/s} \
    CONFIG.axi_addr_width {64} \
    CONFIG.axi_data_width {512_bit} \
    CONFIG.axisten_freq {250} \
    CONFIG.pf0_base_class_menu {Memory_controller} \
    CONFIG.pf0_sub_class_interface_menu {Other_memory_controller} \
    CONFIG.pf0_interrupt_pin {NONE} \
    CONFIG.pf0_msi_enabled {false} \
    CONFIG.pf0_msix_enabled {false}] [get_ips $bridge]

# BAR 0: the registers. BAR 2: the window, prefetchable, so that it may lie above 4 GiB. bypass_bridge.sv has both places.
set_property -dict [list \
    CONFIG.pf0_bar0_64bit {true} \
    CONFIG.pf0_bar0_prefetchable {false} \
    CONFIG.pf0_bar0_scale {Kilobytes} \
    CONFIG.pf0_bar0_size {64} \
    CONFIG.pciebar2axibar_0 {0x0000000001000000} \
    CONFIG.pf0_bar2_enabled {true} \
    CONFIG.pf0_bar2_64bit {true} \
    CONFIG.pf0_bar2_prefetchable {true} \
    CONFIG.pf0_bar2_scale {Megabytes} \
    CONFIG.pf0_bar2_size {8} \
    CONFIG.pciebar2axibar_2 {0x0000000000000000}] [get_ips $bridge]

# BAR 4: the DMA engine's registers and doorbells. Then reads leave as well: dma_axi has up to 32 in flight. Prefetchable, so that doorbells may be write-combined.
if {[info exists card_dma] && $card_dma} {
    set_property -dict [list \
        CONFIG.pf0_bar4_enabled {true} \
        CONFIG.pf0_bar4_64bit {true} \
        CONFIG.pf0_bar4_prefetchable {true} \
        CONFIG.pf0_bar4_scale {Kilobytes} \
        CONFIG.pf0_bar4_size {8} \
        CONFIG.pciebar2axibar_4 {0x0000000002000000} \
        CONFIG.c_s_axi_num_read {32}] [get_ips $bridge]
}

# Requests under way. In: the most that the master bridge can have; reads of 64 bytes at 100 Gbit/s ask for it. Out: writes; without the DMA engine tails only.
set_property -dict [list \
    CONFIG.c_m_axi_num_read {32} \
    CONFIG.c_m_axi_num_write {32} \
    CONFIG.en_axi_slave_if {true} \
    CONFIG.c_s_axi_num_write {32} \
    CONFIG.c_s_axi_supports_narrow_burst {false} \
    CONFIG.xdma_axilite_slave {true}] [get_ips $bridge]

# Out: one aperture over all 64 bits, so that an address on AXI is the bus address. Nothing has to be set when BARs move.
set_property -dict [list \
    CONFIG.axibar_num {1} \
    CONFIG.axibar_0 {0x0000000000000000} \
    CONFIG.axibar_highaddr_0 {0xFFFFFFFFFFFFFFFF} \
    CONFIG.axibar2pciebar_0 {0x0000000000000000}] [get_ips $bridge]
