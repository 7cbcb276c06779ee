#!/usr/bin/env python3
"""Runs the GPU's tests under compute-sanitizer, on a machine with a GPU and the tool, and writes results/gpu/sanitizer.csv:

    kernels/sanitize.py TEST_BINARY[:FILTER] ... [--tools racecheck,memcheck,synccheck,initcheck] [--jobs 10] [--seconds 120]
                        [--results FILE] [--commit COMMIT]

TEST_BINARY is what `cargo test --no-run` builds, of the library (`:gpu_`) and of tests/gpu/main.rs; FILTER is a part of the tests'
names. Debug builds are wanted: there kernels' outputs are poisoned. TANDEM_SANITIZER is set, so that tests try less of the
same.

Each test runs by itself: first under Nsight Compute (`ncu`), which tells the kernels that it launches, one test after another,
since the driver serves one profiler at a time; then, if there are any, under each tool, side by side with others. With --results
what is found is added to a file, a line each, as it comes, and what that file has of the same binaries is not done again: so a
run that was ended goes on. Exits with 1
if a tool complains, a test fails, or a kernel of kernels/ is not launched by any test.
"""

import argparse
import collections
import concurrent.futures
import csv
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

KERNELS = pathlib.Path(__file__).resolve().parent
TABLE = KERNELS.parent / "results" / "gpu" / "sanitizer.csv"
CLEAN = re.compile(r"SUMMARY: 0 (errors|hazards)")

# Tests that take nearly all of the device's memory: no other runs beside them.
ALONE = re.compile(r"does_not_fit")
# Tests that make a kernel fail on purpose: a tool would report just that.
FAULTS = re.compile(r"gpu_fault")

Test = collections.namedtuple("Test", "binary name")
# Initcheck leaves the tests' own copies alone: they read whole buffers, and look only at what was written.
OPTIONS = {"initcheck": ["--check-api-memory-access", "no"]}
# What a tool said of a test: whether all is well, its verdict, the seconds that it took, what it printed.
Outcome = collections.namedtuple("Outcome", "is_well verdict seconds output")


class Results:
    """What was found, by test and tool, in a file that outlives the run; without a path it is kept nowhere."""

    def __init__(self, path):
        self.path = path
        self.digests = {}
        self.found = {}
        if path and path.exists():
            for line in path.read_text().splitlines():
                record = json.loads(line)
                self.found[tuple(record.pop("of"))] = record

    def _key(self, test, tool):
        if test.binary not in self.digests:
            with open(test.binary, "rb") as binary:
                self.digests[test.binary] = hashlib.sha256(binary.read()).hexdigest()[:16]
        return (self.digests[test.binary], test.name, tool)

    def get(self, test, tool):
        return self.found.get(self._key(test, tool))

    def seconds_of(self, tests):
        """How long the runs before took with these tests."""
        known = {self._key(test, None)[0] for test in tests}
        return max((record["at_s"] for of, record in self.found.items() if of[0] in known), default=0)

    def add(self, test, tool, record):
        if self.path:
            with open(self.path, "a") as file:
                file.write(json.dumps({"of": self._key(test, tool), **record}) + "\n")


def kernels_of_sources():
    """Returns {kernel: the source that it is in}."""
    found = {}
    for source in sorted(KERNELS.rglob("*.cu")):
        for name in re.findall(r'extern "C" __global__ void(?: __launch_bounds__\([^)]*\))?\s+(\w+)\s*\(', source.read_text()):
            found[name] = str(source.relative_to(KERNELS))
    return found


def tests_of(binaries):
    """All tests that the filters let through, but for ignored ones and those of faults."""
    tests = []
    for binary in binaries:
        path, *test_filter = binary.split(":")
        path = str(pathlib.Path(path).resolve())

        def listed(*arguments):
            done = subprocess.run([path, *test_filter, "--list", *arguments], capture_output=True, text=True, check=True)
            return re.findall(r"^(\S+): test$", done.stdout, re.M)

        ignored = set(listed("--ignored"))
        tests += [Test(path, name) for name in listed() if name not in ignored and not FAULTS.search(name)]
    return tests


def run(tool, test, seconds):
    """Runs a test under a tool; returns (exit status, or None if it ran out of time; all that was printed; seconds)."""
    began = time.time()
    environment = {**os.environ, "TANDEM_REQUIRE_GPU": "1", "TANDEM_SANITIZER": "1"}
    with tempfile.TemporaryDirectory() as scratch:
        # A folder each: ncu keeps a lock there.
        environment["TMPDIR"] = scratch
        command = [*tool, test.binary, test.name, "--exact", "--test-threads", "1"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)
        except subprocess.TimeoutExpired as late:
            texts = [(text or b"").decode(errors="replace") for text in (late.stdout, late.stderr)]
            return None, "".join(texts), time.time() - began
    return done.returncode, done.stdout + done.stderr, time.time() - began


def launches(test, seconds):
    """Returns (the kernels that a test launches, what went wrong if something did)."""
    ncu = ["ncu", "--csv", "--page", "raw", "--kernel-id", ":::1", "--metrics", "launch__grid_size"]
    status, output, _ = run(ncu, test, seconds)
    if status != 0:
        return set(), f"{test.name} under ncu: status {status}\n{output[-3000:]}"
    table = output[output.find('"ID"'):] if '"ID"' in output else ""
    rows = csv.DictReader(io.StringIO(table))
    return {row["Kernel Name"].split("(")[0] for row in rows if (row.get("ID") or "").isdigit()}, None


