"""Two network namespaces with a slow link between them, for `cluster.py namespaces`. Needs root.

    python benchmarks/cluster_network.py        # makes them, measures the link, and removes them

Where the kernel has netem, the namespaces are joined by a veth pair with `netem delay D rate R` at both ends. Where it
has not, by two TUN devices: a process here takes the packets of one, holds each back for as long as the link would, and
gives it to the other; packets for which there is no room are dropped, as netem does. Bytes are those of the interface.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
QUEUE = 1000  # packets on the way in one direction; netem's own limit
CLIENT, WORKERS = "cutsvm-client", "cutsvm-workers"
ADDRESSES = {CLIENT: "10.77.0.1", WORKERS: "10.77.0.2"}
DEVICES = {CLIENT: "cutsvm0", WORKERS: "cutsvm1"}


@dataclass(frozen=True)
class Link:
    """delay: milliseconds, one way. rate: megabits a second. kind: "netem" or "tun"."""

    delay: float
    rate: float
    kind: str

    def inside(self, namespace: str, words: Sequence[object]) -> list[str]:
        """A command that runs in a namespace."""
        return ["ip", "netns", "exec", namespace, *map(str, words)]

    def received(self) -> int:
        """Bytes that came to the client, as its interface has counted them."""
        return self._count("rx_bytes")

    def sent(self) -> int:
        return self._count("tx_bytes")

    def _count(self, name: str) -> int:
        file = f"/sys/class/net/{DEVICES[CLIENT]}/statistics/{name}"
        return int(subprocess.run(self.inside(CLIENT, ["cat", file]), capture_output=True, check=True).stdout)


def run(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


def has_netem() -> bool:
    """Whether the kernel has netem; asked on a pair of interfaces of its own."""
    try:
        run("ip", "link", "add", "cutsvm-try", "type", "veth", "peer", "name", "cutsvm-try1")
    except subprocess.CalledProcessError:
        return False
    try:
        run("tc", "qdisc", "add", "dev", "cutsvm-try", "root", "netem", "delay", "1ms")
        return True
    except subprocess.CalledProcessError:
        return False
    finally:
        run("ip", "link", "del", "cutsvm-try")


@contextmanager
def namespaces(delay: float = 5.0, rate: float = 100.0) -> Iterator[Link]:
    """Both namespaces and the link; they are removed at the end."""
    link = Link(delay, rate, "netem" if has_netem() else "tun")
    process: subprocess.Popen[bytes] | None = None
    try:
        for name in ADDRESSES:
            run("ip", "netns", "add", name)
            run(*link.inside(name, ["ip", "link", "set", "lo", "up"]))
        if link.kind == "netem":
            run("ip", "link", "add", DEVICES[CLIENT], "type", "veth", "peer", "name", DEVICES[WORKERS])
        else:
            words = [sys.executable, Path(__file__).resolve(), "--forward", f"{delay},{rate}"]
            process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE)
            assert process.stdout is not None
            process.stdout.readline()  # the devices are there
        for name, device in DEVICES.items():
            run("ip", "link", "set", device, "netns", name)
            run(*link.inside(name, ["ip", "address", "add", f"{ADDRESSES[name]}/24", "dev", device]))
            run(*link.inside(name, ["ip", "link", "set", device, "up"]))
            if link.kind == "netem":
                words = f"tc qdisc add dev {device} root netem delay {delay}ms rate {rate}mbit limit {QUEUE}".split()
                run(*link.inside(name, words))
        yield link
    finally:
        if process is not None:
            process.terminate()
            process.wait()
        for name in ADDRESSES:
            with suppress(subprocess.CalledProcessError):
                run("ip", "netns", "del", name)


# The process between two TUN devices


def open_tun(name: str) -> int:
    """A new device; packets are read from and written to what is returned."""
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return file


def forward(delay: float, rate: float) -> None:
    """Packets of each device to the other one, after `delay` seconds and at no more than `rate` bytes a second."""
    devices = [open_tun(DEVICES[name]) for name in (CLIENT, WORKERS)]
    print("ready", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    waiting: list[deque[tuple[float, bytes]]] = [deque(), deque()]
    free = [0.0, 0.0]  # when the line of each direction is free again
    while True:
        first = min((queue[0][0] for queue in waiting if queue), default=None)
        pause = None if first is None else max(0.0, first - time.monotonic())
        ready = select.select(devices, [], [], pause)[0]
        for k, device in enumerate(devices):
            if device in ready:
                _take(device, waiting[k], free, k, delay, rate)
            other, now = devices[1 - k], time.monotonic()
            while waiting[k] and waiting[k][0][0] <= now:
                with suppress(OSError):  # the other side is not up yet, or has no room
                    os.write(other, waiting[k][0][1])
                waiting[k].popleft()


def _take(device: int, queue: deque[tuple[float, bytes]], free: list[float], k: int, delay: float, rate: float) -> None:
    for _ in range(64):
        try:
            packet = os.read(device, 1 << 16)
        except OSError:  # nothing more there, or the device is not up
            return
        if len(queue) < QUEUE:
            free[k] = max(time.monotonic(), free[k]) + len(packet) / rate
            queue.append((free[k] + delay, packet))


# What the link does

ECHO = """
import socket, sys
with socket.create_server((sys.argv[1], 7707)) as server:
    print("ready", flush=True)
    with server.accept()[0] as one:
        while (some := one.recv(1)):
            one.sendall(some)
            if some == b"x":
                one.sendall(bytes(int(sys.argv[2])))
                break
"""


def probe(address: str, size: int) -> dict[str, float]:
    """Milliseconds of a round trip, and megabits a second that come in."""
    with socket.create_connection((address, 7707)) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        trips = []
        for _ in range(20):
            began = time.perf_counter()
            line.sendall(b".")
            line.recv(1)
            trips.append(time.perf_counter() - began)
        began, got = time.perf_counter(), 0
        line.sendall(b"x")
        while got < size + 1:
            got += len(line.recv(1 << 16))
        seconds = time.perf_counter() - began
    return {"trip_ms": round(1e3 * sorted(trips)[10], 2), "megabits": round(8e-6 * size / seconds, 1)}


def measure(link: Link, size: int = 10_000_000) -> dict[str, float]:
    """The link as a process in the client's namespace finds it."""
    words = link.inside(WORKERS, [sys.executable, "-c", ECHO, ADDRESSES[WORKERS], size])
    server = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        words = [sys.executable, Path(__file__).resolve(), "--probe", f"{ADDRESSES[WORKERS]},{size}"]
        found = subprocess.run(link.inside(CLIENT, words), capture_output=True, text=True, check=True, timeout=120)
    finally:
        server.terminate()
        server.wait()
    return dict(json.loads(found.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--delay", type=float, default=5.0, help="milliseconds, one way")
    parser.add_argument("--rate", type=float, default=100.0, help="megabits a second")
    parser.add_argument("--forward", help=argparse.SUPPRESS)
    parser.add_argument("--probe", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.forward:
        delay, rate = map(float, options.forward.split(","))
        forward(delay / 1e3, rate * 1e6 / 8.0)
    elif options.probe:
        address, size = options.probe.split(",")
        print(json.dumps(probe(address, int(size))))
    else:
        with namespaces(options.delay, options.rate) as link:
            before = link.received()
            print(f"{link.kind}: {measure(link)}, {link.received() - before:,} bytes at the client's interface")


if __name__ == "__main__":
    main()
