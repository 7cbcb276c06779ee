#!/usr/bin/env python3
"""Predictions of configurations that were not profiled, driven afterwards.

    what_if.py draw                       writes plan.csv: the cells and their rivals, drawn with a seed
    what_if.py drive DEVICE TANDEM DATA OUT SECONDS
                                          profiles the collections on this machine, predicts the cells of DEVICE in
                                          plan.csv, drives them, and writes OUT/DEVICE.csv and the profiles. After SECONDS
                                          it starts no other cell; called again, it goes on
    what_if.py join                       compares the driven cells with predictions and rivals: results/what-if.csv

A cell is predicted from single queries and the machine profile alone. Its rival is a simple rule that starts from
measured capacities of other cells; the plan names them before anything is driven.
"""
import csv, json, os, random, shutil, subprocess, sys, time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
PLAN = f"{HERE}/plan.csv"
SEED = 56
# Collections and queries that no cell of the record has: name, mode, deadline in milliseconds.
LOADS = {"win32-or": ("win32", "or", 20), "win32-and": ("win32", "and", 20), "synth-or": ("synth", "or", 50)}
SYNTH_DOCS = 1_500_000
QUERIES = 2000
RECORDED = "azure"
RIVALS = {
    "base": "", "cores": "linear scaling", "gpu": "the sum", "policy": "the other policy's capacity",
    "arrivals": "the Poisson capacity", "second-gpu": "twice the GPU's part", "hardware": "the ratio of single-query times",
}
COLUMNS = ["cell", "device", "kind", "load", "policy", "cpus", "gpus", "arrivals", "deadline_ms", "profile", "rival", "of"]


def cell(device, kind, load, policy, cpus, gpus, arrivals="poisson", of=(), profile=None):
    name = f"{device}/{load}/{policy}-{cpus}-{gpus}" + ("" if arrivals == "poisson" else f"-{arrivals}")
    return dict(cell=name, device=device, kind=kind, load=load, policy=policy, cpus=cpus, gpus=gpus, arrivals=arrivals,
                deadline_ms=LOADS[load][2], profile=profile or device, rival=RIVALS[kind], of=" ".join(of))


def draw():
    """Each device has base cells, which rivals start from, and cells of each kind that are drawn from all of it."""
    chance, plan = random.Random(SEED), []
    for device, gpus in [("h100", 1), ("h200", 1), ("h100-x2", 2)]:
        own, kinds = [], {"cores": [], "gpu": [], "policy": [], "arrivals": [], "second-gpu": [], "hardware": []}
        for load in LOADS:
            base = lambda policy, cpus, gpus: f"{device}/{load}/{policy}-{cpus}-{gpus}"
            seven, alone = base("cpu-only", 7, 0), base("gpu-only", 1, 1)
            own += [cell(device, "base", load, "cpu-only", 7, 0), cell(device, "base", load, "gpu-only", 1, 1)]
            kinds["cores"] += [cell(device, "cores", load, "cpu-only", n, 0, of=[seven]) for n in (3, 10, 14)]
            kinds["gpu"] += [cell(device, "gpu", load, "stealing", n, 1, of=[seven, alone]) for n in (7, 14)]
            kinds["policy"] += [cell(device, "policy", load, policy, 14, 1, of=[base("stealing", 14, 1)])
                                for policy in ("combined", "best-of", "mct")]
            kinds["arrivals"] += [cell(device, "arrivals", load, "cpu-only", 7, 0, arrivals=RECORDED, of=[seven])]
            kinds["second-gpu"] += [cell(device, "second-gpu", load, policy, n, 2, of=[seven, alone])
                                    for policy, n in (("gpu-only", 1), ("stealing", 14), ("combined", 14))]
            kinds["hardware"] += [cell(device, "hardware", load, policy, n, g, of=[f"h100/{load}/{policy}-{n}-{g}"], profile="h100")
                                  for policy, n, g in (("gpu-only", 1, 1), ("cpu-only", 7, 0))]
        take = {"h100": dict(cores=4, gpu=3, policy=3, arrivals=2), "h200": dict(cores=1, gpu=2, policy=2, arrivals=1, hardware=5),
                "h100-x2": {"second-gpu": 6, "policy": 1, "gpu": 1}}[device]
        drawn = [one for kind, number in take.items() for one in chance.sample(kinds[kind], number)]
        needed = {name for one in drawn for name in one["of"].split()}
        # A policy's rival, and the base of each load that a drawn cell starts from. A hardware cell is its device's base, too.
        steals = [cell(device, "gpu", one["load"], "stealing", 14, 1, of=[f"{device}/{one['load']}/cpu-only-7-0", f"{device}/{one['load']}/gpu-only-1-1"])
                  for one in drawn if one["kind"] == "policy"]
        drawn += [one for i, one in enumerate(steals) if one["cell"] not in {d["cell"] for d in drawn} | {s["cell"] for s in steals[:i]}]
        needed |= {name for one in drawn for name in one["of"].split()}
        names = {one["cell"] for one in drawn}
        plan += [one for one in own if one["cell"] in needed and one["cell"] not in names] + drawn
    with open(PLAN, "w", newline="") as out:
        rows = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        rows.writeheader()
        rows.writerows(plan)
    for device in dict.fromkeys(one["device"] for one in plan):
        print(device, sum(one["device"] == device for one in plan))


