#!/usr/bin/env python3
"""Makes the test data of this folder, and ../unicode.gz, with the Hugging Face tokenizers library.

    python3 -m venv venv && venv/bin/pip install tokenizers==0.23.3
    venv/bin/python make.py

    NAME.json.gz    a tokenizer.json
    NAME.gold.gz    what the library makes of the corpus with it (see gold)
    corpus.gz       the texts, a JSON list
    unicode.gz      what the library knows of every code point (see tables)

The training texts are sources of Python's own library, so the files differ between versions of Python; they were
made with 3.11. The tests need the files to fit each other only.
"""

import gzip
import hashlib
import json
import os
import random
import sys
import unicodedata

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import trainers

HERE = os.path.dirname(os.path.abspath(__file__))
assert tokenizers.__version__ == "0.23.3", tokenizers.__version__

QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SPLIT = r"[aeiou]{2,3}?|\d{2}|\s++|(?i:Sk)(?=\p{L})|[^\P{M}\u0301]|(?:[A-F][0-9a-f])?x|[a-c](?:d|e{0,2}f?)(?!\w)"
CATEGORIES = ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn").split()
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def write(name, data):
    with open(os.path.join(HERE, name), "wb") as out:
        out.write(gzip.compress(data, 9, mtime=0))


def dump(name, value):
    write(name, json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


# ---- unicode.gz

def members(pre_tokenizer):
    """The code points that a pre-tokenizer removes."""
    hit = set()
    for base in range(0, 0x110000, 0x100):
        text = "".join(chr(c) for c in range(base, base + 0x100) if not 0xD800 <= c < 0xE000)
        if text:
            left = set("".join(piece for piece, _ in pre_tokenizer.pre_tokenize_str(text)))
            hit.update(ord(c) for c in text if c not in left)
    return hit


def numeric():
    digits = pre_tokenizers.Digits(individual_digits=True)
    hit = set()
    for base in range(0, 0x110000, 0x100):
        text = "".join("a" + chr(c) for c in range(base, base + 0x100) if not 0xD800 <= c < 0xE000)
        if text:
            pieces = [piece for piece, _ in digits.pre_tokenize_str(text)]
            hit.update(ord(p) for p in pieces if len(p) == 1 and p != "a")
    return hit


def beside_word():
    """The code points beside which an added token with single_word is not found."""
    t = Tokenizer(models.BPE({"x": 0}, []))
    t.add_tokens([AddedToken("@@", single_word=True, normalized=False)])
    hit = set()
    for k in range(0, len(POINTS), 20000):
        part = POINTS[k:k + 20000]
        encoded = t.encode_batch([chr(c) + "@@" for c in part])
        hit.update(c for c, e in zip(part, encoded) if 1 not in e.ids)
    return hit


def tables():
    """Attributes, combining classes, decompositions and composites, each as numbers in varint form."""
    attributes = [len(CATEGORIES)] * 0x110000
    for i, name in enumerate(CATEGORIES):
        for c in members(pre_tokenizers.Split(Regex(r"\p{%s}" % name), "removed")):
            attributes[c] = i
    flags = [members(pre_tokenizers.Split(Regex(r"\s"), "removed")),
             members(pre_tokenizers.Split(Regex(r"\w"), "removed")), numeric(), beside_word()]
    for bit, hit in enumerate(flags):
        for c in hit:
            attributes[c] |= 32 << bit
    out = []
    runs = [(c, v) for c, v in enumerate(attributes) if c == 0 or attributes[c - 1] != v]
    out.append(len(runs))
    last = 0
    for c, v in runs:
        out += [c - last, v]
        last = c
    nfd, nfc = normalizers.NFD().normalize_str, normalizers.NFC().normalize_str

    def moves(c):
        return nfd(chr(c) + "\u0334")[0] == "\u0334" or nfd("\u0300" + chr(c))[0] != "\u0300"
    whole = {c: nfd(chr(c)) for c in POINTS if not 0xAC00 <= c < 0xD7A4}
    whole = {c: s for c, s in whole.items() if s != chr(c)}
    classes = {c: unicodedata.combining(chr(c)) for c in POINTS if c not in whole and moves(c)}
    assert all(classes.values())
    out.append(len(classes))
    last = 0
    for c in sorted(classes):
        out += [c - last, classes[c]]
        last = c
    out.append(len(whole))
    last = 0
    for c in sorted(whole):
        out += [c - last, len(whole[c])] + [ord(x) for x in whole[c]]
        last = c
    pairs = []
    for c in sorted(whole):
        first = nfc(whole[c][:-1])
        if len(whole[c]) > 1 and nfc(chr(c)) == chr(c):
            assert len(first) == 1, hex(c)
            pairs.append([ord(first), ord(whole[c][-1]), c])
    out.append(len(pairs))
    for pair in pairs:
        out += pair
    data = bytearray()
    for n in out:
        while n >= 128:
            data.append(n & 127 | 128)
            n >>= 7
        data.append(n)
    write("../unicode.gz", bytes(data))


# ---- texts

SAMPLES = """
The quick brown fox jumps over the lazy dog. It's I'M we'Re they'll he'd I've don'T 'S'\u017fa 'ſ 'LL 'ſt
Größe, façade, naïve, Ångström, Dvořák, İstanbul, ıssız, ǅ ǈ ŉa ﬁn ﬆ ß ẞ \u212a\u212b
Съешь же ещё этих мягких французских булок, да выпей чаю. Ελληνικά: Ξεσκεπάζω την ψυχοφθόρα.
中文分词很有趣。日本語のテキスト、カタカナと漢字。한국어 문장입니다. \u1112\u1161\u11ab\u1100\u1173\u11af 각 각
हिन्दी में पाठ। ภาษาไทยไม่มีช่องว่าง עברית עם נִקּוּד العربية مع تشكيلٌ ١٢٣٤ ۱۲۳ १२३ ๑๒๓ Ⅷ ½ ² ㊿ 〇 𝟘𝟙 𐒠
👩‍👩‍👧‍👦 👍🏽 🏳️‍🌈 🇩🇪🇫🇷 ☺️ 1️⃣ 😀😃 🫠 zero\u200bwidth\u200djoin\ufeff bom\u00ad soft
def f(x):\n    if x:\n        y = 10\n\treturn {"a": [1, 2.5e-3, 0xFF], 'b': None}  # comment\n\n\n
a  b   c    d\t\te \t f\r\ng\rh\u000bi\u000cj\u0085k\u00a0l\u1680m\u2000n\u2003o\u2028p\u2029q\u202fr\u205fs\u3000t
3.14 1234567890 1,000,000 2024-01-02T03:04:05Z 12345678901234567890 v1.2.3 10% $5 €7 ¥8 #9
https://example.com/a?b=c&d=%20#e user@host.org C:\\path\\file /usr/bin ../x foo_bar-baz __init__ a::b->c => != <=
<|im_start|>user\nhello<|im_end|>\n<|endoftext|> <s>x</s> <unk> <0x0A> <0x> <tool_call>{}</tool_call> [INST] <<SYS>>
e\u0301 E\u0301 a\u0323\u0302 a\u0302\u0323 q\u0307\u0323 \u0344 \u0958 \u2126 \uf900 \ufb1d o\u031b\u0301 \u1e9b\u0323
\u2581 ▁▁a▁b \u2581x   ▁ Ġ Ċ ĠĠhi â Ń ſ
""".strip("\n").split("\n")
SPACES = " \t\n\r\u000b\u000c\u0085\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000"


def corpus():
    rng = random.Random(7)
    texts = ["", " ", "  ", "\n", "a", "a  b", "if x:\n    y = 10", "tab\t\tx", "3.14", "a  ", "e\u0301", "\u0000", "\ufffd",
             "\U0010ffff", "\u200d", "'", "''s", "'s", "ab", "a" * 3000, " " * 2000, "\n" * 500, "ab " * 700, "1" * 1000,
             "a" + "\u0301" * 100, "\u0323\u0301" * 60, "x\u0316\u0300" * 40, "👍🏽" * 100, "中" * 600, "\u2581" * 50,
             " \n" * 200 + "x", "<" * 300, "é" * 400, "\u1100\u1161\u11a8" * 30, "\ud7a3\u11a8", "\uac00\u11a8\u11a8"]
    texts += SAMPLES + ["\n".join(SAMPLES)]
    texts += [s.replace(" ", "") for s in SAMPLES] + [unicodedata.normalize("NFD", s) for s in SAMPLES]
    texts += [s.upper() for s in SAMPLES] + ["  " + s + "  " for s in SAMPLES] + [s[::-1] for s in SAMPLES]
    words = sorted({w for s in SAMPLES for w in s.split()})
    specials = [t.content for t in nasty()] + ["<s>", "</s>", "<unk>", "<|im_start|>", "<|im_end|>", "<|endoftext|>",
                                               "<tool_call>", "<think>", "<|begin_of_text|>", "<0x41>", "<0xE4>"]
    planes = [(0x20, 0x7F)] * 6 + [(0x80, 0x250)] * 3 + [(0x250, 0x3000)] * 3 + [(0x3000, 0xD800), (0xE000, 0x10000)]
    planes += [(0x10000, 0x20000)] * 3 + [(0x20000, 0x30000), (0x30000, 0x40000), (0x40000, 0x110000)]
    marks = [chr(c) for c in POINTS if unicodedata.combining(chr(c))]

    def point():
        kind = rng.random()
        if kind < 0.15:
            return rng.choice(SPACES)
        if kind < 0.25:
            return rng.choice(marks)
        if kind < 0.30:
            return chr(0xAC00 + rng.randrange(11172)) + rng.choice(["", "\u11a8", "\u1161"])
        c = rng.randrange(*rng.choice(planes))
        return chr(c)
    for _ in range(900):
        texts.append("".join(point() for _ in range(rng.randrange(1, 40))))
    for _ in range(700):
        texts.append("".join(rng.choice([rng.choice(words), rng.choice(words), rng.choice(SPACES) * rng.randrange(1, 4),
                                         rng.choice(specials), "", " ", point()]) for _ in range(rng.randrange(1, 25))))
    for _ in range(500):
        texts.append("".join(rng.choice(["'", "s", "T", "ll", "re", " ", "  ", "\n", "\r\n", "\t", "1", "22", "٣", "Ⅳ", "a",
                                         "É", "e\u0301", "中", "!", "...", "_", "\u00a0", "😀", "ſ", "<", ">", "@@"])
                             for _ in range(rng.randrange(1, 30))))
    for block in range(0, 0x32000, 0x40):  # every assigned plane, code point by code point
        if not 0xD800 <= block < 0xE000 and any(unicodedata.category(chr(c)) not in ("Cn", "Co")
                                                for c in range(block, block + 64)):
            if not 0x3500 <= block < 0xD700 and not 0x17100 <= block < 0x18C00 and block < 0x20000 or rng.random() < 0.05:
                texts.append("".join(chr(c) for c in range(block, block + 64)))
    for block in (0x2FA00, 0x30000, 0x31300, 0xE0000, 0xE0100, 0xF0000, 0x10FFC0):
        texts.append("a".join(chr(c) for c in range(block, block + 64)))
    return texts


def training():
    texts = list(SAMPLES) * 3
    folder = os.path.dirname(os.__file__)
    for name in ("argparse", "textwrap", "json/decoder", "this", "difflib"):
        with open(os.path.join(folder, name + ".py"), encoding="utf-8") as file:
            texts += file.read().split("\n\n")
    return texts


# ---- tokenizers

def nasty():
    return [AddedToken("<L>", lstrip=True, normalized=False), AddedToken("<R>", rstrip=True, normalized=False),
            AddedToken("<LR>", lstrip=True, rstrip=True, normalized=False, special=True),
            AddedToken("@@", single_word=True, normalized=False),
            AddedToken("word", single_word=True, lstrip=True, normalized=False),
            AddedToken("e\u0301x", normalized=True), AddedToken("\u00e9y", normalized=False),
            AddedToken("<a>", normalized=False), AddedToken("<a><b>", normalized=False, special=True),
            AddedToken("<b>", normalized=True, rstrip=True), AddedToken("\n\n\n", normalized=False),
            AddedToken("  <sp> ", normalized=False), AddedToken("the", normalized=True, single_word=True),
            AddedToken("<N>", normalized=True, special=True, lstrip=True), AddedToken("中文", normalized=True),
            AddedToken(" x", normalized=False, rstrip=True)]


def byte_level(pre, size=1200, specials=(), **model):
    t = Tokenizer(models.BPE(**model))
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(training(), trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=list(specials),
        show_progress=False))
    return t


