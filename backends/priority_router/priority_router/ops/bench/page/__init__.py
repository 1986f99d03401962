# SPDX-License-Identifier: Apache-2.0
"""A run as one HTML page, made from its document alone (docs/bench.schema.json). Law: document in, HTML out."""
