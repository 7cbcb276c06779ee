#!/usr/bin/env python3
"""Compiles the kernels with NVRTC, NVIDIA's run-time compiler. It needs neither a GPU nor the CUDA toolkit:

    python3 -m venv /tmp/nvrtc && /tmp/nvrtc/bin/pip install nvidia-cuda-nvrtc-cu12==12.4.127
    /tmp/nvrtc/bin/python kernels/build.py           # writes kernels/compiled/
    /tmp/nvrtc/bin/python kernels/build.py --check   # fails if kernels/compiled/ is stale

It also writes results/gpu/kernels.csv: the registers, shared memory and occupancy of each kernel.

What it writes is committed and embedded in the binary, so that building Tandem needs no compiler but Rust's. PTX for
compute_75 runs on every GPU since Turing (drivers of CUDA 12.4 and later compile it when they load it); GPUs of
compute capability 9.0 load the native image and skip that. Warnings are errors, and so are registers spilled to memory,
and comments that name a file which does not exist.
"""

import argparse
import ctypes
import pathlib
import re
import sys

VERSION = (12, 4)
PACKAGE = "nvidia-cuda-nvrtc-cu12==12.4.127"
KERNELS = pathlib.Path(__file__).resolve().parent
TABLE = KERNELS.parent / "results" / "gpu" / "kernels.csv"
# Compile units: source, name of what it compiles to.
UNITS = [
    ("tandem.cu", "tandem"),
    ("ding/ding.cu", "ding"),
    ("huang/huang.cu", "huang"),
    ("wang/wang.cu", "wang"),
    ("host_reads.cu", "host_reads"),
    ("wei/wei.cu", "wei"),
]
OPTIONS = ["--std=c++17", "--fmad=false", "--extra-device-vectorization", "--ptxas-options=-v"]
# Committed for each unit: file suffix, architecture.
OUTPUTS = [(".ptx", "compute_75"), (".sm_90.cubin", "sm_90")]
# Compiled to be checked only: every architecture whose registers we vouch for.
CHECKED = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90"]
# What a multiprocessor of compute capability 9.0 has, for the table.
SM_THREADS, SM_BLOCKS, SM_REGISTERS, SM_SHARED = 2048, 32, 65536, 227 * 1024


def load_nvrtc():
    """Opens the library of the pip package, or the system's, if it is of the right version."""
    names = [str(path) for folder in sys.path for path in pathlib.Path(folder).glob("nvidia/cuda_nvrtc/lib/libnvrtc.so.12")]
    for name in names + ["libnvrtc.so.12"]:
        try:
            nvrtc = ctypes.CDLL(name)
        except OSError:
            continue
        major, minor = ctypes.c_int(), ctypes.c_int()
        nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        if (major.value, minor.value) == VERSION:
            nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
            return nvrtc
    sys.exit(f"error: NVRTC {VERSION[0]}.{VERSION[1]} not found; install it with: pip install {PACKAGE}")


