# SPDX-License-Identifier: Apache-2.0
# NEVER RUN IN VIVADO by us: checked for complete Tcl, and that it names every file that the plugin needs
# (hdl/opennic/tb/test_shell_files.py). docs/guide/opennic.md says how to use it, and what it rests on.
#
# The shell's script/build.tcl sources this, in the shell's project and in this directory, when it is called with
#   -user_plugin <this directory> -board au55c
# It sets: board, num_cmac_port, num_phys_func, num_qdma, src_dir.

if {$board ne "au55c"} {
    error "The kv plugin takes its memory from the HBM of an Alveo U55C: build with -board au55c, not $board"
}
if {$num_qdma != 1 || $num_phys_func != $num_cmac_port} {
    error "The kv plugin needs -num_qdma 1 and as many physical functions as CMAC ports"
}

# Channels of memory for each core: 1, 2 or 4.
set kv_channels 2

set kv_hdl [file normalize [file join [pwd] .. ..]]

# What the plugin is made of. Packages first; the stand-in of the HBM IP (opennic/ip) is not for Vivado.
set kv_files [list \
    ${kv_hdl}/common/axi_pkg.sv \
    ${kv_hdl}/kv/generated/kv_frame_pkg.sv \
    ${kv_hdl}/kv/generated/kv_registers_pkg.sv \
    ${kv_hdl}/kv/kv_core_pkg.sv \
    ${kv_hdl}/kv/kv_engine_pkg.sv \
    ${kv_hdl}/kv/kv_recovery_pkg.sv \
    ${kv_hdl}/kv/memory/kv_memory_pkg.sv \
    ${kv_hdl}/kv/tx/kv_tx_pkg.sv]
foreach kv_directory {common kv kv/rx kv/engine kv/memory kv/tx kv/recovery kv/registers opennic} {
    foreach kv_file [lsort [glob -directory ${kv_hdl}/${kv_directory} *.sv]] {
        if {$kv_file ni $kv_files} {
            lappend kv_files $kv_file
        }
    }
}
read_verilog -sv $kv_files
# build.tcl sets the property from this list after this script.
lappend include_dirs ${kv_hdl}/common

# SYNTHESIS leaves out what is for simulators and provers only.
set kv_defines [list SYNTHESIS "KV_BOX_CHANNELS=${kv_channels}"]

# In the shell as published, a frame with a wrong FCS leaves its size behind, and every later frame has the size of one before it. kv
# needs sizes only to begin with a value before it is whole; without, it looks at tkeep.
set kv_channel [open ${src_dir}/utility/axi_stream_packet_buffer.sv]
set kv_text [read $kv_channel]
close $kv_channel
if {[regexp {s_axis_tlast && s_axis_tready && drop_in_prog} $kv_text]} {
    puts "WARNING: \[kv\] axi_stream_packet_buffer.sv gives wrong sizes after a frame with a wrong FCS, to the host too:"
    puts "WARNING: \[kv\] see docs/guide/opennic.md for the one-word correction. Building without cut-through of writes."
} else {
    lappend kv_defines KV_BOX_WHOLE_FRAMES
}
set_property verilog_define \
    [concat [get_property verilog_define [current_fileset]] $kv_defines] [current_fileset]

source build_hbm.tcl

# The plugin needs no pins: its clocks are the box's, and hbm_cattrip is the shell's, which ties it to 0. What it needs is the constraints of
# the cells between clocks. They ask for clocks, which exist from implementation on.
foreach kv_file [lsort [glob -directory ${kv_hdl}/common *.xdc]] {
    read_xdc -unmanaged $kv_file
    set_property used_in_synthesis false [get_files $kv_file]
}
