"""Tests of the scripts beside, on tiny random models: python -m unittest (in this folder, under a minute)."""

import json
import pathlib
import types
import unittest
from unittest import mock

import torch
from safetensors.torch import load_file

import label
import learn
import networks
import pair  # finds the modules of the folder above
import routed

from model import END, Model, Shape

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "exec" / "model" / "router" / "testdata"
MOST = 40


def tiny(seed, scale=12.0):
    """A random model whose next tokens are no near ties; of two seeds, one often says something else."""
    model = Model(Shape(layers=2, hidden=32, heads=1, kv_heads=1, intermediate=48, vocab=384))
    model.initialise(seed)
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 2:
                p.mul_(scale)
    return model


def models_of(*seeds):
    """What pair.Models is, without folders."""
    tokens = pair.data.tokenizer()
    models = types.SimpleNamespace(models=[tiny(s) for s in seeds], tokens=tokens, real=tokens.get_vocab_size())
    models.small, models.large = models.models[0], models.models[-1]
    models.best = lambda logits: logits[..., :models.real].argmax(dim=-1)
    models.text = lambda ids: tokens.decode([i for i in ids if i != END], skip_special_tokens=False)
    return models


def prompts(count, seed=1):
    draw = torch.Generator().manual_seed(seed)
    length = lambda: int(torch.randint(3, 20, (1,), generator=draw))
    return [torch.randint(3, 370, (length(),), generator=draw).tolist() for _ in range(count)]


def tokens_of(walked):
    return [a.tokens for a in walked.answers]


class Passes(unittest.TestCase):
    def setUp(self):
        self.models = models_of(1, 2)

    def test_alone_is_greedy(self):
        """Token by token with a cache, beside other rows, as without a cache and alone."""
        asked = prompts(7)
        walked = routed.walk(self.models, asked, routed.Alone(1), MOST)
        for prompt, answer in zip(asked, walked.answers):
            ids = list(prompt)
            for token in answer.tokens:
                hidden = self.models.large.hidden(torch.tensor([ids]))[0, -1]
                self.assertEqual(token, int(self.models.best(self.models.large.logits(hidden))))
                ids.append(token)
            self.assertTrue(answer.tokens[-1] == END or len(answer.tokens) == MOST)
            self.assertEqual(set(answer.origins), {1})

    def test_continued_is_greedy(self):
        asked = prompts(9)
        most = [5 + 3 * i for i in range(9)]
        made = pair.continued(self.models, self.models.small, asked, most, rows=4)
        walked = routed.walk(self.models, asked, routed.Alone(0), max(most))
        for a, b, n in zip(made, tokens_of(walked), most):
            self.assertEqual(a, b[:n])

    def test_whole_is_each_alone(self):
        asked = prompts(6)
        for prompt, states in zip(asked, pair.whole(self.models.small, asked)):
            alone = self.models.small.hidden(torch.tensor([prompt]))[0]
            torch.testing.assert_close(states, alone, rtol=1e-4, atol=1e-4)


class Rules(unittest.TestCase):
    def setUp(self):
        self.models, self.asked = models_of(1, 2), prompts(6)
        self.alone = [tokens_of(routed.walk(self.models, self.asked, routed.Alone(m), MOST)) for m in (0, 1)]
        self.assertNotEqual(*self.alone)

    def walk(self, rule):
        return routed.walk(self.models, self.asked, rule, MOST)

    def test_degenerate_thresholds(self):
        """Equal to the small model alone and to the large one alone, token by token."""
        for algorithm, small, large in (("r2r", 2.0, 0.0), ("citer", 0.0, 2.0), ("collm", 1.0, -1.0)):
            torch.manual_seed(1)
            network = networks.NETWORKS[algorithm](32).eval()
            for model, threshold in enumerate((small, large)):
                rule = routed.Scored(algorithm, network, threshold, self.models.small.model.embed_tokens.weight)
                walked = self.walk(rule)
                self.assertEqual(tokens_of(walked), self.alone[model], (algorithm, threshold))
                self.assertEqual(walked.shares(2)[model], 1.0)
                self.assertEqual(walked.p(), model)
        self.assertEqual(tokens_of(self.walk(routed.RStitch(1.0))), self.alone[0])
        self.assertEqual(tokens_of(self.walk(routed.RStitch(-1.0))), self.alone[1])
        self.assertEqual(tokens_of(self.walk(routed.ME([1.0, 0.0]))), self.alone[0])

    def test_equality(self):
        """A score at the threshold: R2R leaves, CITER and Co-LLM stay (core/route)."""
        out = routed.Output(torch.zeros(1, 32), torch.zeros(1, 384), torch.zeros(1, dtype=torch.long))
        half = lambda h, e=None, z=None: torch.zeros(1)  # sigmoid(0) = 0.5
        half.sizes = {"top_logits": 4}
        for algorithm, origin in (("r2r", 1), ("citer", 0), ("collm", 0)):
            rule = routed.Scored(algorithm, half, 0.5, torch.zeros(384, 32))
            self.assertEqual(rule.choose([out, out], torch.zeros(1, dtype=torch.long))[0].item(), origin, algorithm)

    def test_stitch(self):
        """Unsure: the large model takes over, stays while it is unsure, and keeps the token with which it returns."""
        flat, sharp = torch.zeros(1, 384), torch.zeros(1, 384)
        sharp[0, 5] = 100
        says = lambda logits: routed.Output(None, logits, logits.argmax(dim=-1))
        for active, small, large, origin, after in ((0, sharp, flat, 0, 0), (0, flat, sharp, 1, 0),
                                                    (0, flat, flat, 1, 1), (1, sharp, flat, 1, 1),
                                                    (1, flat, sharp, 1, 0)):
            got = routed.RStitch(0.5).choose([says(small), says(large)], torch.tensor([active]))
            self.assertEqual((int(got[0]), int(got[1])), (origin, after))
        self.assertAlmostEqual(float(routed.entropy(flat)), 1.0, places=5)
        two = torch.full((1, 4), -float("inf"))
        two[0, :2] = 0
        self.assertAlmostEqual(float(routed.entropy(two)), 0.5, places=6)  # ln 2 / ln 4


