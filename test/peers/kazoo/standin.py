"""What `java` here runs first, with kazoo's own Python: kazoo hands its server keys as Java key stores.

In: a zoo.cfg. Out: on standard output, the name of another beside it, whose stores are PEM files.
"""

import sys
from pathlib import Path

import jks
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)
from cryptography.x509 import load_der_x509_certificate


def pem_of(store):
    parts = []
    for entry in store.private_keys.values():
        key = load_der_private_key(entry.pkey_pkcs8, None)
        parts.append(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        parts.extend(certificate(der) for _, der in entry.cert_chain)
    parts.extend(certificate(entry.cert) for entry in store.certs.values())
    return b"".join(parts)


def certificate(der):
    return load_der_x509_certificate(der).public_bytes(Encoding.PEM)


source = Path(sys.argv[1])
config = dict(line.split("=", 1) for line in source.read_text().splitlines() if "=" in line)
for name in ("keyStore", "trustStore"):
    location = config.get(f"ssl.{name}.location")
    if location is None or not location.endswith(".jks"):
        continue
    store = jks.KeyStore.load(location, config.pop(f"ssl.{name}.password"))
    pem = Path(location).with_suffix(".pem")
    pem.write_bytes(pem_of(store))
    pem.chmod(0o600)
    config[f"ssl.{name}.location"] = str(pem)
target = source.with_name("drover.cfg")
target.write_text("".join(f"{key}={value}\n" for key, value in config.items()))
print(target)
