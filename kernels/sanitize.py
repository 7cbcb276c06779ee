#!/usr/bin/env python3
"""Runs the GPU's tests under compute-sanitizer, on a machine with a GPU and the tool, and writes docs/sanitizer.md:

    kernels/sanitize.py TEST_BINARY[:FILTER] ... [--tools memcheck,racecheck,synccheck] [--seconds 300]

TEST_BINARY is what `cargo test --no-run` builds, of the library (`:gpu_`) and of tests/gpu.rs; FILTER is a part of the tests' names.
Exits with 1 if a tool complains, a test fails or none runs.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent / "docs" / "sanitizer.md"


def run(tool, binary, test_filter, seconds):
    """Returns (tests that passed, the tool's verdict, seconds, whether all is well)."""
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", binary, *test_filter, "--test-threads", "1"]
    began = time.time()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env={**os.environ, "TANDEM_REQUIRE_GPU": "1"})
    except subprocess.TimeoutExpired as late:
        text = (late.stdout or b"").decode(errors="replace")
        return re.findall(r"^test (\S+) \.\.\. ok", text, re.M), f"stopped after {seconds} s", seconds, False
    tests = re.findall(r"^test (\S+) \.\.\. ok", done.stdout, re.M)
    verdict = re.findall(r"^=+ (.*SUMMARY.*)$", done.stdout + done.stderr, re.M)
    verdict = verdict[-1] if verdict else "no summary"
    is_well = done.returncode == 0 and tests and re.search(r"\b0 (errors|hazards)", verdict)
    if not is_well:
        print(done.stdout[-3000:], done.stderr[-3000:], file=sys.stderr)
    return tests, verdict, time.time() - began, bool(is_well)


def main():
    parser = argparse.ArgumentParser(description="Runs the GPU's tests under compute-sanitizer.")
    parser.add_argument("binaries", nargs="+")
    parser.add_argument("--tools", default="memcheck,racecheck,synccheck")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--out", type=pathlib.Path, default=DOCUMENT)
    arguments = parser.parse_args()
    rows, ran, all_well = [], set(), True
    for tool in arguments.tools.split(","):
        for binary in arguments.binaries:
            path, *test_filter = binary.split(":")
            tests, verdict, seconds, is_well = run(tool, str(pathlib.Path(path).resolve()), test_filter, arguments.seconds)
            rows.append(f"| {tool} | {len(tests)} | {verdict} | {seconds:.0f} |\n")
            ran |= set(tests)
            all_well &= is_well
            print(rows[-1], end="", flush=True)
    device = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    version = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True).stdout
    version = (re.findall(r"[Vv]ersion ([\d.]+)", version) or ["?"])[0]
    arguments.out.write_text(
        "# The kernels under compute-sanitizer\n\n"
        f"Written by `kernels/sanitize.py` on {time.strftime('%Y-%m-%d')}: {device.stdout.strip()}, compute-sanitizer {version}.\n\n"
        "| tool | tests | verdict | seconds |\n| --- | --- | --- | --- |\n" + "".join(rows)
        + "\nThe tests, each of which compares with its twin on the host:\n\n" + "".join(f"- `{test}`\n" for test in sorted(ran)))
    print(arguments.out)
    sys.exit(0 if all_well else 1)


if __name__ == "__main__":
    main()
