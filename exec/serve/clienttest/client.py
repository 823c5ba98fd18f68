"""OpenAI's own client for Python against `tokenrouter serve` with the trained pair: client.py PROGRAM SYSTEM.toml."""

import asyncio
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

import openai

PROGRAM, SYSTEM = sys.argv[1:3]
NAME = pathlib.Path(SYSTEM).stem
PROBLEM = "Compute 49 * 7 + 25 * 4 - 70 * 5."
ANSWER = 49 * 7 + 25 * 4 - 70 * 5


class Server:
    """A tokenrouter serve that runs."""

    def __init__(self, system, key=None):
        environment = {k: v for k, v in os.environ.items() if k != "TOKENROUTER_API_KEY"}
        if key:
            environment["TOKENROUTER_API_KEY"] = key
        self.process = subprocess.Popen([PROGRAM, "serve", system, "--listen", "127.0.0.1:0"], env=environment,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = ""
        for line in self.process.stdout:
            said += line
            if line.startswith("listening on "):
                self.url = line.removeprefix("listening on ").split("/v1")[0]
                return
        raise AssertionError(f"serve ended with {self.process.wait()}:\n{said}")

    def client(self, kind=openai.OpenAI, key="none", **more):
        return kind(base_url=self.url + "/v1", api_key=key, **{"max_retries": 0, **more})

    def metrics(self):
        """Every sample of /metrics by its name and labels."""
        with urllib.request.urlopen(self.url + "/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}

    def idle(self):
        """Waits until nothing is left in the server: no request, no place in a queue, no page of KV."""
        wanted = ["live_requests", "waiting_requests", "places_taken", "queue_length", "kv_pages_held"]
        for _ in range(500):
            metrics = self.metrics()
            left = {n: v for n, v in metrics.items() if v and n.split("{")[0].removeprefix("tokenrouter_") in wanted}
            if not left:
                return metrics
            time.sleep(0.01)
        raise AssertionError(f"left in the server: {left}")

    def stop(self):
        self.process.terminate()
        code = self.process.wait(timeout=60)
        self.process.stdout.close()
        assert code == 0, f"serve ended with {code}"


class Test(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server(SYSTEM)
        cls.client = cls.server.client()

    @classmethod
    def tearDownClass(cls):
        cls.server.idle()
        cls.client.close()
        cls.server.stop()

    def chat(self, client=None, **more):
        fields = {"model": NAME, "messages": [{"role": "user", "content": PROBLEM}], "temperature": 0, **more}
        return (client or self.client).chat.completions.create(**fields)

    def text(self, **more):
        return self.chat(**more).choices[0].message.content

    def test_models(self):
        names = [m.id for m in self.client.models.list()]
        self.assertEqual(names[0], NAME)
        self.assertEqual(len(names), 3)
        self.assertEqual(self.client.models.retrieve(names[2]).id, names[2])

    def test_chat(self):
        answer = self.chat(extra_headers={"X-Request-Id": "mine-1"},
                           extra_body={"return_origin": True, "return_router_score": True, "return_token_ids": True,
                                       "tools": None, "stop": []})
        choice, usage = answer.choices[0], answer.usage
        self.assertEqual((answer.id, answer._request_id), ("chatcmpl-mine-1", "mine-1"))
        self.assertRegex(choice.message.content, rf"\nAnswer: {ANSWER}$")
        self.assertEqual((choice.message.role, choice.finish_reason), ("assistant", "stop"))
        self.assertEqual(len(choice.token_ids), usage.completion_tokens)
        self.assertEqual(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
        self.assertEqual(len(answer.prompt_token_ids[0]), usage.prompt_tokens)
        self.assertEqual(set(choice.origin), {0, 1}, "both models made tokens")
        self.assertAlmostEqual(usage.large_model_share, sum(choice.origin) / len(choice.origin))
        scores = [[s for s, o in zip(choice.router_score, choice.origin) if o == model] for model in (0, 1)]
        self.assertLess(max(scores[0]), min(scores[1]), "one threshold parts the models' tokens")
        self.assertTrue(all(0 < s < 1 for s in choice.router_score))
        self.assertTrue(all(a != b for a, b in zip(choice.router_score, choice.router_score[1:])), "each has its own")

    def test_stream(self):
        whole = self.chat(logprobs=True, top_logprobs=3)
        chunks = list(self.chat(logprobs=True, top_logprobs=3, stream=True, stream_options={"include_usage": True}))
        *parts, last = chunks
        deltas = [c.choices[0] for c in parts]
        self.assertEqual({c.id for c in chunks}, {chunks[0].id})
        self.assertEqual("".join(d.delta.content or "" for d in deltas), whole.choices[0].message.content)
        self.assertEqual([d.delta.role for d in deltas], ["assistant"] + [None] * (len(deltas) - 1))
        self.assertEqual([d.finish_reason for d in deltas], [None] * (len(deltas) - 1) + ["stop"])
        self.assertEqual([p for d in deltas if d.logprobs for p in d.logprobs.content],
                         whole.choices[0].logprobs.content)
        self.assertEqual((last.choices, last.usage), ([], whole.usage))

    def test_log_probabilities(self):
        choice = self.chat(logprobs=True, top_logprobs=5).choices[0]
        tokens = choice.logprobs.content
        self.assertEqual(b"".join(bytes(t.bytes) for t in tokens).decode(), choice.message.content)
        for t in tokens:
            likely = [o.logprob for o in t.top_logprobs]
            self.assertEqual((t.top_logprobs[0].token, likely[0]), (t.token, t.logprob), "greedy")
            self.assertEqual((len(likely), likely), (5, sorted(likely, reverse=True)))
            self.assertLessEqual(sum(map(math.exp, likely)), 1 + 1e-5)

    def test_stop(self):
        whole = self.text()
        for stop, cut in [("=", "="), (["+ 1", "100\n", "zz"], "100\n"), (["343", "3\n2"], "343")]:
            choice = self.chat(stop=stop).choices[0]
            self.assertEqual((choice.message.content, choice.finish_reason), (whole.split(cut)[0], "stop"))
            streamed = self.chat(stop=stop, stream=True)
            self.assertEqual("".join(c.choices[0].delta.content or "" for c in streamed), whole.split(cut)[0])
        self.assertEqual(self.chat(max_tokens=3).choices[0].finish_reason, "length")

    def test_choices(self):
        drawn = {"temperature": 2, "max_tokens": 30}
        texts = [c.message.content for c in self.chat(n=4, seed=5, **drawn).choices]
        self.assertGreater(len(set(texts)), 1, "draws differ")
        self.assertEqual(texts, [self.text(seed=5 + i, **drawn) for i in range(4)])
        streamed = [""] * 4
        for chunk in self.chat(n=4, seed=5, stream=True, **drawn):
            streamed[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
        self.assertEqual(streamed, texts)

    def test_sampling(self):
        usual = self.text()
        self.assertTrue(usual.startswith("49 * 7"))
        self.assertFalse(self.text(logit_bias={"22": -100}).startswith("4"), "the token 4 is forbidden")
        one = {"temperature": 2, "seed": 3}
        self.assertEqual(self.text(extra_body={"top_k": 1}, **one), usual)
        self.assertEqual(self.text(extra_body={"min_p": 1}, **one), usual)
        self.assertEqual(self.text(top_p=0, **one), usual)
        self.assertNotEqual(self.text(presence_penalty=2, frequency_penalty=2, max_tokens=200), usual)

    def test_completions(self):
        answer = self.client.completions.create(model=NAME, prompt=[PROBLEM, [22, 27]], max_tokens=4, temperature=0,
                                                logprobs=2)
        self.assertEqual([c.index for c in answer.choices], [0, 1])
        for c in answer.choices:
            self.assertEqual("".join(c.logprobs.tokens), c.text)
            self.assertEqual(c.logprobs.text_offset[0], 0)
            self.assertEqual([t[own] for t, own in zip(c.logprobs.top_logprobs, c.logprobs.tokens)],
                             c.logprobs.token_logprobs)

    def test_refused(self):
        for kind, param, fields in [
            (openai.BadRequestError, "n", {"n": 99}),
            (openai.BadRequestError, "max_tokens", {"max_tokens": 10**6}),
            (openai.BadRequestError, "tools", {"tools": [{"type": "function", "function": {"name": "f"}}]}),
            (openai.BadRequestError, "frobnicate", {"extra_body": {"frobnicate": 1}}),
            (openai.BadRequestError, "messages[0].role", {"messages": [{"role": "bard", "content": "x"}]}),
            (openai.NotFoundError, "model", {"model": "gpt-4"}),
        ]:
            with self.subTest(param), self.assertRaises(kind) as caught:
                self.chat(**fields)
            self.assertEqual((caught.exception.param, caught.exception.type), (param, "invalid_request_error"))

    def test_cancel(self):
        endless = {"max_tokens": 900, "extra_body": {"ignore_eos": True}}
        gone = 'tokenrouter_requests_ended_total{outcome="cancelled",reason="client left"}'
        before = self.server.idle().get(gone, 0)
        stream = self.chat(stream=True, n=3, **endless)
        for _, _ in zip(range(10), stream):
            pass
        self.assertEqual(self.server.metrics()["tokenrouter_live_requests"], 3)
        stream.close()
        self.assertEqual(self.server.idle().get(gone), before + 3)
        with self.assertRaises(openai.APITimeoutError):
            self.chat(timeout=0.1, **endless)
        self.assertEqual(self.server.idle().get(gone), before + 4)

    def test_many_at_once(self):
        alone = self.text()

        async def ask():
            async with self.server.client(openai.AsyncOpenAI) as client:
                return await asyncio.gather(*(self.chat(client) for _ in range(12)))

        self.assertEqual([a.choices[0].message.content for a in asyncio.run(ask())], [alone] * 12)

    def test_key_and_queue(self):
        folder = pathlib.Path(SYSTEM).parent.resolve() / "models"
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(f'models = [{{ dir = "{folder}/arith-large" }}]\n'
                       'scheduler = { concurrency = 1, queue = 0, context_max = 1024 }\n')
            file.flush()
            server = Server(file.name, key="sesame")
        try:
            self.locked(server)
        finally:
            server.stop()

    def locked(self, server):
        with server.client(key="wrong") as client, self.assertRaises(openai.AuthenticationError):
            client.models.list()
        with server.client(key="sesame", max_retries=0) as client:
            ask = {"client": client, "model": "arith-large"}
            stream = self.chat(stream=True, max_tokens=900, extra_body={"ignore_eos": True}, **ask)
            next(iter(stream))
            with self.assertRaises(openai.RateLimitError) as caught:
                self.chat(**ask)
            self.assertGreaterEqual(int(caught.exception.response.headers["retry-after"]), 1)
            threading.Timer(0.2, stream.close).start()
            patient = client.with_options(max_retries=3)  # waits as Retry-After says
            self.assertIn("Answer", self.chat(**{**ask, "client": patient}).choices[0].message.content)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
