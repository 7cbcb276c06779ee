#!/usr/bin/env python3
"""Reads the hardware counters of all kernels while Tandem runs, on a machine with a GPU and Nsight Compute (`ncu`):

    kernels/counters.py TANDEM INDEX
    kernels/counters.py --check      # CI: every kernel has a row in one of the two tables, and every row a kernel

TANDEM is the binary, INDEX a folder made by `tandem index synth` (its queries.tsv is used); the documents of the table are
those of GOV2's size: `--docs 25200000 --seed 1`. Kernels of Huang et al. and Wang et al. run on a tenth of the documents, because
their experiments take most of the time otherwise. Each kernel's longest of a few launches goes into a row of
results/gpu/kernel-counters.csv, which docs/results/gpu.md shows. Kernels that no command launched go to
results/gpu/kernels-not-measured.csv with the reason. Both are written after each command, so that a run that is ended early leaves
what it has measured. Clocks are left alone.
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

RESULTS = pathlib.Path(__file__).resolve().parent.parent / "results" / "gpu"
MEASURED = RESULTS / "kernel-counters.csv"
NOT_MEASURED = RESULTS / "kernels-not-measured.csv"
STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
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
    "l1_hit_percent": ("l1tex__t_sector_hit_rate.pct", 1),
    "l1_sectors_m": ("l1tex__t_sectors.sum", 1e6),
    "l2_sectors_m": ("lts__t_sectors.sum", 1e6),
    "instructions_m": ("smsp__inst_executed.sum", 1e6),
    "threads_per_instruction": ("smsp__thread_inst_executed_per_inst_executed.ratio", 1),
    # Cycles that a warp waits for this reason, per instruction that is issued.
    **{f"stalled_{reason}": (STALLED.format(reason), 1)
       for reason in ["long_scoreboard", "short_scoreboard", "wait", "barrier", "membar", "no_instruction"]},
}
# The most instructions of a launch without work, in millions.
EMPTY_M = 2e-4
# Documents of the small index: a tenth of the table's.
SMALL_DOCS = 2_520_000
# Words of this many queries make one that goes through all lists: what score_tiles is for.
JOINED_QUERIES = 12


def runs(tandem, index, scratch):
    """What launches every kernel: (command, the kernels that are looked at, at which of their launches, how many in all).

    The command is ended after that number of launches. Without kernels it only makes what a later one reads."""
    queries = index / "queries.tsv"
    lines = queries.read_text().splitlines()
    joined = scratch / "joined.tsv"
    words = [line.partition("\t")[2] for line in lines]
    joined.write_text("".join(
        f"{i}\t{' '.join(words[i:i + JOINED_QUERIES])}\n" for i in range(0, 120, JOINED_QUERIES)))

    def bench(what, limit, index=index):
        return [tandem, "bench", index, "--queries", queries, "--what", what, "--limit", limit, "--rounds", "1",
                "--out", scratch]

    small, impacts = scratch / "small", scratch / "impacts"

    def reproduce(name, limit, index=index):
        return [tandem, "reproduce", name, index, "--queries", index / "queries.tsv", "--limit", limit, "--out", scratch]

    def search(mode, k, log=joined, batch="1"):
        return [tandem, "search", index, "--queries", log, "--on", "gpu", "--mode", mode, "-k", k, "--batch", batch,
                "-o", scratch / f"results-{mode}"]

    return [
        # The upload, by parts; queries alone, and in batches of up to 4096.
        (bench("gpu-queries", 300), "measure_blocks|scan_rows|scan_tiles|write_blocks|score_lone|score_.*batch",
         "1|2|3|30|160|170|190|360|370|390", 40),
        (search("or", "1000"), "score_tiles", "2|4|6|8", 4),
        (search("and", "1000", queries, "256"), "merge_topk", "2|3|4", 3),
        # Batches of exhaustive queries.
        (bench("gpu-queries", 300), "score_tiles", "8|16|24", 24),
        ([tandem, "index", "quantise", index, "-o", impacts], None),
        (bench("gpu-queries", 300, impacts), "score_impact_tiles", "8|16|24", 24),
        (search("and", "10"), "score_lone_long", "2|4|6|8", 4),
        (bench("gpu", 10), "read_scattered", "2|4|6", 3),
        (reproduce("ding-table1", 10), "rice_.*|pfor_decode", "2|3|4", 9),
        (reproduce("ding-table3", 10), ".*_blocks|match_in_.*|.*_flags|gather_.*|score_candidates|clear_.*"
         "|accumulate|heap_.*|pfor_decode_needed|merge_find", "2|9|20|44", 60),
        (reproduce("ding-fig6", 10), "merge_.*|count_flags|gather_matches", "2|9|20|44", 20),
        ([tandem, "index", "synth", "--docs", SMALL_DOCS, "--num-queries", 1000, "-o", small], None),
        # A measurement as short as this is one launch. The first three have P 32, the next three P 64.
        (reproduce("huang-table1", 64, small) + ["--seconds", "0.0001"], "ranges_.*", "4|5|6", 12),
        (reproduce("wang-fig6", 1000, small), "rank_cached", "2|9|20", 3),
        ([tandem, "reproduce", "wei-table5", "--docs", "5000", "--out", scratch], "index_slots", "1|2|4", 2),
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
        # An executor launches each kernel once without work, which loads it.
        if (values["instructions_m"] or 0) > EMPTY_M:
            # The counter of hits is wrong for kernels of a few microseconds.
            if (values["l2_hit_percent"] or 0) > 100:
                values["l2_hit_percent"] = None
            yield row["Kernel Name"].split("(")[0], values, row.get("Grid Size", "")


def kernels_of(table):
    """The kernels in a table's first column."""
    lines = (line for line in table.read_text().splitlines() if not line.startswith("#"))
    return [row["kernel"] for row in csv.DictReader(lines)]


