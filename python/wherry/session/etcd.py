# SPDX-License-Identifier: Apache-2.0
"""The calls of etcd v3 that announcements need, through its JSON gateway.

https://etcd.io/docs/v3.5/dev-guide/api_grpc_gateway/: keys and values are in base64, and 64-bit numbers are texts.
Fields with value 0 are omitted. Each call blocks for at most TIMEOUT_S. Not thread-safe. Keeps no connection open.
"""

from __future__ import annotations

import base64
import http.client
import json
import urllib.error
import urllib.request
from typing import Any

from wherry.errors import Error, InvalidArgument, Unavailable

TIMEOUT_S = 5.0
_MAX_REPLY = 1 << 24


class Etcd:
    """An etcd at a URL. Every call raises Unavailable if etcd does not answer; Error if etcd refuses the call."""

    def __init__(self, url: str) -> None:
        """`url`: http://host:port, or https:// with a certificate from an authority that this machine trusts."""
        if not url.startswith(("http://", "https://")):
            raise InvalidArgument(f"{url!r} is not the address of an etcd: want http://host:port or https://host:port")
        self.url = url.rstrip("/")
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def under(self, prefix: str) -> dict[str, str]:
        """Reads the values of all keys that begin with `prefix`, in the order of the keys."""
        end = prefix.encode()[:-1] + bytes([prefix.encode()[-1] + 1])
        reply = self._call("kv/range", {"key": _base64(prefix.encode()), "range_end": _base64(end)})
        found = {_text(one["key"]): _text(one.get("value", "")) for one in reply.get("kvs", [])}
        return dict(sorted(found.items()))

    def grant(self, seconds: int) -> int:
        """Makes a lease that ends after `seconds` unless keep() is called."""
        return int(self._call("lease/grant", {"TTL": seconds})["ID"])

    def keep(self, lease: int) -> bool:
        """Renews a lease for its full time. False: the lease has ended."""
        reply = self._call("lease/keepalive", {"ID": lease})
        return int(reply.get("result", {}).get("TTL", 0)) > 0

    def revoke(self, lease: int) -> None:
        """Ends a lease and deletes its keys."""
        self._call("lease/revoke", {"ID": lease})

    def put_if(self, key: str, value: str, lease: int, *, found: str | None) -> bool:
        """Writes the key under the lease if its current value is `found` (None: if the key does not exist)."""
        name = _base64(key.encode())
        compare = (
            {"key": name, "target": "CREATE", "create_revision": "0"}
            if found is None
            else {"key": name, "target": "VALUE", "value": _base64(found.encode())}
        )
        put = {"request_put": {"key": name, "value": _base64(value.encode()), "lease": lease}}
        return bool(self._call("kv/txn", {"compare": [compare], "success": [put]}).get("succeeded", False))

    def _call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{self.url}/v3/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                text = answer.read(_MAX_REPLY)
        except urllib.error.HTTPError as error:
            raise Error(f"the etcd at {self.url} refused {path}: {_reason(error)}") from None
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            raise Unavailable(f"no etcd answers at {self.url}: {getattr(error, 'reason', error)}") from None
        try:
            reply = json.loads(text)
        except ValueError:
            reply = None
        if not isinstance(reply, dict):
            raise Error(f"what answers at {self.url} is not an etcd: {text[:80]!r}")
        return reply


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        reply = json.loads(error.read(_MAX_REPLY))
        return str(reply.get("message") or reply.get("error") or error.reason)
    except (ValueError, AttributeError, OSError):
        return str(error.reason)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode(errors="replace")
