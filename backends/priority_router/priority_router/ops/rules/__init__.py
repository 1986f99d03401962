# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a router, its executor and the models around them: rules over configurations, and findings.

Law: pure and standard library only; configurations in, findings out. Who reads files, asks servers or prints is
elsewhere: ``ops/lint`` checks a repository before it is served, ``ops/server/comparison`` what a server has made of it.
"""
