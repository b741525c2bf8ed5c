"""``python -m tests.real.servers.llama_process WEIGHTS PORT``: llama.cpp's own HTTP server, until killed."""

from __future__ import annotations

import signal
import sys

import xllamacpp

SLOTS = 4


def main() -> None:
    """Serve the weights on 127.0.0.1; announce it on the standard output."""
    weights, port = sys.argv[1:]
    parameters = xllamacpp.CommonParams()
    parameters.model.path = weights
    parameters.model_alias = {"tiny"}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = int(port)
    parameters.n_ctx = 16_384
    parameters.n_parallel = SLOTS
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.use_jinja = True
    parameters.endpoint_metrics = parameters.endpoint_slots = True
    server = xllamacpp.Server(parameters)
    print("listening", server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
