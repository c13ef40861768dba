# SPDX-License-Identifier: Apache-2.0
# The Vivado commands that hdl/cards/shell uses, as they say what they were asked for. Run as: tclsh vivado_card.tcl SCRIPT ARGUMENT...
proc report {args} {
    puts $args
}
foreach command {
    create_project create_ip create_clock read_verilog read_xdc set_property set_false_path set_operating_conditions generate_target synth_ip
    synth_design opt_design place_design phys_opt_design route_design report_utilization report_timing_summary write_bitstream
} {
    interp alias {} $command {} report $command
}
foreach command {get_ips get_files get_ports current_design} {
    proc $command {args} [format {return %s/[lindex $args 0]} $command]
}
set argv [lassign $argv script]
# `return` at the top of a script ends it.
source $script
