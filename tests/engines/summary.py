#!/usr/bin/env python3
"""A line per engine, collection and deadline: predicted and measured capacity, and what rules of thumb say.

Usage: summary.py OUT SERVER_CORES FILE.csv COMMAND. OUT has ENGINE-COLLECTION/DEADLINE with the results of `tandem capacity`,
and ENGINE-COLLECTION.txt with what it printed.
"""

import csv
import pathlib
import re
import sys

COLUMNS = """engine,collection,server_cores,deadline_ms,mean_ms,predicted_qps,predicted_half_width,held_qps,missed_qps,measured_qps,
error,drift,elastic_qps,elastic_error,couchbase_qps,couchbase_error,red_line_qps,red_line_error,runs,late_client_runs,
lateness_p99_us""".replace("\n", "").split(",")


def read(path):
    """The provenance and the rows of a result; none without the file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [line for line in lines if line.startswith("#")], list(csv.DictReader(line for line in lines if line[0] != "#"))


def number(text):
    return float(text.replace(",", ""))


def sides(folder):
    """The rates that held and missed: of the answer, else those at which most runs did, and the number of runs."""
    runs = read(folder / "runs.csv")[1]
    counted = [row for row in runs if row["is_rejected"] == "false"]
    for row in read(folder / "capacity.csv")[1]:
        if row["held_qps"] and row["beyond_qps"]:
            return float(row["held_qps"]), float(row["beyond_qps"]), counted, len(runs)
    held, missed = [], []
    for qps in sorted({float(row["rate_qps"]) for row in counted}):
        of_rate = [row["held"] == "true" for row in counted if float(row["rate_qps"]) == qps and row["ending"] == "complete"]
        if 2 * sum(of_rate) > len(of_rate) and not missed:
            held.append(qps)
        elif 2 * sum(of_rate) < len(of_rate):
            missed.append(qps)
    return max(held, default=None), min(missed, default=None), counted, len(runs)


def line(name, folder, text, cores):
    engine, collection = name.split("-", 1)
    held, missed, counted, runs = sides(folder)
    found = {"engine": engine, "collection": collection, "server_cores": cores, "deadline_ms": int(folder.name)}
    printed = re.search(r"([\d.]+) ms on average", text)
    found["mean_ms"] = number(printed[1]) if printed else None
    predicted = re.search(r"predicted: ([\d,.]+) q/s", text)
    capacity = read(folder / "capacity.csv")[1]
    found["predicted_qps"] = float(capacity[0]["max_rate_qps"]) if capacity else number(predicted[1]) if predicted else None
    found["predicted_half_width"] = capacity[0].get("predicted_half_width") if capacity else None
    found |= {"held_qps": held, "missed_qps": missed, "runs": runs, "late_client_runs": runs - len(counted)}
    measured = (held + missed) / 2 if held and missed else held or missed
    found["measured_qps"] = measured
    if found["predicted_qps"] and measured:
        found["error"] = found["predicted_qps"] / measured - 1
    # Elastic's formula for thread pools, Couchbase's 200 queries per second and core, and the red line of a closed loop.
    rungs = [row for row in read(folder / "ladder.csv")[1] if row["p99_ms"] and float(row["p99_ms"]) <= int(folder.name)]
    rules = {
        "elastic": int(1.5 * float(cores)) / found["mean_ms"] * 1e3 if found["mean_ms"] else None,
        "couchbase": 200 * float(cores),
        "red_line": next((float(row["qps"]) for row in reversed(rungs) if row["rejected"] == row["failed"] == "0"), None),
    }
    for key, qps in rules.items():
        found[f"{key}_qps"] = qps
        if qps and measured:
            found[f"{key}_error"] = qps / measured - 1
    found["lateness_p99_us"] = max((float(row["lateness_p99_us"]) for row in counted), default=None)
    return found


def main():
    out, cores, target, command = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
    lines, head = [], []
    for log in sorted(out.glob("*.txt")):
        # What is printed before a prediction belongs to it.
        parts = re.split(r"(?m)^service times with one client", log.read_text(encoding="utf-8"))[1:]
        parts = [part for part in parts if "predicted: " in part]
        folders = sorted((path for path in (out / log.stem).iterdir() if path.name.isdigit()), key=lambda path: -int(path.name))
        of_server = [line(log.stem, folder, text, cores) for folder, text in zip(folders, parts)]
        # The highest throughput of a closed loop, before each search for a capacity.
        peaks = [max(float(row["qps"]) for row in read(folder / "ladder.csv")[1]) for folder in folders]
        for found in of_server:
            found["drift"] = max(peaks) / min(peaks) - 1 if len(peaks) > 1 else None
        lines += of_server
        head = head or [row for folder in folders for row in read(folder / "runs.csv")[0]]
    kept = [next((row for row in head if row.startswith(f"# {key}:")), None) for key in ("tandem", "commit", "date", "machine")]
    with open(target, "w", encoding="utf-8", newline="") as file:
        print("\n".join([row for row in kept if row] + [f"# command: {command}"]), file=file)
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n", restval="")
        table.writeheader()
        shown = lambda value: f"{value:.6g}" if isinstance(value, float) else "" if value is None else value
        table.writerows({key: shown(value) for key, value in found.items()} for found in lines)


main()
