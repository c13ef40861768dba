# SPDX-License-Identifier: Apache-2.0
# NEVER RUN IN VIVADO by us: checked for complete Tcl, and that it names every file that is needed (hdl/cards/tb/test_card_files.py).
#
#   vivado -mode batch -source build_card.tcl -tclargs BOARD [TOP FILE...]
#
# BOARD: au50 or au55c. TOP: a module with the pins of hdl/cards/shell/BOARD.xdc, which holds a bypass_card and a network function; FILEs: its sources. Without
# TOP bypass_card is synthesised out of context, for its resources and its timing.

set card_arguments [lassign $argv board card_top]
set card_parts [dict create au50 xcu50-fsvh2104-2-e au55c xcu55c-fsvh2892-2L-e]
if {![dict exists $card_parts $board]} {
    error "The card must be one of [dict keys $card_parts], not '$board'"
}
set card_part [dict get $card_parts $board]
set card_here [file dirname [file normalize [info script]]]
set card_hdl [file normalize [file join $card_here .. ..]]

create_project -in_memory -part $card_part

# Packages first; the stand-ins of vendor's cells (cards/ip) are not for Vivado.
set card_files [list \
    ${card_hdl}/common/axi_pkg.sv \
    ${card_hdl}/bypass/generated/bypass_registers_pkg.sv \
    ${card_hdl}/bypass/bypass_pkg.sv \
    ${card_hdl}/bypass/generated/bypass_functions_registers_pkg.sv \
    ${card_hdl}/bypass/functions/bypass_functions_pkg.sv]
# A top that holds bypass_kv brings that file and those of hdl/kv.
set card_others [list ${card_hdl}/bypass/bypass_kv.sv]
foreach card_directory {common bypass bypass/port bypass/rx bypass/tx bypass/doorbell bypass/registers bypass/functions cards} {
    foreach card_file [lsort [glob -directory ${card_hdl}/${card_directory} *.sv]] {
        if {$card_file ni $card_files && $card_file ni $card_others} {
            lappend card_files $card_file
        }
    }
}
read_verilog -sv [concat $card_files $card_arguments]

source ${card_here}/build_bridge.tcl
generate_target all [get_ips bypass_pcie_ip]
synth_ip [get_ips bypass_pcie_ip]

# The constraints of the cells between clocks ask for clocks, which exist from implementation on.
foreach card_file [lsort [glob -directory ${card_hdl}/common *.xdc]] {
    read_xdc -unmanaged $card_file
    set_property used_in_synthesis false [get_files $card_file]
}

# SYNTHESIS leaves out what is for simulators and provers only.
set card_options [list -part $card_part -include_dirs ${card_hdl}/common -verilog_define SYNTHESIS]
if {$card_top eq ""} {
    synth_design -top bypass_card -mode out_of_context {*}$card_options
    report_utilization -file bypass_card_${board}_utilization.txt
    report_timing_summary -file bypass_card_${board}_timing.txt
    return
}
read_xdc ${card_here}/${board}.xdc
synth_design -top $card_top {*}$card_options
opt_design
place_design
phys_opt_design
route_design
report_utilization -file ${card_top}_${board}_utilization.txt
report_timing_summary -file ${card_top}_${board}_timing.txt
write_bitstream -force ${card_top}_${board}.bit
