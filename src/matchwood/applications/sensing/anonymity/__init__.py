"""Anonymous addresses: traffic of the same structure in which nobody can be recognised.

===============  ====================================================================
method           what it keeps
===============  ====================================================================
None             everything: the addresses as they are
"cryptopan"      prefixes: addresses that share exactly k bits still do (Crypto-PAn)
"permutation"    which addresses are equal, nothing else; no dependency; on GPUs too
"truncate"       the first `bits`; many addresses become one
===============  ====================================================================

Read on in reference.py (the definitions), anonymizer.py (keys, tables made once), cpu.py, gpu.cu.
"""

from __future__ import annotations

from typing import Any

from matchwood.applications.sensing.anonymity.anonymizer import Anonymizer, new_key

__all__ = ["Anonymizer", "anonymize", "new_key"]


def anonymize(
    addresses: Any,
    method: str | None,
    key: Any = None,
    *,
    bits: int | None = None,
    threads: int | None = None,
) -> Any:
    """Replace addresses by anonymous ones.

    Parameters
    ----------
    addresses : ndarray of uint32, on the CPU or a GPU
        As numbers: 10.0.0.1 is 167772161.  Or of IPv6: a uint64 array of two a row on the CPU, the
        upper half first; all but "permutation" take them.
    method : {None, "cryptopan", "permutation", "truncate"}
        "cryptopan" keeps prefixes [1]_: bit i of an address is flipped by a bit that AES makes of
        the i bits before it.  "permutation" is one permutation of all 2^32 addresses that depends
        on the key: ten Feistel rounds on halves of 16 bits, each with a table from SHAKE-256 of
        key and round.  "truncate" keeps the first `bits`.
    key : 32 bytes, or the path of a key file, or None
        A file (`new_key` makes one) holds 32 bytes, or 64 hexadecimal digits and the end of their
        line; it is refused where others may read it.  None where the method has no key.
    bits : int or None
        Of "truncate": 0 to 32, of IPv6 to 128.
    threads : int or None
        CPU only; AES itself runs on one.

    Returns
    -------
    ndarray as given
        In the order given, where the input lives.

    Raises
    ------
    TypeError, ValueError, PermissionError, ModuleNotFoundError
        If an argument is of the wrong kind; if others may read the key file; if the package
        cryptography, which has AES, is missing ("cryptopan" only).  No message shows the key.

    Notes
    -----
    The statistics of traffic do not change under "cryptopan" and "permutation": both give
    different addresses to different addresses.  Who knows some pairs of addresses learns something
    about others: under "cryptopan" their prefixes.  AES runs on the host, 12 blocks an address for
    a million random ones; addresses are sorted first, so that each shares most with the one before.

    To anonymize many blocks with one key make an `Anonymizer`, whose tables are made once.

    References
    ----------
    .. [1] J. Xu, J. Fan, M. Ammar, S. B. Moon. Prefix-preserving IP address anonymization:
       measurement-based security evaluation and a new cryptography-based scheme. ICNP 2002.
       doi:10.1109/ICNP.2002.1181415

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood import anonymize
    >>> a = np.array([0x0A000001, 0x0A000002, 0x0A000001], np.uint32)
    >>> [hex(x) for x in anonymize(a, "truncate", bits=8)]
    ['0xa000000', '0xa000000', '0xa000000']
    >>> import secrets
    >>> b = anonymize(a, "permutation", secrets.token_bytes(32))
    >>> b[0] == b[2], b[0] == b[1]
    (np.True_, np.False_)
    """
    wide = getattr(addresses, "ndim", 1) == 2 and getattr(addresses, "dtype", None) == "uint64"
    found = Anonymizer(method, key, bits, version=6 if wide else 4, caller="anonymize")
    return found.apply(addresses, threads=threads, caller="anonymize")
