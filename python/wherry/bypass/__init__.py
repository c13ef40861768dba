# SPDX-License-Identifier: Apache-2.0
"""bypass: an FPGA drives a commodity NIC. The host sets up the FPGA and the NIC. After that, the host process can be
stopped."""
