# SPDX-License-Identifier: Apache-2.0
"""The command ``lint``: model repositories from the disk to a report for people, JSON or SARIF.

Law: what is wrong is decided by ``ops/rules``, and what a config.pbtxt says by ``ops/pbtxt``; here files are found and
read, findings get their lines, and reports are written.
"""
