# SPDX-License-Identifier: Apache-2.0
"""The agent of this machine: its session file, its process, its metrics. Knows no service."""
