#!/usr/bin/env python3
"""Checks the licences of all packages that the workspace links: `cargo metadata --format-version 1 | .ci/licences.py`.

Each package needs a licence expression that the allowed licences satisfy. Packages of the workspace itself are not checked.
Exits with 1 and the names of the others."""
import json
import re
import sys

# Permissive licences: they ask for notices, not for sources.
ALLOWED = {"0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC",
           "MIT", "NCSA", "Unicode-3.0", "Unlicense", "Zlib"}


def is_allowed(expression):
    """Whether an SPDX expression is satisfied: OR of ANDs, with parentheses; `/` is the old form of OR."""
    tokens = re.findall(r"\(|\)|[^()\s]+(?:\s+WITH\s+[^()\s]+)?", expression.replace("/", " OR "))

    def alternatives(at):
        value, at = all_of(at)
        while at < len(tokens) and tokens[at] == "OR":
            other, at = all_of(at + 1)
            value = value or other
        return value, at

    def all_of(at):
        value, at = one(at)
        while at < len(tokens) and tokens[at] == "AND":
            other, at = one(at + 1)
            value = value and other
        return value, at

    def one(at):
        if tokens[at] == "(":
            value, at = alternatives(at + 1)
            return value, at + 1
        return tokens[at] in ALLOWED, at + 1

    return alternatives(0)[0]


def main():
    metadata = json.load(sys.stdin)
    others = [package for package in metadata["packages"] if package["id"] not in metadata["workspace_members"]]
    refused = [package for package in others if not is_allowed(package["license"] or "none")]
    for package in refused:
        print(f"error: {package['name']} {package['version']}: licence {package['license']}", file=sys.stderr)
    print(f"{len(others) - len(refused)} of {len(others)} packages have an allowed licence")
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    main()
