#!/usr/bin/env python3
"""Makes golden.json: what Hugging Face transformers renders with the templates of this folder.

    python3 -m venv venv && venv/bin/pip install transformers==5.24.0 jinja2==3.1.6
    venv/bin/python make.py

smollm2.jinja is the chat template of SmolLM2-135M-Instruct; the others were written for this test and have
the constructs of the templates of Qwen3, Llama 3 and Mistral.
"""

import glob
import json
import os

from transformers.utils.chat_template_utils import render_jinja_template

HERE = os.path.dirname(os.path.abspath(__file__))


def message(role, content):
    return {"role": role, "content": content}


CONVERSATIONS = {
    "question": [message("user", "Hi")],
    "system": [message("system", " Be brief. \n"), message("user", "  Hi there \n")],
    "thoughts": [
        message("system", "Be brief."),
        message("user", "Hi"),
        message("assistant", "<think>\nhm\n</think>\n\nHello!"),
        message("user", "Bye"),
    ],
    "answered": [message("user", "Hi"), message("assistant", "<think>\nhm\n</think>\n\nHello!")],
    "odd text": [
        message("user", ""),
        message("assistant", "\nx\n"),
        message("user", "a 'b' \"c\" \\n {{ x }} {% if %} \u00e9 \u65e5\u672c \U0001f600\r\n\u00a0"),
    ],
    "two in a row": [message("user", "Hi"), message("user", "Hi")],
    "unknown role": [message("martian", "Hi")],
}
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}


def main():
    cases = []
    for path in sorted(glob.glob(HERE + "/*.jinja")):
        with open(path, newline="") as file:
            template = file.read()
        for name, messages in CONVERSATIONS.items():
            for reply in (False, True):
                for variables in ({"date_string": "01 Jan 2025"},
                                  {"date_string": "01 Jan 2025", "enable_thinking": False}):
                    case = {"template": os.path.basename(path), "name": name, "messages": messages,
                            "reply": reply, "variables": variables}
                    try:
                        case["text"] = render_jinja_template(
                            [messages], chat_template=template, add_generation_prompt=reply,
                            **SPECIAL, **variables)[0][0]
                    except Exception as error:
                        case["error"] = str(error)
                    cases.append(case)
    with open(HERE + "/golden.json", "w") as file:
        json.dump(cases, file, indent=1)
        file.write("\n")


main()
