"""Qwen3 in PyTorch, with the parameter names of Hugging Face transformers (Qwen3ForCausalLM)."""

import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn

HEAD_DIM, EPSILON, THETA, POSITIONS = 64, 1e-6, 10000.0, 1024
PAD, START, END = 0, 1, 2  # <|endoftext|>, <|im_start|>, <|im_end|>


@dataclasses.dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    intermediate: int
    vocab: int

    def config(self):
        """What config.json says."""
        return {
            "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "dtype": "bfloat16",
            "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": None, "eos_token_id": END,
            "pad_token_id": PAD, "head_dim": HEAD_DIM, "hidden_act": "silu", "hidden_size": self.hidden,
            "initializer_range": 0.02, "intermediate_size": self.intermediate,
            "max_position_embeddings": POSITIONS, "num_attention_heads": self.heads,
            "num_hidden_layers": self.layers, "num_key_value_heads": self.kv_heads, "rms_norm_eps": EPSILON,
            "rope_theta": THETA, "rope_scaling": None, "sliding_window": None, "use_sliding_window": False,
            "tie_word_embeddings": True, "use_cache": True, "vocab_size": self.vocab,
        }


class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight, EPSILON)


def rope(positions, dtype):
    """Cosines and sines [..., HEAD_DIM] of positions."""
    frequencies = THETA ** (-torch.arange(0, HEAD_DIM, 2, dtype=torch.float32) / HEAD_DIM)
    angles = positions.float()[..., None] * frequencies
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


# Of all positions. Not of a model: they are rounded when they are used, whatever a model was before.
COSINES, SINES = rope(torch.arange(POSITIONS), torch.float32)


def rope_table(length, dtype):
    """What rope gives for the positions from 0 on; compiled, it computes no cosine for every number anew."""
    return COSINES[:length].to(dtype), SINES[:length].to(dtype)


# x @ TURN is (-high, low) of x = (low, high): as a product it is as exact and, compiled, far faster than slices.
TURN = torch.kron(torch.tensor([[0.0, 1.0], [-1.0, 0.0]]), torch.eye(HEAD_DIM // 2))


def rotated(x, turn):
    """x [batch][heads][length][HEAD_DIM] turned by its position."""
    cosine, sine = turn
    return x * cosine + (x @ TURN.to(x.dtype)) * sine


class Cache:
    """Keys and values of one layer, room for length tokens of batch rows."""

    def __init__(self, batch, kv_heads, length, dtype):
        self.keys = torch.zeros(batch, kv_heads, length, HEAD_DIM, dtype=dtype)
        self.values = torch.zeros_like(self.keys)

    def extend(self, keys, values, at):
        end = at + keys.shape[2]
        self.keys[:, :, at:end], self.values[:, :, at:end] = keys, values
        return self.keys[:, :, :end], self.values[:, :, :end]


def attention(q, k, v, mask):
    """Attention of q [batch][heads][length][HEAD_DIM] to k, v [batch][kv heads][...], causal where mask is None."""
    if not torch.is_grad_enabled():
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=True)
    # With a backward pass this is some four times as fast on a processor; without one, to few tokens, a ninth.
    length, seen = q.shape[2], k.shape[2]
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
    if mask is None:
        mask = torch.ones(length, seen, dtype=torch.bool).tril()[None, None]
    scores = (q * HEAD_DIM ** -0.5) @ k.transpose(-1, -2)
    bias = torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, -math.inf)
    return (scores + bias).softmax(dim=-1) @ v