class Compiler:
    """Compiles one unit, with its sources handed over in memory so that no path reaches the output."""

    def __init__(self, nvrtc, unit):
        self.nvrtc = nvrtc
        self.name = unit
        sources = sorted(path for path in KERNELS.rglob("*.cu*") if path != KERNELS / unit and path.suffix in (".cu", ".cuh"))
        self.unit = (KERNELS / unit).read_bytes()
        self.names = [path.relative_to(KERNELS).as_posix().encode() for path in sources]
        self.texts = [path.read_bytes() for path in sources]

    def call(self, name, *arguments):
        result = getattr(self.nvrtc, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: {self.nvrtc.nvrtcGetErrorString(result).decode()}")

    def fetch(self, program, what):
        """Reads one of a program's outputs: its log, its PTX, its native image."""
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{what}", program, buffer)
        return buffer.raw

    def compile(self, architecture):
        """Returns (PTX or native image, log)."""
        program = ctypes.c_void_p()
        count = len(self.names)
        strings = ctypes.c_char_p * count
        self.call("nvrtcCreateProgram", ctypes.byref(program), self.unit, self.name.encode(), count,
                  strings(*self.texts), strings(*self.names))
        options = [option.encode() for option in [f"--gpu-architecture={architecture}", *OPTIONS]]
        try:
            self.call("nvrtcCompileProgram", program, len(options), (ctypes.c_char_p * len(options))(*options))
        except RuntimeError as error:
            sys.exit(f"{self.fetch(program, 'ProgramLog').rstrip(bytes(1)).decode()}\nerror: {architecture}: {error}")
        log = self.fetch(program, "ProgramLog").rstrip(b"\0").decode()
        image = self.fetch(program, "CUBIN") if architecture.startswith("sm_") else self.fetch(program, "PTX").rstrip(b"\0")
        self.call("nvrtcDestroyProgram", ctypes.byref(program))
        return image, log


def complaints(log):
    """Lines of a log that must not be there: warnings, and registers spilled to memory."""
    return [line.strip() for line in log.splitlines()
            if "warning" in line.lower() or re.search(r"\b[1-9]\d* bytes (spill|stack)", line)]


def missing_files():
    """Files that comments of kernels name, and kernels that the host's comments name, which do not exist."""
    root = KERNELS.parent
    kernels = [path for path in KERNELS.rglob("*") if path.suffix in (".cu", ".cuh", ".py")]
    others = [path for folder in ("crates", "tests", "results") for path in (root / folder).rglob("*") if path.is_file()]
    known = [f"/{path.relative_to(root).as_posix()}" for path in kernels + others]
    for path in kernels + [path for path in others if path.suffix == ".rs"]:
        suffixes = "cuh?" if path.suffix == ".rs" else "cuh?|rs|py|csv"
        for name in sorted(set(re.findall(rf"(?<![\w./-])([\w-]+(?:/[\w-]+)*\.(?:{suffixes}))\b", path.read_text()))):
            if not any(file.endswith(f"/{name}") for file in known):
                yield path.relative_to(root), name


def threads_of(sources):
    """Returns {kernel: threads of a block}, from the launch bounds in the sources."""
    constants = {name: int(value) for name, value in re.findall(r"constexpr u32 (\w+) = (\d+);", sources)}
    bounds = re.findall(r"__launch_bounds__\((\w+)[^)]*\)\s+(\w+)\(", sources)
    return {kernel: constants[threads] for threads, kernel in bounds}


def table_rows(unit, log, threads):
    """One row of the table for each kernel in the compiler's log for sm_90."""
    rows = []
    found = re.findall(
        r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores.*?Used (\d+) registers([^\n]*)",
        log, re.DOTALL)
    for kernel, stack, spilled, registers, others in sorted(found):
        shared = re.search(r"(\d+) bytes smem", others)
        registers, shared, size = int(registers), int(shared[1]) if shared else 0, threads[kernel]
        # Registers are given to warps 256 at a time, shared memory to blocks with 1 KiB of the system's.
        warps = size // 32
        by_registers = SM_REGISTERS // (-(-registers * 32 // 256) * 256) // warps
        by_shared = SM_SHARED // (shared + 1024)
        blocks = min(SM_THREADS // size, SM_BLOCKS, by_registers, by_shared)
        occupancy = 100 * blocks * size // SM_THREADS / 100
        cells = [kernel, unit, size, registers, int(stack) + int(spilled), shared, blocks, occupancy]
        rows.append(",".join(map(str, cells)) + "\n")
    return rows


def table(rows):
    """The resources of all kernels as CSV."""
    return (f"# command: kernels/build.py\n# device: compute capability 9.0 (H100, H200), NVRTC {VERSION[0]}.{VERSION[1]}\n"
            "kernel,unit,block_threads,registers,stack_bytes,shared_bytes,blocks,occupancy\n" + "".join(rows))


def main():
    parser = argparse.ArgumentParser(description="Compiles the CUDA kernels.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if what is committed is stale")
    parser.add_argument("--verbose", action="store_true", help="show registers and shared memory of each kernel")
    arguments = parser.parse_args()

    nvrtc = load_nvrtc()
    failed = False
    for path, name in missing_files():
        print(f"error: {path}: there is no {name}", file=sys.stderr)
        failed = True
    rows = []
    for unit, stem in UNITS:
        compiler = Compiler(nvrtc, unit)
        threads = threads_of(b"\n".join([compiler.unit, *compiler.texts]).decode())
        for architecture in CHECKED:
            _, log = compiler.compile(architecture)
            if architecture == "sm_90":
                rows += table_rows(unit, log, threads)
            if arguments.verbose:
                print(f"{unit}, {architecture}:\n{log}")
            for line in complaints(log):
                print(f"error: {unit}, {architecture}: {line}", file=sys.stderr)
                failed = True
        for suffix, architecture in OUTPUTS:
            image, log = compiler.compile(architecture)
            path = KERNELS / "compiled" / (stem + suffix)
            for line in complaints(log):
                print(f"error: {unit}, {architecture}: {line}", file=sys.stderr)
                failed = True
            if arguments.check:
                if not path.exists() or path.read_bytes() != image:
                    print(f"error: {path} is stale: run kernels/build.py and commit what it writes", file=sys.stderr)
                    failed = True
            else:
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(image)
                print(f"{path}: {len(image)} bytes")
    if arguments.check:
        if not TABLE.exists() or TABLE.read_text() != table(rows):
            print(f"error: {TABLE} is stale: run kernels/build.py and commit what it writes", file=sys.stderr)
            failed = True
    else:
        TABLE.write_text(table(rows))
        print(TABLE)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
