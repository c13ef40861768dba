# SPDX-License-Identifier: Apache-2.0
# NEVER RUN IN VIVADO by us: checked for complete Tcl, and that it names every file that is needed (hdl/cards/tb/test_card_files.py).
#
#   vivado -mode batch -source build_card.tcl -tclargs BOARD [dma] [functions | kv | TOP FILE...]
#
# dma: with the DMA engine, for rings in the host's memory. The top's parameter Dma becomes 1 (a TOP must have it), and the bridge has BAR 4. Not with kv.
# BOARD: au50 or au55c. functions: a bitstream of bypass_functions_card. kv: of bypass_kv_card, for the au55c, whose HBM is as large as kv_box_hbm takes it for. TOP: a module
# of the user's with the pins of hdl/cards/shell/BOARD.xdc, which holds a bypass_card and a network function; FILEs: its sources. Without any of these bypass_card is
# synthesised out of context, for its resources and its timing.

set card_arguments [lassign $argv board card_top]
set card_dma [expr {$card_top eq "dma"}]
if {$card_dma} {
    set card_arguments [lassign $card_arguments card_top]
}
set card_parts [dict create au50 xcu50-fsvh2104-2-e au55c xcu55c-fsvh2892-2L-e]
if {![dict exists $card_parts $board]} {
    error "The card must be one of [dict keys $card_parts], not '$board'"
}
set card_part [dict get $card_parts $board]
set card_kv [expr {$card_top eq "kv"}]
if {$card_kv && $board ne "au55c"} {
    error "kv takes its memory from the HBM of an Alveo U55C: build it for au55c, not $board"
}
if {$card_kv && $card_dma} {
    error "kv has no place for the DMA engine: leave out dma, or kv"
}
if {$card_top in {functions kv}} {
    set card_top bypass_${card_top}_card
}
set card_here [file dirname [file normalize [info script]]]
set card_hdl [file normalize [file join $card_here .. ..]]

create_project -in_memory -part $card_part

# Packages first; the stand-ins of vendor's cells (cards/ip, opennic/ip) are not for Vivado.
set card_files [list \
    ${card_hdl}/common/axi_pkg.sv \
    ${card_hdl}/bypass/generated/bypass_registers_pkg.sv \
    ${card_hdl}/bypass/bypass_pkg.sv \
    ${card_hdl}/bypass/generated/bypass_functions_registers_pkg.sv \
    ${card_hdl}/bypass/functions/bypass_functions_pkg.sv \
    ${card_hdl}/dma/generated/dma_registers_pkg.sv \
    ${card_hdl}/dma/control/dma_control_pkg.sv \
    ${card_hdl}/dma/data/dma_data_pkg.sv \
    ${card_hdl}/dma/dma_pkg.sv \
    ${card_hdl}/kv/generated/kv_frame_pkg.sv \
    ${card_hdl}/kv/generated/kv_registers_pkg.sv \
    ${card_hdl}/kv/kv_core_pkg.sv \
    ${card_hdl}/kv/kv_engine_pkg.sv \
    ${card_hdl}/kv/kv_recovery_pkg.sv \
    ${card_hdl}/kv/memory/kv_memory_pkg.sv \
    ${card_hdl}/kv/tx/kv_tx_pkg.sv]
set card_directories {common bypass bypass/port bypass/rx bypass/tx bypass/doorbell bypass/registers bypass/functions cards}
lappend card_directories dma dma/axi dma/control dma/data
lappend card_directories kv kv/rx kv/engine kv/memory kv/tx kv/recovery kv/registers
foreach card_directory $card_directories {
    foreach card_file [lsort [glob -directory ${card_hdl}/${card_directory} *.sv]] {
        if {$card_file ni $card_files} {
            lappend card_files $card_file
        }
    }
}
foreach card_file {kv_box_hbm kv_box_reset kv_box_watch} {
    lappend card_files ${card_hdl}/opennic/${card_file}.sv
}
read_verilog -sv [concat $card_files $card_arguments]

source ${card_here}/build_bridge.tcl
generate_target all [get_ips bypass_pcie_ip]
synth_ip [get_ips bypass_pcie_ip]
if {$card_kv} {
    source ${card_hdl}/opennic/shell/build_hbm.tcl
    generate_target all [get_ips kv_hbm_ip]
    synth_ip [get_ips kv_hbm_ip]
}

# The constraints of the cells between clocks ask for clocks, which exist from implementation on.
foreach card_file [lsort [glob -directory ${card_hdl}/common *.xdc]] {
    read_xdc -unmanaged $card_file
    set_property used_in_synthesis false [get_files $card_file]
}

# SYNTHESIS leaves out what is for simulators and provers only.
set card_options [list -part $card_part -include_dirs [list ${card_hdl}/common ${card_hdl}/cards ${card_hdl}/dma] -verilog_define SYNTHESIS]
if {$card_dma} {
    lappend card_options -generic {Dma=1'b1}
}
if {$card_top eq ""} {
    synth_design -top bypass_card -mode out_of_context {*}$card_options
    report_utilization -file bypass_card_${board}_utilization.txt
    report_timing_summary -file bypass_card_${board}_timing.txt
    return
}
read_xdc ${card_here}/${board}.xdc
if {$card_kv} {
    read_xdc ${card_here}/${board}_kv.xdc
}
synth_design -top $card_top {*}$card_options
opt_design
place_design
phys_opt_design
route_design
report_utilization -file ${card_top}_${board}_utilization.txt
report_timing_summary -file ${card_top}_${board}_timing.txt
write_bitstream -force ${card_top}_${board}.bit
