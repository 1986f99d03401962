# SPDX-License-Identifier: Apache-2.0
"""Long runs: what a router and its server are like after an hour of everything, and under far too much."""
