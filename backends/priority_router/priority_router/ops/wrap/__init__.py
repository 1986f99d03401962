# SPDX-License-Identifier: Apache-2.0
"""A router in front of a model that somebody already has: the command ``wrap``.

Law: whatever can be refused is refused before the first byte is written, and a write that fails half-way is undone. Of
the owner's ``config.pbtxt`` only the batching block changes (``ops/pbtxt``).
"""
