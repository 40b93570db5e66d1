"""Servers on this machine that stand for other ones: S3 and Google's store by the few requests that a flow needs, and plain files.

They check neither signatures nor who asks; what is tested is that the real clients (s3fs, gcsfs, aiohttp) are called correctly.
"""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import json
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

WHEN = "2026-01-02T03:04:05.000Z"
FORBIDDEN = "forbidden"
"""A bucket that nobody may use."""


class Store(ThreadingHTTPServer):
    """A server with objects under ``bucket/key``, and the requests that came: method and path."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Requests)
        self.objects: dict[str, bytes] = {}
        self.requests: list[str] = []


class Requests(BaseHTTPRequestHandler):
    """Of one store."""

    protocol_version = "HTTP/1.1"
    server: Store

    def log_message(self, *arguments: object) -> None:
        """Nothing is printed."""

    def answer(self, status: int, body: bytes = b"", kind: str = "application/xml", **headers: str) -> None:
        """An answer; that to HEAD has no body."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self) -> bytes:
        """What was sent, without the frames in which clients may wrap it."""
        if self.headers.get("Transfer-Encoding") == "chunked":
            content = b"".join(iter(self._chunk, b""))
        else:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "aws-chunked" not in self.headers.get("Content-Encoding", ""):
            return content
        plain, at = b"", 0
        while True:
            end = content.index(b"\r\n", at)
            size = int(content[at:end].split(b";")[0], 16)
            if not size:
                return plain
            plain += content[end + 2 : end + 2 + size]
            at = end + 4 + size

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline().split(b";")[0], 16)
        content = self.rfile.read(size)
        self.rfile.readline()
        return content

    def dispatch(self) -> None:
        """Answer by the kind of store that the path belongs to."""
        parts = urlsplit(self.path)
        self.server.requests.append(f"{self.command} {parts.path}")
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        content = self.body()
        if f"/{FORBIDDEN}/" in f"{parts.path}/":
            self.answer(403, b'{"error": {"code": 403, "message": "secret"}}', "application/json")
        elif "/storage/v1" in parts.path:
            self.google(parts.path, query, content)
        else:
            self.amazon(unquote(parts.path).strip("/"), query, content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = dispatch

    def amazon(self, name: str, query: dict[str, str], content: bytes) -> None:
        """S3, with the bucket in the path; GET and HEAD of an object are those of any web server."""
        objects = self.server.objects
        source = self.headers.get("x-amz-copy-source")
        if self.command == "PUT":
            objects[name] = content if source is None else objects[unquote(source).strip("/")]
            self.answer(
                200,
                f"<CopyObjectResult><ETag>{tag(objects[name])}</ETag><LastModified>{WHEN}</LastModified></CopyObjectResult>".encode(),
                ETag=tag(objects[name]),
            )
        elif self.command == "DELETE":
            objects.pop(name, None)
            self.answer(204)
        elif self.command == "POST":
            keys = re.findall(r"<Key>(.*?)</Key>", content.decode())
            for key in keys:
                objects.pop(f"{name}/{key}", None)
            deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
            self.answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())
        elif name in objects:
            self.answer(200, objects[name], "application/octet-stream", ETag=tag(objects[name]))
        elif "list-type" in query:
            files, folders = self.listed(name, query)
            text = "".join(
                f"<Contents><Key>{escape(key)}</Key><LastModified>{WHEN}</LastModified><ETag>{tag(data)}</ETag>"
                f"<Size>{len(data)}</Size></Contents>"
                for key, data in files.items()
            ) + "".join(
                f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in folders
            )
            self.answer(
                200,
                f"<ListBucketResult><KeyCount>{len(files) + len(folders)}</KeyCount><IsTruncated>false</IsTruncated>{text}</ListBucketResult>".encode(),
            )
        else:
            self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")

    def google(self, path: str, query: dict[str, str], content: bytes) -> None:
        """Google's JSON interface."""
        objects = self.server.objects
        if path.startswith("/batch/"):
            names = re.findall(r"DELETE /storage/v1/b/(\S+?)/o/(\S+?)[? ]", content.decode())
            for bucket, key in names:
                objects.pop(f"{bucket}/{unquote(key)}", None)
            parts = "".join("--part\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n" for _ in names)
            self.answer(200, f"{parts}--part--".encode(), "multipart/mixed; boundary=part")
            return
        bucket, _, rest = path.partition("/storage/v1/b/")[2].partition("/o")
        rest = rest.removeprefix("/")
        key, verb, target = rest, "", ""
        for each in ("/rewriteTo/", "/moveTo/"):
            if each in rest:
                key, verb, target = (*rest.split(each), "")[0], each, rest.partition(each)[2]
        name = f"{unquote(bucket)}/{unquote(key)}"
        if path.startswith("/upload/"):
            head, _, data = content.partition(b"\n\n")[2].partition(b"\n--==0==")
            name = f"{unquote(bucket)}/{json.loads(head)['name']}"
            objects[name] = data.partition(b"\n\n")[2].rpartition(b"\n--==0==--")[0]
            self.say(resource(name, objects[name]))
        elif verb and name in objects:
            if verb == "/moveTo/":
                moved = f"{unquote(bucket)}/{unquote(target.removeprefix('o/'))}"
                objects[moved] = objects.pop(name)
                self.say(resource(moved, objects[moved]))
            else:
                there, _, copied = target.removeprefix("b/").partition("/o/")
                moved = f"{unquote(there)}/{unquote(copied)}"
                objects[moved] = objects[name]
                self.say({"done": True, "resource": resource(moved, objects[moved])})
        elif not key and self.command == "GET":
            files, folders = self.listed(unquote(bucket), query)
            items = [resource(f"{unquote(bucket)}/{file}", data) for file, data in files.items()]
            self.say({"items": items, "prefixes": folders})
        elif name not in objects:
            self.answer(404, b'{"error": {"code": 404, "message": "Not Found"}}', "application/json")
        elif self.command == "DELETE":
            del objects[name]
            self.answer(204)
        elif path.startswith("/download/") or query.get("alt") == "media":
            self.answer(200, objects[name], "application/octet-stream")
        else:
            self.say(resource(name, objects[name]))

    def say(self, document: Any) -> None:
        """Answer in JSON."""
        self.answer(200, json.dumps(document).encode(), "application/json")

    def listed(self, bucket: str, query: dict[str, str]) -> tuple[dict[str, bytes], list[str]]:
        """The objects below a prefix by their keys, and the folders, where a delimiter asks for them."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        files, folders = {}, []
        for name, data in sorted(self.server.objects.items()):
            key = name.removeprefix(f"{bucket}/")
            if key == name or not key.startswith(prefix):
                continue
            if delimiter and delimiter in key[len(prefix) :]:
                folders.append(prefix + key[len(prefix) :].partition(delimiter)[0] + delimiter)
            else:
                files[key] = data
        return files, sorted(set(folders))


def tag(content: bytes) -> str:
    """The ETag of an object."""
    return f'"{hashlib.md5(content).hexdigest()}"'


def resource(name: str, content: bytes) -> dict[str, Any]:
    """What Google says of an object."""
    bucket, _, key = name.partition("/")
    return {
        "kind": "storage#object", "bucket": bucket, "name": key, "size": str(len(content)), "generation": "1",
        "timeCreated": WHEN, "updated": WHEN, "etag": tag(content),
    }  # fmt: skip


@contextmanager
def serving(certificate: Path | None = None) -> Iterator[Store]:
    """A store that answers until the block ends; with a certificate and its key in one file, by https."""
    store = Store()
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        store.socket = context.wrap_socket(store.socket, server_side=True)
    thread = threading.Thread(target=store.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield store
    finally:
        store.shutdown()
        thread.join(300)
        store.server_close()


def own_certificate(path: Path) -> Path:
    """A certificate of 127.0.0.1 that nobody else signed, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return path
