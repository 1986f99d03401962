# SPDX-License-Identifier: Apache-2.0
"""A model's ``config.pbtxt``: what it means, where each part stands, and edits that leave the rest byte for byte.

Law: what a file means is decided by `google.protobuf.text_format` and Triton's own definitions alone. The scanner here
only knows where things stand; a file where it, protobuf in Python and the parser of a server could disagree is refused.
"""
