#!/usr/bin/env python3
"""Reads the hardware counters of all kernels while Tandem runs, on a machine with a GPU and Nsight Compute (`ncu`):

    kernels/counters.py TANDEM INDEX [--out results/gpu/kernel-counters.csv]

TANDEM is the binary, INDEX a folder made by `tandem index synth` (its queries.tsv is used); the documents of the table are
those of GOV2's size: `--docs 25200000 --seed 1`. Each kernel's longest of a few launches goes into a row; docs/results/gpu.md
shows the rows. Clocks are left alone. About a minute, most of it not the GPU's.
"""

import argparse
import csv
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from sanitize import kernels_of_sources

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent / "results" / "gpu" / "kernel-counters.csv"
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
# Words of this many queries make one that goes through all lists: what score_tiles is for.
JOINED_QUERIES = 12


def runs(tandem, index, scratch):
    """What launches every kernel: (command, the kernels that are looked at, at which of their launches, how many in all).

    After so many the command is ended."""
    queries = index / "queries.tsv"
    lines = queries.read_text().splitlines()
    joined = scratch / "joined.tsv"
    words = [line.partition("\t")[2] for line in lines]
    joined.write_text("".join(
        f"{i}\t{' '.join(words[i:i + JOINED_QUERIES])}\n" for i in range(0, 120, JOINED_QUERIES)))

    def bench(what, limit):
        return [tandem, "bench", index, "--queries", queries, "--what", what, "--limit", limit, "--rounds", "1",
                "--out", scratch]

    def reproduce(name, limit):
        return [tandem, "reproduce", name, index, "--queries", queries, "--limit", limit, "--out", scratch]

    search = [tandem, "search", index, "--queries", joined, "--on", "gpu", "--mode", "or", "-k", "1000",
              "-o", scratch / "results"]
    return [
        # The upload, by parts; queries alone, and in batches of up to 4096.
        (bench("gpu-queries", 300), "measure_blocks|scan_rows|scan_tiles|write_blocks|score_lone|score_batch|merge_topk",
         "1|2|3|30|160|170|190|360|370|390", 40),
        (search, "score_tiles", "2|4|6|8", 4),
        (reproduce("ding-table1", 10), "rice_.*|pfor_decode", "2|3|4", 9),
        (reproduce("ding-table3", 10), ".*_blocks|match_in_.*|.*_counts|count_flags|gather_.*|score_candidates|clear_.*"
         "|accumulate|heap_.*|pfor_decode_needed|merge_find", "2|9|20|44", 60),
        (reproduce("ding-fig6", 10), "merge_.*|count_flags|gather_matches", "2|9|20|44", 20),
    ]


def profile(command, kernels, launches, count):
    """Yields (kernel, {column: value}, grid) for each launch that was looked at."""
    ncu = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
           "--kernel-id", f"::regex:^({kernels})$:^({launches})$", "--launch-count", count, "--kill", "yes",
           "--metrics", ",".join(counter for counter, _ in COUNTERS.values())]
    done = subprocess.run([str(part) for part in ncu + command], capture_output=True, text=True)
    start = done.stdout.find('"ID"')
    if start < 0:
        said = done.stdout[-600:] + done.stderr[-600:]
        print(f"warning: nothing came from {' '.join(map(str, command))}:\n{said}", file=sys.stderr)
        return
    for row in csv.DictReader(io.StringIO(done.stdout[start:])):
        if not (row["ID"] or "").isdigit():
            continue  # the line of units, or what the command printed
        values = {}
        for column, (counter, divisor) in COUNTERS.items():
            text = (row.get(counter) or "").replace(",", "")
            values[column] = float(text) / divisor if re.fullmatch(r"[-+.e\d]+", text) else None
        yield row["Kernel Name"].split("(")[0], values, row.get("Grid Size", "")


def main():
    parser = argparse.ArgumentParser(description="Reads the hardware counters of all kernels.")
    parser.add_argument("tandem")
    parser.add_argument("index", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=DOCUMENT)
    arguments = parser.parse_args()
    began = time.time()
    longest = {}
    with tempfile.TemporaryDirectory() as scratch:
        for command, *what in runs(arguments.tandem, arguments.index, pathlib.Path(scratch)):
            found = list(profile(command, *what))
            for kernel, values, grid in found:
                if kernel not in longest or (values["time_us"] or 0) > (longest[kernel][0]["time_us"] or 0):
                    longest[kernel] = values, grid
            names = ", ".join(sorted({kernel for kernel, _, _ in found}))
            took = time.time() - began
            print(f"{took:4.0f} s: {' '.join(map(str, command[1:3]))}: {len(found)} launches of {names}", flush=True)
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    device = subprocess.run(query, capture_output=True, text=True)
    with arguments.out.open("w", newline="") as file:
        file.write(f"# device: {device.stdout.strip()}\n# index: {arguments.index.name}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kernel", *COUNTERS, "grid"])
        for kernel, (values, grid) in sorted(longest.items()):
            texts = ["" if value is None else f"{value:.4g}" for value in values.values()]
            writer.writerow([kernel, *texts, re.sub(r"[(), ]+", " ", grid).strip().replace(" 1 1", "")])
    print(arguments.out)
    if missing := sorted(kernels_of_sources().keys() - longest.keys()):
        sys.exit(f"not seen: {', '.join(missing)}")


if __name__ == "__main__":
    main()
