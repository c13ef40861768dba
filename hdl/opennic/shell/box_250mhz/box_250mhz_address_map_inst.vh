// SPDX-License-Identifier: Apache-2.0
// NOT BUILT WITH VIVADO by us; linted inside a module with the box's ports (hdl/opennic/tb/test_shell_files.py).
//
// The shell includes this in its box_250mhz. The plugin decodes the box's register space itself (kv_box_registers), so
// there is no address map to instantiate. The box's own reset, internal_box_rstn, has nobody to reset.
