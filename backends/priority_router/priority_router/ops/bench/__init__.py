# SPDX-License-Identifier: Apache-2.0
"""The benchmark: the same load on several ways to serve it, side by side."""
