"""Certificates of tests and benchmarks."""
import pathlib
import subprocess


def make_certificate(directory):
    """(certificate, key) for 127.0.0.1, signed by itself: its own CA."""
    certificate, key = pathlib.Path(directory) / "certificate.pem", pathlib.Path(directory) / "key.pem"
    pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True, timeout=60)
    return certificate, key
