#!/usr/bin/env python3
"""Reads the hardware counters of all kernels while Tandem runs, on a machine with a GPU and Nsight Compute (`ncu`):

    kernels/counters.py TANDEM INDEX [--out docs/kernel-counters.csv] [--limit 40]

TANDEM is the binary, INDEX a folder made by `tandem index synth` (its queries.tsv is used). Each kernel's longest of a few launches
goes into a row; kernels/build.py shows the rows in docs/kernels.md. Clocks are left alone.
"""

import argparse
import csv
import io
import pathlib
import re
import subprocess
import sys

# Column: counter, and what to divide it by.
COUNTERS = {
    "time_us": ("gpu__time_duration.sum", 1e3),
    "dram_read_mb": ("dram__bytes_read.sum", 1e6),
    "dram_written_mb": ("dram__bytes_write.sum", 1e6),
    "dram_percent": ("dram__throughput.avg.pct_of_peak_sustained_elapsed", 1),
    "l2_hit_percent": ("lts__t_sector_hit_rate.pct", 1),
    "issue_percent": ("smsp__issue_active.avg.pct_of_peak_sustained_active", 1),
    "alu_percent": ("sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active", 1),
    "shared_percent": ("l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed", 1),
    "occupancy_percent": ("sm__warps_active.avg.pct_of_peak_sustained_active", 1),
}
# Launches of each kernel that are looked at. In `bench`, sum_documents decodes gaps of 8 bits at its 117th, decode_documents after two
# thousand that measure the latency of launches; queries run alone first, in batches from about the 300th on.
INVOCATIONS = "^(2|9|20|44|117|230|400|500|2117)$"


def runs(tandem, index, limit):
    """Commands that launch every kernel; `{}` stands for the folder of their output."""
    given = ["--index", str(index), "--queries", str(index / "queries.tsv")]
    small = ["--limit", str(limit), "--out", "{}"]
    return [
        [tandem, "bench", str(index), "--queries", str(index / "queries.tsv"), "--what", "gpu", "--rounds", "1", *small],
        *([tandem, "reproduce", name, *given, *small] for name in ("ding-table1", "ding-table2", "ding-table3", "ding-fig6")),
    ]


def profile(command):
    """Yields (kernel, {column: value}, grid) for each launch that was looked at."""
    ncu = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--target-processes", "all",
           "--kernel-id", f":::{INVOCATIONS}", "--metrics", ",".join(counter for counter, _ in COUNTERS.values())]
    done = subprocess.run(ncu + command, capture_output=True, text=True)
    start = done.stdout.find('"ID"')
    if start < 0:
        print(f"warning: nothing came from {' '.join(command)}:\n{done.stdout[-600:]}{done.stderr[-600:]}", file=sys.stderr)
        return
    for row in csv.DictReader(io.StringIO(done.stdout[start:])):
        if not row["ID"].isdigit():
            continue  # the line of units
        values = {}
        for column, (counter, divisor) in COUNTERS.items():
            text = (row.get(counter) or "").replace(",", "")
            values[column] = float(text) / divisor if re.fullmatch(r"[-+.e\d]+", text) else None
        yield row["Kernel Name"].split("(")[0], values, row.get("Grid Size", "")


def main():
    parser = argparse.ArgumentParser(description="Reads the hardware counters of all kernels.")
    parser.add_argument("tandem")
    parser.add_argument("index", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent / "docs/kernel-counters.csv")
    parser.add_argument("--limit", type=int, default=40)
    arguments = parser.parse_args()
    longest = {}
    for command in runs(arguments.tandem, arguments.index, arguments.limit):
        for kernel, values, grid in profile([part.format(arguments.out.parent / "counters") for part in command]):
            if kernel not in longest or (values["time_us"] or 0) > (longest[kernel][0]["time_us"] or 0):
                longest[kernel] = values, grid
    device = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    with arguments.out.open("w", newline="") as file:
        file.write(f"# device: {device.stdout.strip()}\n# index: {arguments.index.name}, {arguments.limit} queries\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kernel", *COUNTERS, "grid"])
        for kernel, (values, grid) in sorted(longest.items()):
            texts = ["" if value is None else f"{value:.4g}" for value in values.values()]
            writer.writerow([kernel, *texts, re.sub(r"[(), ]+", " ", grid).strip().replace(" 1 1", "")])
    print(arguments.out)


if __name__ == "__main__":
    main()
