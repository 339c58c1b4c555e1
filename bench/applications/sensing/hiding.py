"""Crypto-PAn on distinct uniform addresses, against yacryptopan, which gets a few of them."""

from __future__ import annotations

import ipaddress
import time
from typing import Any

import numpy as np

from bench import harness
from matchwood.applications.sensing.anonymity.check import check_anonymized
from matchwood.sensing import Anonymizer

KEY = bytes(range(32))
THEIRS = 500  # addresses that yacryptopan gets: 0.1 s
BAR = 800.0


def run(exponent: int = 20) -> list[harness.Result]:
    try:
        import yacryptopan
    except ImportError:
        print("yacryptopan is not installed: nothing to compare with")
        return []
    rng = np.random.default_rng(0)
    addresses = np.unique(rng.integers(0, 2**32, 1 << exponent, dtype=np.uint32))
    addresses = rng.permutation(addresses)
    ours, peer = Anonymizer("cryptopan", KEY), yacryptopan.CryptoPAn(KEY)
    found = ours(addresses)
    check_anonymized(addresses, found, "cryptopan", key=KEY)
    texts = [str(ipaddress.ip_address(int(address))) for address in addresses[:THEIRS]]
    theirs = [int(ipaddress.ip_address(peer.anonymize(text))) for text in texts]
    assert found[:THEIRS].tolist() == theirs
    times: dict[str, list[float]] = {"matchwood": [], "yacryptopan": []}
    for _ in range(harness.ROUNDS):
        times["matchwood"].append(_seconds(ours, addresses) / addresses.size)
        times["yacryptopan"].append(
            _seconds(lambda: [peer.anonymize(text) for text in texts]) / THEIRS
        )
    rows: dict[str, Any] = {
        name: {"median": float(np.median(values)), "best": min(values), "times": values}
        for name, values in times.items()
    }
    rows["matchwood"]["ratio"] = rows["yacryptopan"]["median"] / rows["matchwood"]["median"]
    rows["matchwood"]["bar"], rows["yacryptopan"]["ratio"] = BAR, 1.0
    title = f"Crypto-PAn, seconds an address of 2^{exponent}"
    result = {"title": title, "baseline": "yacryptopan", "rounds": harness.ROUNDS, "rows": rows}
    harness.show(result)
    return [result]


def _seconds(function: Any, *arguments: Any) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


if __name__ == "__main__":
    harness.main(run)
