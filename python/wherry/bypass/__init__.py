# SPDX-License-Identifier: Apache-2.0
"""bypass: an FPGA drives a commodity NIC; the host sets up, and can then be stopped."""