class Attention(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads, self.kv_heads = s.heads, s.kv_heads
        self.q_proj = nn.Linear(s.hidden, s.heads * HEAD_DIM, bias=False)
        self.k_proj = nn.Linear(s.hidden, s.kv_heads * HEAD_DIM, bias=False)
        self.v_proj = nn.Linear(s.hidden, s.kv_heads * HEAD_DIM, bias=False)
        self.o_proj = nn.Linear(s.heads * HEAD_DIM, s.hidden, bias=False)
        self.q_norm, self.k_norm = Norm(HEAD_DIM), Norm(HEAD_DIM)

    def forward(self, x, turn, mask=None, cache=None, at=0):
        batch, length, _ = x.shape
        split = lambda y, heads: y.view(batch, length, heads, HEAD_DIM).transpose(1, 2)
        q = rotated(self.q_norm(split(self.q_proj(x), self.heads)), turn)
        k = rotated(self.k_norm(split(self.k_proj(x), self.kv_heads)), turn)
        v = split(self.v_proj(x), self.kv_heads)
        if cache:
            k, v = cache.extend(k, v, at)
        y = attention(q, k, v, mask)
        return self.o_proj(y.transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.gate_proj = nn.Linear(s.hidden, s.intermediate, bias=False)
        self.up_proj = nn.Linear(s.hidden, s.intermediate, bias=False)
        self.down_proj = nn.Linear(s.intermediate, s.hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.self_attn, self.mlp = Attention(s), FeedForward(s)
        self.input_layernorm, self.post_attention_layernorm = Norm(s.hidden), Norm(s.hidden)

    def forward(self, x, turn, mask=None, cache=None, at=0):
        x = x + self.self_attn(self.input_layernorm(x), turn, mask, cache, at)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.embed_tokens = nn.Embedding(s.vocab, s.hidden)
        self.layers = nn.ModuleList(Layer(s) for _ in range(s.layers))
        self.norm = Norm(s.hidden)


class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.model = Body(shape)

    def initialise(self, seed):
        """Normal weights of deviation 0.02; what adds to the residual stream is smaller by its depth."""
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, p in self.named_parameters():
                if p.dim() == 2:
                    small = name.endswith(("o_proj.weight", "down_proj.weight"))
                    deviation = 0.02 / math.sqrt(2 * self.shape.layers) if small else 0.02
                    p.copy_(torch.randn(p.shape, generator=generator) * deviation)

    def hidden(self, tokens):
        """Hidden states [batch][length][hidden] after the last norm. Padding stands to the right."""
        x = self.model.embed_tokens(tokens)
        turn = rope_table(tokens.shape[1], x.dtype)
        for layer in self.model.layers:
            x = layer(x, turn)
        return self.model.norm(x)

    def logits(self, hidden):
        return F.linear(hidden, self.model.embed_tokens.weight)

    def loss(self, tokens, targets, wanted):
        """Sum of the cross-entropies of the places where wanted is true: those of targets given tokens up to there.
        All are [batch][length]."""
        logits = self.logits(self.hidden(tokens)).float().flatten(0, 1)
        losses = F.cross_entropy(logits, targets.flatten(), reduction="none")
        return (losses * wanted.flatten()).sum()

    @torch.no_grad()
    def greedy(self, prompts, most, real):
        """Greedy continuations of prompts (lists of ids), without the end, each of at most `most` ids. Ids from
        `real` on are padding of the vocabulary and never taken."""
        width, rows = max(map(len, prompts)), len(prompts)
        dtype = self.model.embed_tokens.weight.dtype
        pads = torch.tensor([width - len(p) for p in prompts])
        tokens = torch.tensor([[PAD] * (width - len(p)) + list(p) for p in prompts])
        caches = [Cache(rows, self.shape.kv_heads, width + most, dtype) for _ in self.model.layers]
        places = torch.arange(width + most)
        seen = places[None, :] >= pads[:, None]
        answers, going, at = [[] for _ in prompts], torch.ones(rows, dtype=torch.bool), 0
        while at < width + most:
            here = places[at:at + tokens.shape[1]]
            turn = tuple(x[:, None] for x in rope((here[None] - pads[:, None]).clamp(min=0), dtype))
            end = at + tokens.shape[1]
            mask = (places[None, None, None, :end] <= here[None, None, :, None]) & seen[:, None, None, :end]
            mask = mask | (places[None, None, None, :end] == here[None, None, :, None])  # a pad sees itself
            x = self.model.embed_tokens(tokens)
            for layer, cache in zip(self.model.layers, caches):
                x = layer(x, turn, mask, cache, at)
            at = end
            best = self.logits(self.model.norm(x[:, -1]))[:, :real].argmax(dim=-1)
            going &= best != END
            for row in going.nonzero().flatten().tolist():
                answers[row].append(int(best[row]))
            if not going.any() or at - width + 1 > most - 1:
                break
            tokens = best[:, None]
        return answers
