# SPDX-License-Identifier: Apache-2.0
"""bypass: an FPGA drives a commodity NIC. The host sets up both, and can then be stopped."""