def check(tool, test, seconds):
    """Returns the Outcome of one test under one tool."""
    sanitizer = ["compute-sanitizer", "--tool", tool, *OPTIONS.get(tool, []), "--error-exitcode", "9"]
    status, output, took = run(sanitizer, test, seconds)
    verdicts = re.findall(r"^=+ (.*SUMMARY.*)$", output, re.M)
    verdict = verdicts[-1] if verdicts else f"stopped after {took:.0f} s" if status is None else "no summary"
    # The line of the test itself may have what the tool prints in its middle.
    has_passed = "test result: ok. 1 passed" in output
    if not has_passed and verdicts:
        crashed = "process didn't terminate successfully" in output
        verdict += ", then the process was ended by a signal" if crashed else ", but the test failed"
    return Outcome(status == 0 and has_passed and CLEAN.search(verdict) is not None, verdict, took, output)


def short(verdict):
    return re.sub(r"^(ERROR|RACECHECK) SUMMARY: ", "", verdict).replace(" displayed (0 errors, 0 warnings)", "")


def machine():
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    device = subprocess.run(query, capture_output=True, text=True)
    name, _, driver = device.stdout.strip().partition(", ")
    version = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True).stdout
    return f"{name} (driver {driver}), compute-sanitizer {(re.findall(r'[Vv]ersion ([0-9.]+)', version) or ['?'])[0]}"


def table(sources, launched, outcomes, commit, seconds):
    """One row per tool and test as CSV, and whether all runs are clean and all kernels were launched."""
    is_clean = all(outcome.is_well for outcome in outcomes.values())
    missing = sorted(set(sources) - set().union(*(launched[test] for test, _ in outcomes)))
    text = io.StringIO()
    command = " ".join(pathlib.Path(part).name for part in sys.argv)
    text.write(f"# command: {command} (in {seconds:.0f} s)\n# commit: {commit}\n# date: {time.strftime('%Y-%m-%d')}\n# machine: {machine()}\n"
               f"# kernels: {len(sources) - len(missing)} of {len(sources)} launched\n")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["tool", "test", "kernels", "is_clean", "verdict", "seconds"])
    for (test, tool), outcome in sorted(outcomes.items(), key=lambda item: (item[0][1], item[0][0].name)):
        cells = [test.name.split("::")[-1], " ".join(sorted(launched[test])), str(outcome.is_well).lower()]
        rows.writerow([tool, *cells, short(outcome.verdict), f"{outcome.seconds:.0f}"])
    for kernel in missing:
        print(f"not launched by any test: {kernel} of {sources[kernel]}", file=sys.stderr)
    return text.getvalue(), is_clean and not missing


def main():
    parser = argparse.ArgumentParser(description="Runs the GPU's tests under compute-sanitizer.")
    parser.add_argument("binaries", nargs="+")
    parser.add_argument("--tools", default="racecheck,memcheck,synccheck,initcheck")
    parser.add_argument("--jobs", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--out", type=pathlib.Path, default=TABLE)
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--commit", default="not recorded", help="the commit of the binaries, for the table")
    arguments = parser.parse_args()
    results = Results(arguments.results)
    tools = arguments.tools.split(",")
    sources = kernels_of_sources()
    tests = tests_of(arguments.binaries)
    began = time.time() - results.seconds_of(tests)
    all_well = bool(tests)
    launched, outcomes = {}, {}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:

        def check_and_tell(test, tool):
            if known := results.get(test, tool):
                outcomes[test, tool] = Outcome(True, known["verdict"], known["seconds"], "")
                return
            outcomes[test, tool] = outcome = check(tool, test, arguments.seconds)
            # What was not well is looked at again.
            if outcome.is_well:
                record = {"verdict": outcome.verdict, "seconds": outcome.seconds, "at_s": time.time() - began}
                results.add(test, tool, record)
            said = f"{tool} {test.name}: {short(outcome.verdict)}, {outcome.seconds:.0f} s"
            print(f"{time.time() - began:4.0f} s: {said}", flush=True)
            if not outcome.is_well:
                print(outcome.output[-4000:], file=sys.stderr)

        def launches_of(test):
            if known := results.get(test, "ncu"):
                launched[test] = set(known["kernels"])
                return True
            launched[test], complaint = launches(test, arguments.seconds)
            if complaint:
                print(complaint, file=sys.stderr)
                return False
            results.add(test, "ncu", {"kernels": sorted(launched[test]), "at_s": time.time() - began})
            return True

        tasks = []
        for test in [test for test in tests if not ALONE.search(test.name)]:
            all_well &= launches_of(test)
            tasks += [pool.submit(check_and_tell, test, tool) for tool in tools if launched[test]]
        for task in tasks:
            task.result()
        for test in [test for test in tests if ALONE.search(test.name)]:
            all_well &= launches_of(test)
            for tool in tools if launched[test] else []:
                check_and_tell(test, tool)
        launching = sum(map(bool, launched.values()))
        print(f"{time.time() - began:4.0f} s: {launching} of {len(tests)} tests launch kernels", flush=True)
    text, is_clean = table(sources, launched, outcomes, arguments.commit, time.time() - began)
    arguments.out.write_text(text)
    print(arguments.out)
    sys.exit(0 if all_well and is_clean and outcomes else 1)


if __name__ == "__main__":
    main()
