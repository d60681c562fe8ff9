#!/usr/bin/env python3
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""netns.py CONGESTION_CONTROL COMMAND...: runs a command in a network namespace of its own, with
loopback up and an interface "bench0" whose traffic to itself goes over loopback too: UCX takes no
loopback interface. As an ordinary user it needs user namespaces."""
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
MS_REC, MS_SLAVE = 0x4000, 0x80000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def enter():
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    flags = CLONE_NEWNET | CLONE_NEWNS | (CLONE_NEWUSER if uid != 0 else 0)
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if uid != 0:
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"{uid} {uid} 1")
        write("/proc/self/gid_map", f"{gid} {gid} 1")
    # /sys/class/net shows the interfaces of the namespace that mounted it. Best effort.
    if libc.mount(None, b"/", None, MS_REC | MS_SLAVE, None) == 0:
        libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None)


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(sock, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def add_interface():
    """Best effort: without iproute2 and veth UCX's runs report that they cannot work."""
    for words in ("link add bench0 type veth peer name bench1", "link set bench1 up",
                  "link set bench0 up", "addr add 10.231.0.1/24 dev bench0"):
        try:
            subprocess.run(["ip", *words.split()], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return


def main():
    try:
        enter()
        loopback_up()
        add_interface()
        write("/proc/sys/net/ipv4/tcp_congestion_control", sys.argv[1])
    except OSError as error:
        print(f"no network namespace: {error}", file=sys.stderr)
        return 1
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
