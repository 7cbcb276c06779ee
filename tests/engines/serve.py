#!/usr/bin/env python3
"""Pairs of runs with and without HTTP that tandem.sh made, and runs against a server that answers at once, as CSV; see there.

Usage: serve.py FOLDER LANES table | most. `most` prints the median throughput without HTTP if queries always wait.
"""

import csv
import pathlib
import statistics
import sys

ADDED = [50, 90, 99]


def read(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def rank(values, percent):
    """The nearest rank, as in Tandem's percentiles."""
    return sorted(values)[max(0, -(-percent * len(values) // 100) - 1)]


def added(direct, http):
    """What each query took longer through HTTP; the runs have the same queries at the same times."""
    times = {(row["query_id"], row["arrival_us"]): float(row["finished_us"]) - float(row["arrival_us"]) for row in direct}
    keys = [(row["query_id"], row["intended_us"]) for row in http]
    return [float(row["latency_us"]) - times[key] for key, row in zip(keys, http) if key in times]


def pairs(folder, lanes):
    for direct in sorted(folder.glob("*-direct")):
        kind, rate, turn, _ = direct.name.split("-")
        http = direct.with_name(direct.name.removesuffix("direct") + "http")
        try:
            of_direct, of_http = read(direct / "summary.csv")[0], read(http / "runs.csv")[-1]
        except FileNotFoundError:
            # The measurement was ended between the two.
            continue
        row = {"kind": kind, "lanes": lanes, "rate_qps": rate, "turn": turn}
        for percentile in ("p50", "p99"):
            row[f"direct_{percentile}_us"] = 1e3 * float(of_direct[f"{percentile}_ms"])
            row[f"http_{percentile}_us"] = 1e3 * float(of_http[f"latency_{percentile}_ms"])
        for name, run in (("direct", of_direct), ("http", of_http)):
            row[f"{name}_qps"] = float(run["throughput_qps"])
            row[f"{name}_held"] = run["held"]
        row |= {"others_cores": of_direct["others_cores"], "steal_cores": of_direct["steal_cores"]}
        row["client_lateness_p99_us"] = of_http["lateness_p99_us"]
        if (direct / "log.csv").exists():
            values = added(read(direct / "log.csv"), read(http / "requests.csv"))
            row |= {f"added_p{percent}_us": rank(values, percent) for percent in ADDED}
        yield {key: f"{value:.1f}" if isinstance(value, float) else value for key, value in row.items()}


def null(folder):
    """Runs against a server that answers at once."""
    for path in sorted(folder.glob("null-*.csv")):
        kind, rate, turn = path.stem.split("-")
        row = {"kind": kind, "rate_qps": rate, "turn": turn}
        for run in read(path):
            for percentile in ("p50", "p99"):
                row[f"http_{percentile}_us"] = run[f"latency_{percentile}_us"]
            yield row | {"http_qps": run["answered_qps"], "client_lateness_p99_us": run["lateness_p99_us"]}


def main():
    folder = pathlib.Path(sys.argv[1])
    rows = [*pairs(folder, sys.argv[2]), *null(folder)]
    if sys.argv[3] == "most":
        print(round(statistics.median(float(row["direct_qps"]) for row in rows if row["kind"] == "full")))
        return
    table = csv.DictWriter(sys.stdout, max(rows, key=len).keys(), lineterminator="\n", restval="")
    table.writeheader()
    table.writerows(rows)


main()