def check():
    """Ends with an error unless each kernel is in exactly one table, once, and nothing else is."""
    kernels, measured, others = set(kernels_of_sources()), kernels_of(MEASURED), kernels_of(NOT_MEASURED)
    rows = measured + others
    faults = [f"kernel {name} is in neither table" for name in sorted(kernels - set(rows))]
    faults += [f"there is no kernel {name} in kernels/" for name in sorted(set(rows) - kernels)]
    faults += [f"kernel {name} has {rows.count(name)} rows" for name in sorted(set(rows)) if rows.count(name) > 1]
    if faults:
        sys.exit("".join(f"error: {fault} ({MEASURED.name}, {NOT_MEASURED.name})\n" for fault in faults).rstrip())


def provenance(tandem, index):
    """The first lines of both tables."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    device = subprocess.run(query, capture_output=True, text=True)
    version = subprocess.run([tandem, "--version"], capture_output=True, text=True)
    commit = re.search(r"commit (\w+)", version.stdout)
    return (f"# command: kernels/counters.py TANDEM {index.name}\n"
            f"# commit: {commit.group(1) if commit else 'unknown'}\n# date: {time.strftime('%Y-%m-%d')}\n"
            f"# device: {device.stdout.partition(chr(10))[0]}\n# index: {index.name}; of kernels of huang/ and wang/: {SMALL_DOCS} documents\n")


def write(head, longest):
    """Writes both tables and returns the kernels that were not measured yet."""
    sources = kernels_of_sources()
    with MEASURED.open("w", newline="") as file:
        file.write(head)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kernel", *COUNTERS, "grid"])
        for kernel, (values, grid) in sorted(item for item in longest.items() if item[0] in sources):
            texts = ["" if value is None else f"{value:.4g}" for value in values.values()]
            writer.writerow([kernel, *texts, re.sub(r"[(), ]+", " ", grid).strip().replace(" 1 1", "")])
    missing = sorted(sources.keys() - longest.keys())
    reason = "no command of kernels/counters.py launched it"
    NOT_MEASURED.write_text(head + "kernel,reason\n" + "".join(f"{kernel},{reason}\n" for kernel in missing))
    return missing


def main():
    parser = argparse.ArgumentParser(description="Reads the hardware counters of all kernels.")
    parser.add_argument("tandem", nargs="?")
    parser.add_argument("index", type=pathlib.Path, nargs="?")
    parser.add_argument("--check", action="store_true", help="measure nothing; fail if the tables do not name all kernels")
    arguments = parser.parse_args()
    if arguments.check:
        return check()
    if arguments.index is None:
        parser.error("TANDEM and INDEX are needed without --check")
    began = time.time()
    longest = {}
    head = provenance(arguments.tandem, arguments.index)
    with tempfile.TemporaryDirectory() as scratch:
        for command, kernels, *launches in runs(arguments.tandem, arguments.index, pathlib.Path(scratch)):
            if kernels is None:
                subprocess.run([str(part) for part in command], capture_output=True, check=True)
                continue
            found = list(profile(command, kernels, *launches))
            for kernel, values, grid in found:
                if kernel not in longest or (values["time_us"] or 0) > (longest[kernel][0]["time_us"] or 0):
                    longest[kernel] = values, grid
            missing = write(head, longest)
            names = ", ".join(sorted({kernel for kernel, _, _ in found}))
            took = time.time() - began
            print(f"{took:4.0f} s: {' '.join(map(str, command[1:3]))}: {len(found)} launches of {names}", flush=True)
    print(MEASURED, NOT_MEASURED, sep="\n")
    if missing:
        sys.exit(f"not seen: {', '.join(missing)}")


if __name__ == "__main__":
    main()
