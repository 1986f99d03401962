# SPDX-License-Identifier: Apache-2.0
"""The scheduler under a virtual clock: a modelled executor, its traffic, and an oracle to compare with.

Law: nothing here reads a clock, sleeps or starts a thread; every draw comes from a seeded generator, so a run with the
same seed gives the same numbers.
"""
