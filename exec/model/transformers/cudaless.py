"""Lets the torch wheel of the Python registry run without the 4 GB of CUDA packages that it asks for.

The wheel's libraries are linked to cuBLAS, cuDNN and others, and the loader wants each of them and every
symbol in them before anything runs, though nothing on a CPU calls one. This makes one small library in
torch/lib that has all those names and symbols; a call of any of them ends the program. Only libcudart, which
is small and is called, must be there.

    python cudaless.py      in the environment into which torch was installed with --no-deps

It needs a C compiler and readelf.
"""

import pathlib
import re
import subprocess
import sysconfig
import tempfile

LIBRARIES = pathlib.Path(sysconfig.get_path("platlib")) / "torch" / "lib"
ABSENT = "libcuda_absent.so"
HEADER = r"""#include <stdio.h>
#include <stdlib.h>
#define ABSENT(name) void name(void) { fputs(#name ": there is no CUDA here\n", stderr); abort(); }
"""


def readelf(option, library):
    """What readelf says of a library, as lines."""
    return subprocess.run(["readelf", "-W", option, library], check=True, capture_output=True,
                          text=True).stdout.splitlines()


def main():
    # All that `import torch` loads: the others are opened when a GPU is used.
    libraries = [p for p in LIBRARIES.glob("lib*.so*") if not p.is_symlink() and p.name not in (
        ABSENT, "libtorch_cuda_linalg.so", "libcaffe2_nvrtc.so")]
    installed = {p.name for p in (LIBRARIES.parent.parent / "nvidia").rglob("*.so.*")}
    needed, versions = set(), {}
    for library in libraries:
        for line in readelf("--dynamic", library):
            name = re.search(r"\(NEEDED\).*\[(lib(?:cu|nccl|nv).*)\]", line)
            if name and name[1] not in installed:
                needed.add(name[1])
        for line in readelf("--dyn-syms", library):
            name = re.search(r" UND ((?:__)?(?:cu|nccl|nvrtc|nvshmem)\w+)(?:@(\S+))?", line)
            if name and name[2] not in installed:
                versions.setdefault(name[2] or "", set()).add(name[1])
    if not needed:
        return  # a wheel without CUDA
    with tempfile.TemporaryDirectory() as folder:
        source, script = pathlib.Path(folder, "absent.c"), pathlib.Path(folder, "absent.map")
        source.write_text(HEADER + "".join(
            f"ABSENT({name})\n" for name in sorted(set().union(*versions.values()))))
        script.write_text("".join(
            f"{version} {{ {' '.join(name + ';' for name in sorted(names))} }};\n"
            for version, names in sorted(versions.items()) if version))
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", LIBRARIES / ABSENT, source,
                        f"-Wl,--version-script={script}"], check=True)
    for name in sorted(needed):
        link = LIBRARIES / name
        link.unlink(missing_ok=True)
        link.symlink_to(ABSENT)
    print(f"{len(needed)} CUDA libraries are stood in for")


if __name__ == "__main__":
    main()
