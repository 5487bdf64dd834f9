"""nginx with the configuration that we ship: only names, ports and paths are others."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import create_connection

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.e2e.processes import ROOT, free_port

SHIPPED = ROOT / "deploy" / "nginx"
PATIENCE = 20
MAIN = """
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
worker_processes 1;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  include {folder}/mcphost.conf;
}}
"""


def program() -> str:
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if found is None:
        pytest.skip("there is no nginx")
    return found


def adapt(text: str, folder: Path, changes: dict[str, str]) -> str:
    for before, after in changes.items():
        assert before in text, before
        text = text.replace(before, after)
    certify(folder)
    return text


def certify(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    (folder / "fullchain.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "privkey.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def configure(folder: Path, port: int, nodes: tuple[int, int]) -> Path:
    changes = {
        "127.0.0.1:8001": f"127.0.0.1:{nodes[0]}",
        "127.0.0.1:8002": f"127.0.0.1:{nodes[1]}",
        "listen 443 ssl http2;": f"listen 127.0.0.1:{port} ssl http2;",
        "    listen [::]:443 ssl http2;\n": "",
        "listen 80;": f"listen 127.0.0.1:{free_port()};",
        "    listen [::]:80;\n": "",
        "mcp.example.com;": "localhost;",
        "/etc/letsencrypt/live/mcp.example.com": str(folder),
        "/etc/nginx/mcphost-proxy.conf": str(SHIPPED / "mcphost-proxy.conf"),
    }
    text = adapt((SHIPPED / "mcphost.conf").read_text(), folder, changes)
    return write(folder, text)


def write(folder: Path, text: str) -> Path:
    (folder / "mcphost.conf").write_text(text)
    main = folder / "nginx.conf"
    main.write_text(MAIN.format(folder=folder))
    return main


def check(main: Path) -> None:
    command = [program(), "-t", "-q", "-e", str(main.parent / "error.log"), "-c", str(main)]
    tried = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert tried.returncode == 0, tried.stderr


@contextmanager
def fronting(folder: Path, nodes: tuple[int, int]) -> Iterator[int]:
    port = free_port()
    main = configure(folder, port, nodes)
    check(main)
    log = folder / "error.log"
    process = subprocess.Popen(
        [program(), "-e", str(log), "-c", str(main), "-g", "daemon off;"], start_new_session=True
    )
    try:
        _wait_for(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + PATIENCE
    while True:
        assert process.poll() is None, "nginx has ended"
        try:
            create_connection(("127.0.0.1", port), PATIENCE).close()
        except OSError:
            assert time.monotonic() < ends, "nginx did not start"
            time.sleep(0.05)  # between looks at another process
        else:
            return