def read(path):
    with open(path, newline="") as rows:
        return list(csv.DictReader(line for line in rows if not line.startswith("#")))


class Sitting:
    def __init__(self, tandem, data, out):
        self.tandem, self.data, self.out = os.path.abspath(tandem), os.path.abspath(data), os.path.abspath(out)
        os.makedirs(self.out, exist_ok=True)
        os.chdir(self.out)
        self.began = time.time()

    def say(self, text):
        print(f"{time.time() - self.began:5.0f} s  {text}", flush=True)

    def run(self, *arguments, timeout=150):
        """Results of a command, and the last lines of its messages."""
        try:
            done = subprocess.run([self.tandem, *map(str, arguments), "--format", "json"], capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return {}, f"no end within {timeout} s"
        try:
            return json.loads(done.stdout)["results"], done.stderr.strip()[-300:]
        except (ValueError, KeyError):
            return {}, f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"

    def log(self, collection):
        return f"{self.data}/win32-queries.tsv" if collection == "win32" else "synth/queries.tsv"

    def profile(self, loads):
        collections = dict.fromkeys(LOADS[load][0] for load in loads)
        if "win32" in collections and not os.path.exists("win32"):
            self.run("index", "build", f"{self.data}/win32-docs-48k.jsonl.zst", "-o", "win32")
        if "synth" in collections and not os.path.exists("synth"):
            self.run("index", "synth", "--docs", SYNTH_DOCS, "--seed", SEED, "--num-queries", 2 * QUERIES, "-o", "synth", timeout=300)
        self.say(f"collections: {', '.join(collections)}")
        for load in loads:
            collection, mode, _ = LOADS[load]
            common = [collection, "--queries", self.log(collection), "--mode", mode]
            if os.path.exists(f"{load}.machine.json"):
                continue
            # The first half of the queries is for predictions. Live runs draw from the other half.
            _, told = self.run("profile", *common, "--limit", 2 * QUERIES, "--repeats", 3, "-o", f"{load}.driven.csv")
            lines = open(f"{load}.driven.csv").readlines()
            about = sum(line.startswith("#") for line in lines) + 1
            open(f"{load}.workload.csv", "w").writelines(lines[:about + QUERIES])
            self.say(f"{load}: single queries; {told.splitlines()[-1] if told else ''}")
            _, told = self.run("profile", *common, "--machine", f"{load}.machine.json", timeout=200)
            self.say(f"{load}: machine; {told.splitlines()[-1] if told else ''}")

    def where(self, one):
        load = one["load"]
        if one["profile"] == one["device"]:
            return f"{load}.workload.csv", f"{load}.machine.json"
        return f"{HERE}/{one['profile']}/{load}.workload.csv.zst", f"{HERE}/{one['profile']}/{load}.machine.json"

    def question(self, one):
        arrivals = f"{self.data}/azure-llm-conv-2023.csv" if one["arrivals"] == RECORDED else one["arrivals"]
        return ["--mode", LOADS[one["load"]][1], "--policy", one["policy"], "--cpus", one["cpus"], "--deadline-ms", one["deadline_ms"],
                "--arrivals", arrivals]

    def predict(self, one):
        workload, machine = self.where(one)
        name = one["cell"].replace("/", "+")
        found, told = self.run("simulate", "--workload", workload, "--machine", machine, "--gpus", one["gpus"], *self.question(one),
                               "--what", "capacity", "--seeds", "1:3", "-o", f"simulated/{name}", timeout=240)
        rows = [row for row in found.get("capacity", []) if row["policy"] == one["policy"]]
        return rows[0] if rows else {"told": told}

    def drive(self, one):
        collection, name = LOADS[one["load"]][0], one["cell"].replace("/", "+")
        gpu = ["--gpu", "real", "--gpus", one["gpus"]] if int(one["gpus"]) else ["--gpu", "none"]
        found, told = self.run("capacity", collection, "--queries", self.log(collection), "--workload", f"{one['load']}.driven.csv",
                               "--limit", QUERIES, "--machine", "none", *gpu, *self.question(one), "--live-seconds", 2, "--seeds", "1:2",
                               "-o", f"driven/{name}", *([] if one["arrivals"] == RECORDED else ["--record", "record"]), timeout=90)
        sides = {"held_qps": None, "missed_qps": None, "predicted_qps": None, "gpu": ""}
        path = f"driven/{name}/capacity.csv"
        if not os.path.exists(path):
            # Without an answer, the highest rate that held and the lowest above it that did not.
            path = f"driven/{name}/live_runs.csv"
            runs = read(path) if os.path.exists(path) else []
            held = [float(run["rate_qps"]) for run in runs if run["verdict"].startswith("held")]
            missed = [float(run["rate_qps"]) for run in runs if run["verdict"].startswith("missed") and float(run["rate_qps"]) > max(held, default=0)]
            return sides | {"held_qps": max(held, default=None), "missed_qps": min(missed, default=None)}, told
        rows = [row for row in read(path) if row["policy"] == one["policy"]]
        gpus = [line.split(": ", 1)[1].strip() for line in open(path) if line.startswith("# gpu: ")]
        row = rows[0] if rows else {}
        found = {"held_qps": row.get("live_qps"), "missed_qps": row.get("beyond_qps"), "predicted_qps": row.get("max_rate_qps")}
        return found | {"gpu": gpus[0] if gpus else "none"}, told


def drive(device, tandem, data, out, seconds):
    sitting = Sitting(tandem, data, out)
    plan = [one for one in read(PLAN) if one["device"] == device]
    done = read(f"{device}.csv") if os.path.exists(f"{device}.csv") else []
    sitting.profile(list(dict.fromkeys(one["load"] for one in plan)))
    plan = [one for one in plan if one["cell"] not in {row["cell"] for row in done}]
    # Every cell is predicted before any is driven.
    if os.path.exists("predicted.json"):
        predicted = json.load(open("predicted.json"))
    else:
        with ThreadPoolExecutor(max_workers=8) as workers:
            predicted = {one["cell"]: found for one, found in zip(plan, workers.map(sitting.predict, plan))}
        json.dump(predicted, open("predicted.json", "w"))
        sitting.say("all cells are predicted")
    columns = ["cell", "predicted_qps", "predicted_low_qps", "predicted_high_qps", "held_qps", "missed_qps", "backlog_qps", "gpu", "told"]
    with open(f"{device}.csv", "w", newline="") as file:
        rows = csv.DictWriter(file, columns, lineterminator="\n")
        rows.writeheader()
        rows.writerows(done)
        for one in plan:
            if time.time() - sitting.began > float(seconds):
                break
            found = predicted[one["cell"]]
            measured, told = sitting.drive(one)
            row = dict(cell=one["cell"], predicted_qps=found.get("max_rate_qps"), predicted_low_qps=found.get("low_qps"),
                       predicted_high_qps=found.get("high_qps"), held_qps=measured["held_qps"], missed_qps=measured["missed_qps"],
                       backlog_qps=measured["predicted_qps"], gpu=measured["gpu"],
                       told="" if measured["missed_qps"] else (found.get("told") or told).replace("\n", "; "))
            rows.writerow(row)
            file.flush()
            sitting.say(f"{one['cell']}: predicted {row['predicted_qps']}, held {row['held_qps']}, missed {row['missed_qps']} {row['told'][-120:]}")
    os.makedirs(f"profiles/{device}", exist_ok=True)
    for name in [f"{load}.{kind}" for load in LOADS for kind in ("machine.json", "workload.csv")]:
        if os.path.exists(name):
            shutil.copy(name, f"profiles/{device}")
    subprocess.run(["tar", "czf", f"{device}.tar.gz", f"{device}.csv", "profiles", "record"], check=False)
    sitting.say(f"written: {device}.csv and {device}.tar.gz")


def join():
    plan, driven = read(PLAN), {}
    for device in dict.fromkeys(one["device"] for one in plan):
        if os.path.exists(f"{HERE}/{device}.csv"):
            driven.update({row["cell"]: row for row in read(f"{HERE}/{device}.csv")})

    def middle(name):
        held, missed = (float(driven.get(name, {}).get(side) or 0) for side in ("held_qps", "missed_qps"))
        return (held * missed) ** 0.5 if held and missed else None

    def rival(one):
        bases, cpus = one["of"].split(), int(one["cpus"])
        known = [middle(name) for name in bases]
        if not bases or None in known:
            return None
        if one["kind"] == "cores":
            return known[0] * cpus / 7
        if one["kind"] == "gpu":
            return known[0] * cpus / 7 + known[1]
        if one["kind"] == "second-gpu":
            return (0 if one["policy"] == "gpu-only" else known[0] * cpus / 7) + 2 * known[1]
        if one["kind"] == "hardware":
            column = "gpu_us" if one["policy"] == "gpu-only" else "cpu_us"
            return known[0] * mean_us(one["profile"], one["load"], column) / mean_us(one["device"], one["load"], column)
        return known[0]

    with open(f"{HERE}/../../results/what-if.csv", "w", newline="") as out:
        out.write("# command: python3 recorded/what-if/what_if.py join\n")
        # The program, the day and the machine of the profiles, which are those of the runs.
        heads = [head for device in dict.fromkeys(one["device"] for one in plan) for load in LOADS for head in profiled(device, load) if head.startswith("#")]
        for key in ("commit", "date", "machine"):
            values = [line.split(": ", 1)[1] for line in heads if line.startswith(f"# {key}: ")]
            out.write(f"# {key}: {', '.join(dict.fromkeys(values)) or 'not recorded'}\n")
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(["cell", "kind", "load", "policy", "cpus", "gpus", "arrivals", "gpu", "predicted_qps", "held_qps", "missed_qps",
                       "measured_qps", "backlog_qps", "rival", "rival_qps"])
        for one in plan:
            row, measured = driven.get(one["cell"], {}), middle(one["cell"])
            if one["kind"] == "base" or not row:
                continue
            other = rival(one)
            digits = lambda value: f"{float(value):.6g}" if value else ""
            rows.writerow([one[name] for name in ("cell", "kind", "load", "policy", "cpus", "gpus", "arrivals")] + [row["gpu"]]
                          + [digits(row[name]) for name in ("predicted_qps", "held_qps", "missed_qps")]
                          + [digits(measured), digits(row["backlog_qps"]), one["rival"], digits(other)])


def profiled(device, load):
    """Lines of a profile of single queries; none before the device was driven."""
    path = f"{HERE}/{device}/{load}.workload.csv.zst"
    if not os.path.exists(path):
        return []
    return subprocess.run(["zstd", "-dcq", path], capture_output=True, text=True, check=True).stdout.splitlines()


def mean_us(device, load, column):
    times = [float(row[column]) for row in csv.DictReader(line for line in profiled(device, load) if not line.startswith("#"))]
    return sum(times) / len(times)


if __name__ == "__main__":
    {"draw": draw, "drive": drive, "join": join}[sys.argv[1]](*sys.argv[2:])
