# SPDX-License-Identifier: Apache-2.0
# The shell's build.tcl sources a file of this name. The plugin decodes its register space itself and needs no crossbar.
