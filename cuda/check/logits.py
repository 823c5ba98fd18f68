"""Compares logits with what PyTorch makes of the models' weights: logits.py LOGITS MODEL...

The folder LOGITS has a JSON file for each model's folder, under its name. Needs PyTorch alone. Weights are
read as they are (bf16) and everything is computed in float32, on the card if there is one. Prints the
largest distance, in spreads (standard deviations) of the logits.
"""

import json
import math
import pathlib
import struct
import sys

import torch

# As far as bf16 of transformers itself is off float32 (exec/model/transformers). The tokens are drawn and not of
# problems: over them the emulated device is up to 0.060 off.
TOLERANCE = 0.11


def weights(folder: pathlib.Path, device: str) -> dict[str, torch.Tensor]:
    """The tensors of the folder's safetensors files, in float32."""
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        raw = path.read_bytes()
        (length,) = struct.unpack("<Q", raw[:8])
        header = json.loads(raw[8 : 8 + length])
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            kind = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}[entry["dtype"]]
            tensor = torch.frombuffer(bytearray(raw[begin:end]), dtype=kind).reshape(entry["shape"])
            found[name] = tensor.to(device, torch.float32)
    return found


def norm(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * weight


def rotate(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    cosine, sine = angles.cos()[:, None], angles.sin()[:, None]
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)


def logits(config: dict, w: dict[str, torch.Tensor], ids: list[int], device: str) -> torch.Tensor:
    """Of the last token, by Qwen3 (config.json of transformers) in its plainest form."""
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    dim, epsilon = config["head_dim"], config["rms_norm_eps"]
    frequencies = config["rope_theta"] ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angles = (torch.arange(len(ids), dtype=torch.float64)[:, None] * frequencies).to(device, torch.float32)
    seen = torch.ones(len(ids), len(ids), dtype=torch.bool, device=device).tril()
    x = w["model.embed_tokens.weight"][torch.tensor(ids, device=device)]
    for layer in range(config["num_hidden_layers"]):
        of = {k.removeprefix(f"model.layers.{layer}."): v for k, v in w.items() if f".layers.{layer}." in k}
        y = norm(x, of["input_layernorm.weight"], epsilon)
        q = (y @ of["self_attn.q_proj.weight"].T).view(-1, heads, dim)
        k = (y @ of["self_attn.k_proj.weight"].T).view(-1, kv_heads, dim)
        v = (y @ of["self_attn.v_proj.weight"].T).view(-1, kv_heads, dim)
        q = rotate(norm(q, of["self_attn.q_norm.weight"], epsilon), angles)
        k = rotate(norm(k, of["self_attn.k_norm.weight"], epsilon), angles)
        k, v = (t.repeat_interleave(heads // kv_heads, 1) for t in (k, v))
        scores = torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(dim)
        shares = scores.masked_fill(~seen, -math.inf).softmax(-1)
        attended = torch.einsum("hqk,khd->qhd", shares, v).reshape(len(ids), -1)
        x = x + attended @ of["self_attn.o_proj.weight"].T
        y = norm(x, of["post_attention_layernorm.weight"], epsilon)
        gate, up = (y @ of[f"mlp.{part}_proj.weight"].T for part in ("gate", "up"))
        x = x + (torch.nn.functional.silu(gate) * up) @ of["mlp.down_proj.weight"].T
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    return norm(x[-1], w["model.norm.weight"], epsilon) @ head.T


def agrees(folder: pathlib.Path, file: pathlib.Path, device: str) -> bool:
    config = json.loads((folder / "config.json").read_text())
    w = weights(folder, device)
    worst, same, count = 0.0, 0, 0
    for entry in json.loads(file.read_text()):
        want = logits(config, w, entry["tokens"], device).cpu()
        got = torch.tensor(entry["logits"])
        worst = max(worst, float((got - want).abs().max() / want.std()))
        same += int(got.argmax() == want.argmax())
        count += 1
    print(f"{folder.name}: {count} rows of logits at most {worst:.3g} spreads off PyTorch on {device},"
          f" want at most {TOLERANCE}; {same} with the same likeliest token")
    return worst <= TOLERANCE


def main() -> None:
    to, *folders = map(pathlib.Path, sys.argv[1:])
    torch.backends.cuda.matmul.allow_tf32 = False
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if not all([agrees(folder, to / f"{folder.name}.json", device) for folder in folders]):
        sys.exit(1)


main()
