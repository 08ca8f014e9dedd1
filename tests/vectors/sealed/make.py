"""Make `logs.jsonl`, by `docs/encryption.md` alone: nothing of statestore is used."""

import hashlib
import hmac
import json
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM


def hkdf(key, info, n):
    prk = hmac.new(b"\0" * 32, key, hashlib.sha256).digest()
    out = b""
    t = b""
    i = 1
    while len(out) < n:
        t = hmac.new(prk, t + info + bytes([i]), hashlib.sha256).digest()
        out += t
        i += 1
    return out[:n]


def derive(key):
    d = hkdf(key, b"statestore sealed records 1", 72)
    return d[:32], d[32:64], d[64:].hex()


def seal_log(key, records):
    enc, non, kid = derive(key)
    out = b""
    offset = 0
    origin = bytes(28)
    seal0 = None
    for line, body in records:
        bound = (
            b"statestore sealed records 1" + origin + offset.to_bytes(8, "big") + len(line).to_bytes(8, "big") + line
        )
        nonce = hmac.new(non, bound + body, hashlib.sha256).digest()[:12]
        ct = AESGCM(enc).encrypt(nonce, body, bound)
        seal = nonce + ct[-16:]
        out += line[:-1] + b',"key":"' + kid.encode() + b'","seal":"' + seal.hex().encode() + b'"}\n' + ct[:-16] + b"\n"
        if seal0 is None:
            seal0 = seal
            origin = seal
        offset += len(line) + len(body) + 2
    return out


k1 = bytes(range(32))
k2 = bytes(range(255, 223, -1))
L = lambda *a: [(x.encode() if isinstance(x, str) else x, y) for x, y in a]
logs = {
    "one-record": L(('{"n":1,"kind":"start","id":"0a1b2c3d","time":"2026-09-28T12:00:00.5Z","len":0}', b"")),
    "three-records": L(
        ('{"n":1,"kind":"start","id":"0a1b2c3d","time":"2026-09-28T12:00:00.5Z","len":0}', b""),
        (
            '{"n":2,"kind":"message","id":"4e5f6071","time":"2026-09-28T12:00:03Z","len":8,"type":"text/plain","via":"a\\u0026b"}',
            b"one\ntwo\0",
        ),
        (
            '{"n":3,"kind":"result","id":"8293a4b5","time":"2026-09-28T12:00:04Z","len":4,"for":"4e5f6071","exit":0,"cache":{"a":[1,2]}}',
            bytes([0, 255, 10, 13]),
        ),
    ),
    "equal-bodies": L(
        *[
            ('{"n":%d,"kind":"message","id":"00000000","time":"2026-09-28T12:00:00Z","len":2}' % n, b"ok")
            for n in (1, 2, 3)
        ]
    ),
    "odd-header": L(
        (
            '{ "LEN" : 3 , "kind":"x","unknown":{"deep":[1]},"key":"0123456789abcdef","seal":"' + "0" * 56 + '" \t}',
            b"abc",
        )
    ),
}
rows = []
for key in (k1, k2):
    for name, recs in logs.items():
        rows.append(
            {
                "name": name,
                "key": key.hex(),
                "key_id": derive(key)[2],
                "plain": b"".join(l + b"\n" + b + b"\n" for l, b in recs).hex(),
                "sealed": seal_log(key, recs).hex(),
            }
        )
open(Path(__file__).with_name("logs.jsonl"), "w").write("".join(json.dumps(r) + "\n" for r in rows))
