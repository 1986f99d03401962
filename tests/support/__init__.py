# SPDX-License-Identifier: Apache-2.0
"""What several test folders share: model builders, a server to run them, small clients."""
