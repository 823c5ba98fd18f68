"""A small and a large model with one tokenizer, and rows of tokens through them: as they come, and whole."""

import hashlib
import json
import pathlib
import subprocess
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import data  # noqa: E402
import evaluate  # noqa: E402
from model import END, PAD, Cache, rope  # noqa: E402

WHOLE_TOKENS = 16384  # of a pass over whole sequences, padding included
LIVELY = 0.75  # rows that have ended are left out once fewer than this share go on


class Models:
    """The models of folders that export.py wrote, small first, which must have the same tokenizer."""

    def __init__(self, folders):
        self.folders = [pathlib.Path(f) for f in folders]
        texts = [(f / "tokenizer.json").read_bytes() for f in self.folders]
        for folder, text in zip(self.folders, texts):
            if text != texts[0]:
                raise SystemExit(f"{folder} has another tokenizer.json than {self.folders[0]}")
        self.tokens = data.tokenizer()
        if json.loads(texts[0]) != json.loads(self.tokens.to_str()):
            raise SystemExit(f"{self.folders[0]} has another tokenizer than {data.HERE / 'tokenizer'}")
        self.real = self.tokens.get_vocab_size()  # ids from here on are padding of the vocabulary
        self.models = [evaluate.loaded(f) for f in self.folders]
        self.hashes = [hashlib.sha256((f / "model.safetensors").read_bytes()).hexdigest() for f in self.folders]

    @property
    def small(self):
        return self.models[0]

    @property
    def large(self):
        return self.models[-1]

    def prompts(self, problems):
        """Ids of the prompts through the chat template."""
        return [self.tokens.encode(data.prompt_text(p["prompt"])).ids for p in problems]

    def answers(self, problems):
        """Ids of the worked answers, each with its end."""
        return [self.tokens.encode(p["answer"]).ids + [END] for p in problems]

    def text(self, ids):
        """What ids say, without an end."""
        return self.tokens.decode([i for i in ids if i != END], skip_special_tokens=False)

    def best(self, rows):
        """The most likely ids of logits [...][vocabulary]."""
        return rows[..., :self.real].argmax(dim=-1)


def made(program, task, split, count, seed, first=0):
    """Problems of the program."""
    command = [program, "task", "make", task, "--split", split, "--count", str(count), "--seed", str(seed),
               "--first", str(first)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def final(text):
    """What the last line of an answer says after "Answer: ", or None."""
    last = text.rsplit("\n", 1)[-1]
    return last.removeprefix("Answer: ") if last.startswith("Answer: ") else None


class Reader:
    """A model that reads rows of tokens as they come. What is shorter than the longest row stands to its right."""

    def __init__(self, model, prompts, room):
        self.model, self.at = model, 0
        self.width = max(map(len, prompts))
        kind = model.model.embed_tokens.weight.dtype
        self.pads = torch.tensor([self.width - len(p) for p in prompts])
        self.places = torch.arange(self.width + room)
        self.seen = self.places[None, :] >= self.pads[:, None]
        self.caches = [Cache(len(prompts), model.shape.kv_heads, self.width + room, kind) for _ in model.model.layers]

    def read(self, tokens):
        """Hidden states [rows][hidden], after the last norm, of the last of tokens [rows][n]."""
        here = self.places[self.at:self.at + tokens.shape[1]]
        end = self.at + tokens.shape[1]
        turn = tuple(x[:, None] for x in rope((here[None] - self.pads[:, None]).clamp(min=0), self.dtype()))
        now = self.places[None, None, None, :end]
        mask = (now <= here[None, None, :, None]) & self.seen[:, None, None, :end]
        mask = mask | (now == here[None, None, :, None])  # a pad sees itself
        x = self.model.model.embed_tokens(tokens)
        for layer, cache in zip(self.model.model.layers, self.caches):
            x = layer(x, turn, mask, cache, self.at)
        self.at = end
        return self.model.model.norm(x[:, -1])

    def dtype(self):
        return self.caches[0].keys.dtype

    def keep(self, rows):
        """Forgets all rows but these."""
        self.pads, self.seen = self.pads[rows], self.seen[rows]
        for cache in self.caches:
            cache.keys, cache.values = cache.keys[rows], cache.values[rows]


def logits(model, hidden):
    """Float32 logits of hidden states, as devices compute them; rounded to bf16, the best would often be several."""
    return torch.nn.functional.linear(hidden.float(), model.model.embed_tokens.weight.float())


def side_by_side(prompts):
    """Rows of ids, filled up on the left."""
    width = max(map(len, prompts))
    return torch.tensor([[PAD] * (width - len(p)) + list(p) for p in prompts])


@torch.no_grad()
def continued(models, model, prefixes, most, rows=256):
    """Greedy continuations of prefixes, each with its end unless it is longer than most, a number a prefix."""
    made = [[] for _ in prefixes]
    order = sorted(range(len(prefixes)), key=lambda i: (most[i], len(prefixes[i])))
    for begin in range(0, len(order), rows):
        live = order[begin:begin + rows]
        reader = Reader(model, [prefixes[i] for i in live], max(most[i] for i in live))
        tokens = side_by_side([prefixes[i] for i in live])
        while True:
            best = models.best(logits(model, reader.read(tokens)))
            going = []
            for row, (i, token) in enumerate(zip(live, best.tolist())):
                if i is None:
                    continue
                made[i].append(token)
                if token == END or len(made[i]) == most[i]:
                    live[row] = None
                else:
                    going.append(row)
            if not going:
                break
            if len(going) < LIVELY * len(live):
                reader.keep(torch.tensor(going))
                live, best = [live[row] for row in going], best[going]
            tokens = best[:, None]
    return made


@torch.no_grad()
def whole(model, sequences):
    """Hidden states [length][hidden] of whole sequences, after the last norm, in their order."""
    states = [None] * len(sequences)
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
    while order:
        length = len(sequences[order[-1]])
        part = [order.pop() for _ in range(min(len(order), max(1, WHOLE_TOKENS // length)))]
        tokens = torch.full((len(part), length), PAD)
        for row, i in enumerate(part):
            tokens[row, :len(sequences[i])] = torch.as_tensor(sequences[i])
        hidden = model.hidden(tokens)
        for row, i in enumerate(part):
            states[i] = hidden[row, :len(sequences[i])].clone()
    return states
