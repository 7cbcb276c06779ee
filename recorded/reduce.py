#!/usr/bin/env python3
"""Reduces machine files of formats 4 and 5 in this folder to format 6, and renames them in the cells.

    pip install xxhash && python3 recorded/reduce.py

Formats 4 and 5 held thousands of observed ratios for each batch size. Format 6 holds their mean and their spread.
"""
import glob, json, os, statistics
import xxhash

FOLDER = os.path.dirname(os.path.abspath(__file__))
# Policies of the record whose dispatcher costs are kept.
POLICIES = ("mct", "stealing", "combined", "length-based", "cached-first")


def ratios(observed, key):
    return [permille / 1000 for permille in observed.get(key, {}).get("permille", [])]


def slowdown(observed, version):
    work, device = ratios(observed, "work"), ratios(observed, "device")
    mean = statistics.fmean(work)
    spacing = min(observed.get("spacing", 1.0), 1.0)
    on_device = statistics.fmean(device) if device else 1.0
    if version < 5 and on_device > 1.0:
        # These were times of batches that overlapped on the device and so lengthened each other.
        spacing, on_device = min(spacing * on_device, 1.0), 1.0
    found = {"queries": observed["queries"], "busy": observed["busy"], "work": round(mean, 4)}
    found.update({"device": round(on_device, 4)} if device else {})
    found.update({"prepared": observed["prepared"]} if "prepared" in observed else {})
    found.update({"spacing": round(spacing, 4)} if spacing < 1.0 else {})
    return found | {"spread": round(statistics.stdev(work) / mean, 4)}


def lanes(old, version):
    # Idle times of some tens of microseconds are usual.
    hand_over = old["after_idle"][min(2, len(old["after_idle"]) - 1)]["hand_over_us"]
    after_idle = [[point["idle_us"], point["times"]] for point in old["after_idle"]]
    new = {"each_us": old["each_us"], "hand_over_us": hand_over, "hand_back_us": old["hand_back_us"], "after_idle": after_idle}
    new.update({"beside": old["beside"]} if "beside" in old else {})
    new["slowdown"] = [slowdown(one, version) for one in old["observed"]]
    return new | ({"power": old["power"]} if "power" in old else {})


def reduced(old, digest):
    costs = old["dispatcher"]["costs"][-1]
    whole = lambda cost: {name: round(ns) for name, ns in cost.items()}
    policies = {name: whole(costs["policies"][name]) for name in POLICIES if name in costs["policies"]}
    return {
        "format": old["format"],
        "version": 6,
        "provenance": old["provenance"] | {"reduced from": digest},
        "idle": old["idle"],
        "classes": {name: lanes(of_class, old["version"]) for name, of_class in old["classes"].items()},
        "dispatcher": {"any": whole(costs["any"]), "policies": policies},
    }


names = {}
for path in sorted(glob.glob(f"{FOLDER}/machines/*.json")):
    old = json.load(open(path))
    if old["version"] >= 6:
        continue
    digest = os.path.basename(path)[:-len(".json")]
    content = (json.dumps(reduced(old, digest), indent=2) + "\n").encode()
    names[digest] = xxhash.xxh3_64_hexdigest(content)
    with open(f"{FOLDER}/machines/{names[digest]}.json", "wb") as new:
        new.write(content)
    os.remove(path)
for path in glob.glob(f"{FOLDER}/2*.csv"):
    text = open(path).read()
    new = text
    for before, after in names.items():
        new = new.replace(before, after)
    if new != text:
        open(path, "w").write(new)
print(f"{len(names)} machine files were reduced")
