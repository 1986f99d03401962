# SPDX-License-Identifier: Apache-2.0
"""Starting and stopping a tritonserver with the router in it."""

from priority_router.ops.server.process import Server

__all__ = ["Server"]
