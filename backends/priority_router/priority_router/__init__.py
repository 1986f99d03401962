# SPDX-License-Identifier: Apache-2.0
"""A priority lane for one Triton model shared by several classes of traffic."""

__version__ = "0.1.0"
