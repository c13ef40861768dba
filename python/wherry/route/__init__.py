# SPDX-License-Identifier: Apache-2.0
"""route: the launcher of ranks and agents, and advice on where messages are best routed."""
