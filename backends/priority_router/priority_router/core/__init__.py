# SPDX-License-Identifier: Apache-2.0
"""The scheduler: who runs next and with whom.

Law: pure. No I/O, no clock, no threads, no logging, no randomness; time comes in as an argument and decisions go out as
values. Read in this order: ``values`` (the words), ``scheduler`` (the one mutable object), then its parts: ``lanes``
(who waits, in which order of levels), ``lines`` (in which order inside a class), ``shares`` (who must come first all
the same), ``batching`` (who runs together), ``service_times`` (what was learned) and ``curve`` (what follows from it),
``executor_model`` (what is believed to run now, and when to send ahead), ``deadlines`` (who has waited too long),
``recent`` (what was worst of late).
"""
