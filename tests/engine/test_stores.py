"""Sources and targets on other machines, by their real clients: servers on this one stand for S3, Google's store and the web."""

from __future__ import annotations

import importlib.util
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from anonflow import engine
from tests import ROOT
from tests.cases.elsewhere import people, write_flow
from tests.cases.stores import FORBIDDEN, Store, own_certificate, serving

CLIENTS = {"s3": "s3fs", "gs": "gcsfs", "http": "aiohttp", "https": "aiohttp"}
"""Kind of address -> the package that reaches it."""

KEY = "the-secret-access-key"
SEED = "5eed" * 8


@pytest.fixture
def store() -> Iterator[Store]:
    with serving() as running:
        yield running


def needs(scheme: str) -> None:
    """Skip where the client is not installed."""
    if importlib.util.find_spec(CLIENTS[scheme]) is None:
        pytest.skip(f"{CLIENTS[scheme]} is not installed (extra: remote)")


def run(folder: Path, store: Store, source: str, *targets: str, **more: str) -> tuple[int, str, str]:
    """The exit status of the shell's ``run`` on this source, and what it says; clients are sent to the store."""
    flow = write_flow(folder, source, *targets)
    (folder / "seed").write_text(SEED, encoding="utf-8")
    address = f"http://127.0.0.1:{store.server_port}"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "me",
        "AWS_SECRET_ACCESS_KEY": KEY,
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "STORAGE_EMULATOR_HOST": address,
        "FSSPEC_GCS_TOKEN": "anon",
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",  # it asks Google by another protocol what a bucket is
        "NO_PROXY": "127.0.0.1",
        **more,
    }
    done = subprocess.run(
        [sys.executable, "-m", "anonflow", "run", str(flow), "--seed-file", str(folder / "seed"), "--quiet"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=1200,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def parquet(rows: slice = slice(None)) -> bytes:
    stream = io.BytesIO()
    people().iloc[rows].to_parquet(stream, index=False)
    return stream.getvalue()


@pytest.fixture
def plain(tmp_path: Path) -> bytes:
    """What the same flow publishes from a file beside it."""
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "people.parquet").write_bytes(parquet())
    (folder / "seed").write_text(SEED, encoding="utf-8")
    engine.run(write_flow(folder, "{parquet: people.parquet}"), seed=engine.read_seed_file(folder / "seed"))
    return (folder / "out" / "people.csv").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_store_is_read_and_written(tmp_path: Path, store: Store, plain: bytes, scheme: str) -> None:
    needs(scheme)
    store.objects["hospital/in/people.parquet"] = parquet()
    before = dict(store.objects)
    status, _, err = run(
        tmp_path,
        store,
        f"{{parquet: '{scheme}://hospital/in/people.parquet'}}",
        f"{scheme}://hospital/out/people.csv",
        f"{scheme}://hospital/out/people.html",
    )
    assert status == 0, err
    assert store.objects["hospital/out/people.csv"] == plain
    assert b"</html>" in store.objects["hospital/out/people.html"]
    # nothing half done is left, and the source is as it was
    assert set(store.objects) - set(before) == {
        "hospital/out/people.csv",
        "hospital/out/people.csv-metadata.json",
        "hospital/out/people.html",
    }
    assert store.objects["hospital/in/people.parquet"] == before["hospital/in/people.parquet"]
    assert any(".people.csv.part" in request for request in store.requests)  # under another name first
    assert KEY not in err


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_folder_of_parquet_in_a_store(tmp_path: Path, store: Store, plain: bytes, scheme: str) -> None:
    needs(scheme)
    for number in range(3):
        store.objects[f"hospital/parts/part-{number}.parquet"] = parquet(slice(16 * number, 16 * number + 16))
    store.objects["hospital/parts/_SUCCESS"] = b""
    status, _, err = run(tmp_path, store, f"{{parquet: '{scheme}://hospital/parts', pieces: 20}}")
    assert status == 0, err
    assert sorted((tmp_path / "out" / "people.csv").read_bytes().split()) == sorted(plain.split())


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["s3", "gs"])
@pytest.mark.parametrize("written", [False, True])
def test_what_a_store_refuses_is_one_sentence(
    tmp_path: Path, store: Store, scheme: str, written: bool
) -> None:
    needs(scheme)
    store.objects["hospital/people.parquet"] = parquet()
    cases = (
        [(f"{FORBIDDEN}/people.csv", "cannot be written")]
        if written
        else [
            ("hospital/nobody.parquet", "cannot be fetched"),
            (f"{FORBIDDEN}/people.parquet", "cannot be fetched"),
        ]
    )
    for name, expected in cases:
        source = f"{scheme}://hospital/people.parquet" if written else f"{scheme}://{name}"
        targets = (f"{scheme}://{name}",) if written else ()
        status, out, err = run(tmp_path, store, f"{{parquet: '{source}'}}", *targets)
        assert (status, out) == (2, ""), err
        (line,) = [line for line in err.splitlines() if line.startswith("anonflow: ")]
        assert f"{scheme}://{name}: {expected} (" in line
        assert "Traceback" not in err
        assert "secret" not in err
        assert set(store.objects) == {"hospital/people.parquet"}


@pytest.mark.slow
def test_a_web_server_is_read(tmp_path: Path, store: Store, plain: bytes) -> None:
    needs("http")
    store.objects["data/people.parquet"] = parquet()
    address = f"http://127.0.0.1:{store.server_port}/data"
    status, _, err = run(tmp_path, store, f"{{parquet: '{address}/people.parquet?signature=secret'}}")
    assert status == 0, err
    assert (tmp_path / "out" / "people.csv").read_bytes() == plain
    status, _, err = run(tmp_path, store, f"{{parquet: '{address}/nobody.parquet?signature=secret'}}")
    assert status == 2
    assert f"{address}/nobody.parquet: cannot be fetched (FileNotFoundError); check the address" in err
    assert "secret" not in err


@pytest.mark.slow
def test_https_is_read_where_the_certificate_is_known(tmp_path: Path, store: Store, plain: bytes) -> None:
    needs("https")
    certificate = own_certificate(tmp_path / "certificate.pem")
    with serving(certificate) as web:
        web.objects["data/people.parquet"] = parquet()
        source = f"{{parquet: 'https://127.0.0.1:{web.server_port}/data/people.parquet'}}"
        status, _, err = run(tmp_path, store, source)
        assert status == 2, "the certificate is nobody's"
        assert "cannot be fetched (ClientConnectorCertificateError)" in err
        status, _, err = run(tmp_path, store, source, SSL_CERT_FILE=str(certificate))
        assert status == 0, err
    assert (tmp_path / "out" / "people.csv").read_bytes() == plain
