"""llama.cpp's side of the comparison: a server on standard input and output.

    python peer.py THREADS

A request is a line of JSON, and so is its answer; {"error": TEXT} says what failed. Requests are

    {"do": "about"}                                     {"version", "system"}
    {"do": "quantise", "from": FILE, "to": FILE}        writes FILE as q8_0
    {"do": "model", "file": FILE}                       takes the place of the model that was open
    {"do": "open", "name": NAME, "requests": N, "start": S, "rows": R, "flash": 0 or 1}
    {"do": "run", "name": NAME, "for_ns": T}            {"ns": [...]}: steps for that long, two at least
    {"do": "logits", "name": NAME}                      {"logits": base64 of float32}: of the last request
    {"do": "close", "name": NAME}

A step feeds R tokens to each of N requests that have S tokens in KV already, and gives logits after the last of each.
Nothing is sampled.
"""

import base64
import ctypes
import json
import sys
import time

import llama_cpp
from llama_cpp import llama_cpp as lib

UBATCH = 512
LOG_LEVEL_ERROR = 4  # of ggml.h


@lib.llama_log_callback
def silent(level, text, data):
    if level == LOG_LEVEL_ERROR:
        sys.stderr.write(text.decode(errors="replace"))


def token(position):
    """As in work.go: all requests have the same."""
    return position * 7 + 1


class Steps:
    """A context with requests whose first tokens are in KV."""

    def __init__(self, model, threads, requests, start, rows, flash):
        p = lib.llama_context_default_params()
        p.n_seq_max = requests
        p.n_ctx = requests * -(-(start + rows) // 256) * 256
        p.n_batch = max(UBATCH, requests * rows)
        p.n_ubatch = UBATCH
        p.n_threads = p.n_threads_batch = threads
        p.flash_attn_type = lib.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash else lib.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self.context = lib.llama_init_from_model(model, p)
        if not self.context:
            raise RuntimeError(f"no context of {p.n_ctx} tokens")
        self.memory = lib.llama_get_memory(self.context)
        self.requests, self.start = requests, start
        self.vocab = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
        if start:
            context = self.batch([0], 0, start)
            self.decode(context)
            lib.llama_batch_free(context)
            for request in range(1, requests):
                lib.llama_memory_seq_cp(self.memory, 0, request, -1, -1)
        self.fresh = self.batch(range(requests), start, rows)

    def batch(self, requests, start, rows):
        n = len(requests) * rows
        batch = lib.llama_batch_init(n, 0, 1)
        batch.n_tokens = n
        places = [(r, start + i) for r in requests for i in range(rows)]
        for i, (request, position) in enumerate(places):
            batch.token[i] = token(position)
            batch.pos[i] = position
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = request
            batch.logits[i] = position == start + rows - 1
        return batch

    def decode(self, batch):
        status = lib.llama_decode(self.context, batch)
        lib.llama_synchronize(self.context)
        if status != 0:
            raise RuntimeError(f"llama_decode gave {status}")

    def step(self):
        """One step; returns its nanoseconds."""
        for request in range(self.requests):
            lib.llama_memory_seq_rm(self.memory, request, self.start, -1)
        begin = time.perf_counter_ns()
        self.decode(self.fresh)
        return time.perf_counter_ns() - begin

    def run(self, for_ns):
        self.step()
        end, ns = time.perf_counter_ns() + for_ns, []
        while len(ns) < 2 or time.perf_counter_ns() < end:
            ns.append(self.step())
        return ns

    def logits(self):
        row = lib.llama_get_logits_ith(self.context, -1)
        return base64.b64encode(ctypes.string_at(row, 4 * self.vocab)).decode()

    def close(self):
        lib.llama_batch_free(self.fresh)
        lib.llama_free(self.context)


class Server:
    def __init__(self, threads):
        self.threads, self.model, self.steps = threads, None, {}

    def about(self):
        return {"version": llama_cpp.__version__, "system": lib.llama_print_system_info().decode().strip()}

    def quantise(self, source, to):
        p = lib.llama_model_quantize_default_params()
        p.nthread, p.ftype = self.threads, lib.LLAMA_FTYPE_MOSTLY_Q8_0
        status = lib.llama_model_quantize(source.encode(), to.encode(), ctypes.byref(p))
        if status != 0:
            raise RuntimeError(f"llama_model_quantize gave {status} for {source}")
        return {}

    def open_model(self, file):
        if self.model:
            lib.llama_model_free(self.model)
        p = lib.llama_model_default_params()
        p.n_gpu_layers = 0
        self.model = lib.llama_model_load_from_file(file.encode(), p)
        if not self.model:
            raise RuntimeError(f"no model in {file}")
        return {}

    def open(self, name, **shape):
        self.steps[name] = Steps(self.model, self.threads, **shape)
        return {}

    def answer(self, do, **rest):
        if do == "about":
            return self.about()
        if do == "quantise":
            return self.quantise(rest["from"], rest["to"])
        if do == "model":
            return self.open_model(**rest)
        if do == "open":
            return self.open(**rest)
        steps = self.steps[rest["name"]]
        if do == "run":
            return {"ns": steps.run(rest["for_ns"])}
        if do == "logits":
            return {"logits": steps.logits()}
        if do == "close":
            steps.close()
            del self.steps[rest["name"]]
            return {}
        raise RuntimeError(f"unknown request {do}")


def main():
    lib.llama_log_set(silent, ctypes.c_void_p(0))
    lib.llama_backend_init()
    server = Server(int(sys.argv[1]))
    for line in sys.stdin:
        try:
            answer = server.answer(**json.loads(line))
        except Exception as e:  # the other side says what it was about
            answer = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), flush=True)


main()
