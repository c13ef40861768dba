# SPDX-License-Identifier: Apache-2.0
"""route: launches ranks and agents, and advises which processor should route messages."""
