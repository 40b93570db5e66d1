"""Passwords are kept by Argon2id; files with scrypt still work; a line may not ask too much of the server."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import argon2
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.server.accounts import Accounts, add_account, hashed
from anonflow.errors import ParameterError

PASSWORD = "correct horse battery"


def scrypt(password: str, n: int = 1 << 14) -> str:
    """A hash as earlier versions wrote it."""
    salt = b"0123456789abcdef"
    digest = hashlib.scrypt(password.encode(), salt=salt, n=n, r=8, p=1, maxmem=1 << 26, dklen=32)
    return "$".join(
        ["scrypt", str(n), "8", "1", *(base64.urlsafe_b64encode(raw).decode() for raw in (salt, digest))]
    )


def file_of(folder: Path, *lines: str) -> Path:
    path = folder / "users"
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o600)
    return path


def test_a_new_hash_is_argon2id() -> None:
    kept = hashed(PASSWORD)
    assert kept.startswith("$argon2id$v=19$m=65536,t=3,p=1$")
    assert argon2.PasswordHasher().verify(kept, PASSWORD)


@pytest.mark.slow
def test_files_of_earlier_versions_still_work(tmp_path: Path) -> None:
    path = file_of(tmp_path, f"anna:{scrypt(PASSWORD)}", "# a comment", "")
    assert Accounts(path).allow("anna", PASSWORD)
    add_account(path, "ben", "another password")  # beside it
    accounts = Accounts(path)
    assert "$scrypt" not in path.read_text()
    assert "anna:scrypt$" in path.read_text()
    assert "ben:$argon2id$" in path.read_text()
    for name, password in (("anna", PASSWORD), ("ben", "another password")):
        assert accounts.allow(name, password)
        assert not accounts.allow(name, password + "x")
    assert not accounts.allow("carl", PASSWORD)
    add_account(path, "anna", "a third password")  # changed, and by Argon2id from then on
    assert "scrypt" not in path.read_text()
    assert Accounts(path).allow("anna", "a third password")


@pytest.mark.parametrize("kinds", ["ss", "aa", "ssa", "saa"])
def test_nobody_is_compared_with_what_most_have(tmp_path: Path, kinds: str) -> None:
    """So that an unknown name takes as long as a known one."""
    results = {
        "s": scrypt(PASSWORD),
        "a": argon2.PasswordHasher(time_cost=2, memory_cost=8192).hash(PASSWORD),
    }
    accounts = Accounts(file_of(tmp_path, *(f"u{at}:{results[kind]}" for at, kind in enumerate(kinds))))
    most = max("sa", key=kinds.count)
    assert accounts._nobody.rsplit("$", 2)[0] == results[most].rsplit("$", 2)[0]
    assert accounts._nobody not in results.values()
    assert not accounts.allow("nobody", PASSWORD)


@pytest.mark.parametrize(
    "line",
    [
        "$argon2id$v=19$m=9999999,t=3,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaA",
        "$argon2id$v=19$m=65536,t=999,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaA",
        "$argon2i$v=19$m=65536,t=3,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaA",
        "$argon2id$v=19$m=65536,t=3,p=1$c2FsdHNhbHRzYWx0$YQ",
        "$argon2id$",
        "$2b$12$abcdefghijklmnopqrstuv",
        "scrypt$1073741824$8$1$c2FsdHNhbHQ=$aGFzaA==",
        "plain text",
        "",
    ],
)
def test_a_line_that_is_no_hash_or_too_dear_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ParameterError, match="line 1 is no"):
        Accounts(file_of(tmp_path, f"anna:{line}"))


def test_a_changed_file_is_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "users"
    for name in ("anna", "ben"):
        add_account(path, name, PASSWORD)
    accounts = Accounts(path)
    assert accounts.renew() == frozenset()
    add_account(path, "carl", "a third password")
    assert accounts.renew() == frozenset()
    assert accounts.allow("carl", "a third password")
    add_account(path, "anna", "another password")
    path.write_text(
        "".join(line for line in path.read_text().splitlines(True) if not line.startswith("ben:"))
    )
    assert accounts.renew() == {"anna", "ben"}
    assert not accounts.allow("ben", PASSWORD)
    assert accounts.allow("anna", "another password")
    path.write_text("anna:plain text\n")
    assert accounts.renew() == accounts.renew() == frozenset()
    assert accounts.allow("anna", "another password")
    (record,) = [record for record in caplog.records if record.name == "anonflow.dashboards"]
    assert "line 1" in record.getMessage()
    assert "plain text" not in record.getMessage()
