#!/usr/bin/env python3
"""Makes R2R checkpoints in the published layout of the router folder beside, with torch.save.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 safetensors==0.8.0 numpy
    venv/bin/python make.py

    r2r.pt       what save_model (github.com/thu-nics/R2R, r2r/models/router.py) writes: without the embedding
    r2r_all.pt   its twin with the embedding, and weights as bfloat16
    code.pt      what runs a command when PyTorch loads it; it is never loaded here

The scores that r2r.pt must give are those of ../../testdata/scores.json, which PyTorch computes.
"""

import collections
import os

import safetensors.torch
import torch

HERE = os.path.dirname(os.path.abspath(__file__))


def ordered(tensors):
    """As Module.state_dict() gives it: with the versions of modules as an attribute."""
    state = collections.OrderedDict(tensors)
    state._metadata = collections.OrderedDict([("", {"version": 1}), ("backbone", {"version": 1})])
    return state


class Command:
    def __reduce__(self):
        return os.system, ("touch /tmp/ran-by-a-checkpoint",)


def checkpoint(state):
    return {
        "model_type": "HiddenStatesTokenLMHeadLogitsClassifier",
        "init_args": {"pretrained_model_name": "nobody/tiny", "hidden_states_size": 12, "logits_size": 10,
                      "hidden_dims": [16, 16], "expansion_factor": 4, "dropout_rate": 0.1,
                      "use_position_embedding": False, "normalize_input": False, "freeze_lm_head": True},
        "common_args": {"threshold": 0.42, "input_type": ["hidden_states", "token", "logits"]},
        "model_specific_args": {"note": None, "seeds": (1, -2, 70000, 3_000_000_000)},
        "state_dict": state,
    }


weights = safetensors.torch.load_file(os.path.join(HERE, "..", "..", "testdata", "r2r", "router.safetensors"))
torch.save(checkpoint(ordered(weights)), os.path.join(HERE, "r2r.pt"))
halves = {name: w.bfloat16() for name, w in weights.items()}
table = torch.zeros(20, 12, dtype=torch.bfloat16)
torch.save(checkpoint(ordered({"token_embeddings.weight": table, **halves})), os.path.join(HERE, "r2r_all.pt"))
hostile = checkpoint(ordered(weights))
hostile["model_specific_args"] = {"args": Command()}
torch.save(hostile, os.path.join(HERE, "code.pt"))
