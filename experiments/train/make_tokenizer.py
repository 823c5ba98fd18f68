"""Makes the tokenizer that all models share, from the words of the tasks: tokenizer/.

    python make_tokenizer.py --tokenrouter ../../bin/tokenrouter

A byte-level BPE, so that any text has ids. Digits are tokens one by one, a letter of a task's word list is one token
with the space before it, a sign with the spaces around it another; the tasks' own words are whole tokens. Also writes
ids.json: texts with the ids that the tokenizers library gives, with which the project's own tokenizer is compared.
"""

import argparse
import json
import pathlib
import subprocess

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
WORDS = r" [+*/=-] | ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+"
TEMPLATE = (
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)
ODD_TEXTS = ["", " ", "\n\n", "Answer: 3", "12  34", "a b", "ab", "Grüße, 中文 \U0001f600!", "x=1+2", "  x", "1 - -1",
             "<|im_end|> and <|im_", "٣½", "tab\tand\r\nline", "don't", "(1 + 2) * 3."]


def problems(program, task, split, count):
    out = subprocess.run([program, "task", "make", task, "--split", split, "--count", str(count)], check=True,
                         capture_output=True, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def trained(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(WORDS), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=1024, min_frequency=20, special_tokens=SPECIAL, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenrouter", default="tokenrouter", help="the program")
    program = parser.parse_args().tokenrouter
    made = [p for task in ("arith", "symbols") for p in problems(program, task, "train", 6000)]
    texts = [text for p in made for text in (p["prompt"], p["answer"])] + ["system", "user", "assistant"] * 20
    tokenizer = trained(texts)
    folder = HERE / "tokenizer"
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": None, "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>", "model_max_length": 1024, "clean_up_tokenization_spaces": False,
        "chat_template": TEMPLATE}, indent=2) + "\n")
    checked = [p[key] for task in ("arith", "symbols") for p in problems(program, task, "test", 50)
               for key in ("prompt", "answer")] + ODD_TEXTS
    chat = "<|im_start|>user\nWhat is 1 + 2?<|im_end|>\n<|im_start|>assistant\nAnswer: 3<|im_end|>"
    (folder / "ids.json").write_text(json.dumps(
        [{"text": text, "ids": tokenizer.encode(text).ids} for text in checked + [chat]], ensure_ascii=False) + "\n")
    print(f"{tokenizer.get_vocab_size()} tokens")


if __name__ == "__main__":
    main()