class Networks(unittest.TestCase):
    def test_scores_as_go(self):
        """The networks give the scores with which exec/model/router is tested."""
        golden = json.loads((GOLDEN / "scores.json").read_text())
        h, e, z = (torch.tensor(golden[k], dtype=torch.float64) for k in ("hidden", "embeddings", "logits"))
        made = {"r2r": networks.R2R(12, top=10, width=16, blocks=2, expanded=64), "citer": networks.CITER(12),
                "collm": networks.CoLLM(12)}
        for name, network in made.items():
            network.load_state_dict(load_file(GOLDEN / name / "router.safetensors"), strict=False)
            scores = network.double().eval()(h, e, z).sigmoid()
            torch.testing.assert_close(scores, torch.tensor(golden[name], dtype=torch.float64), rtol=0, atol=1e-12)


class Labels(unittest.TestCase):
    def test_one_model_never_differs(self):
        models = models_of(1, 1)
        counts = dict.fromkeys(("neutral", "divergent", "neutral, other steps"), 0)
        own, labels = label.r2r(models, prompts(5), counts)
        self.assertEqual(sum(map(len, own)), sum(map(len, labels)))
        self.assertEqual(sum(counts.values()) + sum(int(x.sum()) for x in labels), 0)

    def test_branches(self):
        """Where the small model says something else, the large one goes on from there without a cache, and the ends
        are compared; here the end is the last letter."""
        models, asked, counts = models_of(1, 2), prompts(3), dict.fromkeys(
            ("neutral", "divergent", "neutral, other steps"), 0)
        best = lambda model, ids: int(models.best(model.logits(model.hidden(torch.tensor([ids]))[0, -1])))
        last = lambda text: text[-1:]
        with mock.patch("pair.final", last), mock.patch("evaluate.ANSWER_MAX", 6), mock.patch("label.ROOM", 2), \
                torch.no_grad():
            own, labels = label.r2r(models, asked, counts)
            for prompt, answer, found in zip(asked, own, labels):
                for t, token in enumerate(answer):
                    other = best(models.small, prompt + answer[:t])
                    ids = prompt + answer[:t] + [other]
                    while ids[-1] != END and len(ids) < len(prompt) + len(answer) + 3:
                        ids.append(best(models.large, ids))
                    same = last(models.text(ids[len(prompt):])) == last(models.text(answer))
                    want = label.SAME if other == token else label.NEUTRAL if same else label.DIVERGENT
                    self.assertEqual(found[t], want)
        self.assertGreater(counts["divergent"], 0)

    def test_final(self):
        for text, want in (("1 + 1 = 2\nAnswer: 2", "2"), ("Answer: 2\n", None), ("Answer: 2\n3", None), ("", None)):
            self.assertEqual(pair.final(text), want, text)

    def test_recall_threshold(self):
        """Of four divergent tokens all have to be found: the highest threshold that does is 0.3."""
        score = torch.tensor([0.9, 0.8, 0.7, 0.301, 0.5, 0.1])
        wanted = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
        threshold, share, recall = learn.recall_threshold(score, wanted)
        self.assertEqual((threshold, recall), (0.3, 1.0))
        self.assertAlmostEqual(share, 5 / 6)
        self.assertAlmostEqual(learn.separated(score, wanted), 7 / 8)  # one of eight pairs is the wrong way round


if __name__ == "__main__":
    unittest.main()
