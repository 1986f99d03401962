# SPDX-License-Identifier: Apache-2.0
"""The tools people run: server, probe, installation, benchmark and simulator. Nothing here runs inside Triton."""
