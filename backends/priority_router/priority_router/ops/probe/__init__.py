# SPDX-License-Identifier: Apache-2.0
"""Asks a running server for one real answer: readiness endpoints stay green when a model's process is dead."""
