# SPDX-License-Identifier: Apache-2.0
"""Helpers that several test folders share: model builders, a server to run them, small clients."""
