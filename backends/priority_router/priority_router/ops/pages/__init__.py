# SPDX-License-Identifier: Apache-2.0
"""What all pages and charts share: colours, axes, SVG and HTML in parts. Law: pure; values in, text out."""
