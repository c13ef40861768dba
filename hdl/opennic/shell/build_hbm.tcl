# SPDX-License-Identifier: Apache-2.0
# NEVER RUN IN VIVADO by us. The IP's name and the names of its properties are those that public designs set; their effect is
# described in AMD's PG276. Check the IP's summary in Vivado against kv_hbm_ip.sv before you trust it.
#
# The HBM IP for kv_box_hbm.sv: both stacks of the U55C, 16 GB, eight AXI ports of 256 bits at 250 MHz, the clock of the
# box, so that nothing crosses clocks; global addressing, so that every port reaches all of it.

set kv_hbm kv_hbm_ip
create_ip -name hbm -vendor xilinx.com -library ip -module_name $kv_hbm

set kv_hbm_config [list \
    CONFIG.USER_HBM_DENSITY {16GB} \
    CONFIG.USER_HBM_STACK {2} \
    CONFIG.USER_APB_EN {false} \
    CONFIG.USER_SWITCH_ENABLE_00 {TRUE} \
    CONFIG.USER_SWITCH_ENABLE_01 {TRUE} \
    CONFIG.USER_AXI_CLK_FREQ {250} \
    CONFIG.USER_AXI_CLK1_FREQ {250} \
    CONFIG.USER_CLK_SEL_LIST0 {AXI_04_ACLK} \
    CONFIG.USER_CLK_SEL_LIST1 {AXI_20_ACLK}]

# The ports of kv_box_hbm; all others are off.
set kv_hbm_ports {00 04 08 12 16 20 24 28}
for {set kv_port 0} {$kv_port < 32} {incr kv_port} {
    set kv_name [format %02d $kv_port]
    lappend kv_hbm_config CONFIG.USER_SAXI_${kv_name} [expr {$kv_name in $kv_hbm_ports ? "true" : "false"}]
}
set_property -dict $kv_hbm_config [get_ips $kv_hbm]
