// SPDX-License-Identifier: Apache-2.0
// The shell's build.tcl reads a file of this name. The plugin decodes its register space itself: hdl/opennic/kv_box_registers.sv.
