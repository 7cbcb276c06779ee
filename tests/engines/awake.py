#!/usr/bin/env python3
"""Keeps the cores of a virtual machine from being halted, since a busy host wakes them late.

Usage: awake.py CORE... Each gets a process that runs only when nothing else wants the core.
"""

import os
import sys

for core in map(int, sys.argv[1:-1]):
    if os.fork() == 0:
        break
else:
    core = int(sys.argv[-1])
os.sched_setaffinity(0, {core})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
parent = os.getppid()
while os.getppid() == parent:
    pass
