# SPDX-License-Identifier: Apache-2.0
# The Vivado commands that hdl/opennic/shell uses, as they say what they were asked for; and the variables of the shell's build.tcl.
# Run as: tclsh vivado.tcl SCRIPT BOARD PORTS FUNCTIONS SRC_DIR, in the script's directory.
proc report {args} {
    puts $args
}
proc current_fileset {} {
    return fileset
}
proc get_ips {name} {
    return ip/$name
}
proc get_files {name} {
    return file/$name
}
proc get_pins {args} {
    return pins/[lindex $args end]
}
proc get_cells {args} {
    return [list cells/[lindex $args end]]
}
proc get_clocks {args} {
    return clock/[lindex $args end]
}
proc get_property {args} {
    return "[lindex $args end-1]-before"
}
foreach command {
    read_verilog read_xdc create_ip set_property set_false_path set_max_delay set_bus_skew
} {
    interp alias {} $command {} report $command
}
lassign $argv script board num_cmac_port num_phys_func src_dir
set num_qdma 1
set include_dirs {}
source $script
report include_dirs $include_dirs
