# SPDX-License-Identifier: Apache-2.0
"""The demonstration: real files, a real model, two classes of traffic, with and without priority."""
