# SPDX-License-Identifier: Apache-2.0
"""The router's adapter inside Triton: the only lock, threads and clock; Triton tensors to core values and back.

Law: feeds, drains and acts. Whatever decides belongs in ``core``.
"""
