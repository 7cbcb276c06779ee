"""One server that takes queries as they come, in SimPy: the question that `tandem bench --what simulator` also asks of itself.

Reads from standard input, as JSON: `queries`, `rate_qps`, `seed`, `parts` (of the run, whose mean delays are told) and
`services_us`, of which each query has one at random. Writes JSON: `seconds` that the simulation took, `peak_bytes` of memory
or null, `means_ms` by part.
"""

import json
import random
import sys
import time

import simpy


def source(env, server, question, delays):
    """Queries come at random."""
    rng = random.Random(question["seed"])
    rate_a_us = question["rate_qps"] / 1e6
    services_us = question["services_us"]
    for number in range(question["queries"]):
        yield env.timeout(rng.expovariate(rate_a_us))
        env.process(query(env, server, rng.choice(services_us), number, delays))


def query(env, server, service_us, number, delays):
    """A query waits for its turn and is served."""
    arrived = env.now
    with server.request() as turn:
        yield turn
        yield env.timeout(service_us)
    part = number * len(delays) // delays.queries
    delays[part][0] += env.now - arrived
    delays[part][1] += 1


class Delays(list):
    """By part of the run: the sum of delays, and how many."""

    def __init__(self, parts, queries):
        super().__init__([0.0, 0] for _ in range(parts))
        self.queries = queries


def peak_bytes():
    """The most memory that this process has had; none where the system does not tell. (`getrusage` counts what started it.)"""
    try:
        with open("/proc/self/status") as status:
            kibibytes = (line.split()[1] for line in status if line.startswith("VmHWM:"))
            return next((1024 * int(number) for number in kibibytes), None)
    except OSError:
        return None


def main():
    question = json.load(sys.stdin)
    delays = Delays(question["parts"], question["queries"])
    env = simpy.Environment()
    server = simpy.Resource(env, capacity=1)
    began = time.perf_counter()
    env.process(source(env, server, question, delays))
    env.run()
    seconds = time.perf_counter() - began
    means_ms = [total / count / 1e3 for total, count in delays if count]
    json.dump({"seconds": seconds, "peak_bytes": peak_bytes(), "means_ms": means_ms}, sys.stdout)


main()