def split_level(pattern, behavior="isolated", invert=False, **more):
    return byte_level(pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), behavior, invert),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), **more)


def template(token, id):
    return processors.TemplateProcessing(single=token + " $A", pair=token + " $A " + token + " $B",
                                         special_tokens=[(token, id)])


def edit(t, change):
    value = json.loads(t.to_str())
    change(value)
    return Tokenizer.from_str(json.dumps(value))


def metaspace_bpe(bytes_known=256, size=1500, **model):
    """Trained with Metaspace; the byte tokens go into the vocabulary but not into the added tokens."""
    t = Tokenizer(models.BPE(unk_token="<unk>", **model))
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.train_from_iterator([s[:400] for s in training()], trainers.BpeTrainer(
        vocab_size=size, show_progress=False, limit_alphabet=150,
        special_tokens=["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(bytes_known)]))

    def drop(value):
        value["added_tokens"] = [a for a in value["added_tokens"] if not a["content"].startswith("<0x")]
        value["pre_tokenizer"] = None
    return edit(t, drop)


LLAMA_DECODER = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
CONTROLS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def all_tokenizers():
    out = {}
    t = split_level(QWEN)
    t.normalizer = normalizers.NFC()
    t.add_special_tokens(CONTROLS)
    t.add_tokens([AddedToken(s, normalized=False) for s in ("<tool_call>", "</tool_call>", "<think>", "</think>")])
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    out["qwen"] = t
    t = split_level(QWEN)
    t.normalizer = normalizers.NFC()
    t.add_special_tokens(CONTROLS)
    t.add_tokens(nasty())
    out["nasty"] = t
    t = split_level(LLAMA3, ignore_merges=True)
    t.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"])
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), template(
        "<|begin_of_text|>", t.token_to_id("<|begin_of_text|>"))])

    def words(value):  # words that no merge makes, as real files have them
        vocab = value["model"]["vocab"]
        for a in value["added_tokens"]:
            a["id"] += 3
        for word in ("Ġzqzq", "qqxz", "123"):
            vocab[word] = len(vocab)
        ids = value["post_processor"]["processors"][1]["special_tokens"]["<|begin_of_text|>"]["ids"]
        ids[0] += 3
    out["llama3"] = edit(t, words)
    t = byte_level(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                            pre_tokenizers.ByteLevel(add_prefix_space=False)]), specials=CONTROLS)
    out["smollm"] = t
    t = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True), specials=["<|endoftext|>"])
    t.add_tokens(nasty())

    def strings(value):
        value["model"]["merges"] = [" ".join(m) for m in value["model"]["merges"]]
    out["gpt2"] = t
    STRINGS["gpt2"] = strings
    t = split_level(O200K)
    out["o200k"] = t
    t = metaspace_bpe(byte_fallback=True, fuse_unk=True)
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = LLAMA_DECODER
    t.post_processor = template("<s>", 1)
    out["llama2"] = t
    t = metaspace_bpe(byte_fallback=True, fuse_unk=True)
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    t.decoder = LLAMA_DECODER
    t.add_tokens(nasty())
    t.post_processor = template("<s>", 1)
    out["metaspace"] = t
    t = metaspace_bpe(bytes_known=200, byte_fallback=True, fuse_unk=True, size=1000)
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="always")])
    out["partbytes"] = t
    t = metaspace_bpe(bytes_known=0, fuse_unk=False, size=700)
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.add_tokens(nasty())
    t.decoder = decoders.Metaspace()
    out["unknown"] = t
    t = metaspace_bpe(bytes_known=0, fuse_unk=True, size=700)
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    t.decoder = decoders.Sequence([decoders.Metaspace(prepend_scheme="never"), decoders.Fuse(),
                                   decoders.Strip("x", 2, 0)])
    out["fused"] = t
    base = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False), size=600)
    for behavior in ("removed", "merged_with_previous", "merged_with_next", "contiguous", "isolated"):
        for invert in (False, True):  # merges go over all borders, so that each border counts
            t = Tokenizer.from_str(base.to_str())
            t.pre_tokenizer = pre_tokenizers.Sequence([
                pre_tokenizers.Split(Regex(SPLIT), behavior, invert),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
            out["split_%s_%s" % (behavior, invert)] = t
    out["split_isolated_True"].decoder = None
    return out


STRINGS = {}
FULL = ("qwen", "nasty", "llama3", "llama2")


def short(text):
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def gold(t, texts):
    """ids: of each text (one of "every" texts of the corpus), special tokens parsed. literal: where they differ
    with special tokens taken as text. added: with the template, the first 40 texts only. decoded: short hashes of
    what decodes to another text. skipped: of what differs when special tokens are skipped. random: ids at random
    with both decoded forms."""
    ids = [t.encode(s, add_special_tokens=False).ids for s in texts]
    added = [t.encode(s, add_special_tokens=True).ids for s in texts[:40]]
    t.encode_special_tokens = True
    literal = {i: t.encode(s, add_special_tokens=False).ids for i, s in enumerate(texts)}
    t.encode_special_tokens = False
    plain = [t.decode(i, skip_special_tokens=False) for i in ids]
    skipped = [t.decode(i, skip_special_tokens=True) for i in ids]
    rng = random.Random(11)
    size = t.get_vocab_size()
    chosen = [[rng.randrange(size + 2) if rng.random() < 0.6 else rng.randrange(min(size, 400))
               for _ in range(rng.randrange(0, 24))] for _ in range(300)]
    return {
        "ids": ids, "added": added, "size": size,
        "literal": {i: v for i, v in literal.items() if v != ids[i]},
        "decoded": {i: short(v) for i, v in enumerate(plain) if v != texts[i]},
        "skipped": {i: short(v) for i, v in enumerate(skipped) if v != plain[i]},
        "random": [[c, t.decode(c, skip_special_tokens=False), t.decode(c, skip_special_tokens=True)] for c in chosen],
    }


def main():
    tables()
    texts = corpus()
    dump("corpus.gz", texts)
    for name, t in all_tokenizers().items():
        value = json.loads(t.to_str())
        if name in STRINGS:
            STRINGS[name](value)
        t = Tokenizer.from_str(json.dumps(value))
        dump(name + ".json.gz", value)
        every = 10 if name.startswith("split_") else 1 if name in FULL else 3
        dump(name + ".gold.gz", dict(gold(t, texts[::every]), every=every))
        print(name, t.get_vocab_size(), len(texts[::every]), file=sys.stderr)


if __name__ == "__main__":
    main()
