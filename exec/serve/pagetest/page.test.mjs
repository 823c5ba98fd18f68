// Tests of the page in a headless browser, against `tokenrouter serve` with a pair of tiny random models.
// run.sh starts them. A proxy stands between, for answers that the server gives only when it is in trouble.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import http from "node:http";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const { PROGRAM, MODELS, SHOTS, CHROMIUM } = process.env;

// Server is a tokenrouter serve that runs.
class Server {
  static async start(env = {}) {
    const s = new Server();
    s.process = spawn(PROGRAM, ["serve", "--small", `${MODELS}/small`, "--large", `${MODELS}/large`, "--algorithm",
      "rstitch", "--threshold", "0.9", "--context-max", "4096", "-n", "3", "--queue", "2", "--name", "pair",
      "--listen", "127.0.0.1:0"], { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "ignore"] });
    for await (const text of s.process.stdout) {
      s.port = Number(/:(\d+)\/v1/.exec(text)[1]);
      break;
    }
    return s;
  }

  get url() { return `http://127.0.0.1:${this.port}`; }

  async health() { return (await fetch(`${this.url}/health`)).json(); }

  stop() { this.process.kill(); }
}

let server, proxy, browser, url;
let fault; // while set, answers requests for answers in the server's place

before(async () => {
  server = await Server.start();
  proxy = http.createServer((request, answer) => {
    if (fault && request.method === "POST") {
      request.resume();
      fault(answer);
      return;
    }
    const onward = http.request({ port: server.port, host: "127.0.0.1", path: request.url, method: request.method,
      headers: request.headers }, (response) => {
      answer.writeHead(response.statusCode, response.headers);
      response.pipe(answer);
    });
    request.pipe(onward);
    onward.on("error", () => answer.destroy());
    answer.on("close", () => onward.destroy());
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${proxy.address().port}/`;
  browser = await chromium.launch({ executablePath: CHROMIUM || undefined, args: ["--no-sandbox"] });
});

after(async () => {
  await browser?.close();
  proxy?.closeAllConnections();
  proxy?.close();
  server?.stop();
});

// on opens the page, runs body, and wants no error of the page and no request to another host.
async function on(options, body) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, ...options });
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("request", (r) => { if (!r.url().startsWith(options.at ?? url)) wrong.push(`asked ${r.url()}`); });
  try {
    await page.goto(options.at ?? url);
    await body(page);
    assert.deepEqual(wrong, []);
  } finally {
    fault = undefined;
    await page.close();
  }
}

const ready = (page) => page.waitForFunction(() => document.getElementById("model").options.length === 3);
const idle = (page) => page.waitForFunction(() => document.getElementById("stop").hidden);
const text = (page, id) => page.locator(`#${id}`).textContent();

async function ask(page, prompt, tokens = 40) {
  await ready(page);
  await page.getByLabel("Prompt", { exact: true }).fill(prompt);
  await page.getByLabel("Tokens", { exact: true }).fill(String(tokens));
  await page.getByLabel("Prompt", { exact: true }).press("Control+Enter");
}

// counted waits for an answer of so many tokens.
const counted = (page, n) => page.waitForFunction((n) => document.getElementById("tokens").textContent === String(n), n,
  { timeout: 90_000 });

test("an answer is that of the server, token by token, in the colours of both models", () => on({}, async (page) => {
  await ask(page, "Hello é \u{1f600}");
  await counted(page, 40);
  await idle(page);
  const direct = await (await fetch(`${server.url}/v1/chat/completions`, { method: "POST", body: JSON.stringify({
    model: "pair", messages: [{ role: "user", content: "Hello é \u{1f600}" }], max_tokens: 40, temperature: 0,
    return_origin: true }) })).json();
  const shown = await page.locator("#answer").evaluate((box) => box.textContent);
  assert.equal(shown, direct.choices[0].message.content);
  const origin = await page.locator("#answer").evaluate((box) =>
    [...box.children].flatMap((span) => span.tokens.map((t) => t.model)));
  const cut = direct.choices[0].origin.slice(0, origin.length); // tokens without text have no span
  assert.ok(origin.length >= 30 && origin.length <= 40);
  assert.equal(new Set(cut).size, 2, "both models made tokens");
  assert.ok(await page.locator(".of-0.token").count() > 0 && await page.locator(".of-1.token").count() > 0);
  const share = 100 * direct.usage.large_model_share;
  assert.equal(await text(page, "share"), share >= 10 ? `${share.toFixed(0)} %` : `${share.toPrecision(2)} %`);
  assert.equal(await text(page, "dropped"), String(direct.usage.dropped_drafts));
  assert.match(await text(page, "ttft"), /^\d+ ms$/);
  assert.match(await text(page, "speed"), /^[\d.]+ tok\/s$/);
  assert.equal(await text(page, "finish"), "length");
  await page.waitForFunction(() => document.getElementById("state").textContent.startsWith("0 live, 0 waiting, "));
}));

test("a token tells of its model and probability, pointed at, touched and by keys", () => on({ hasTouch: true }, async (page) => {
  await ask(page, "Hi");
  await counted(page, 40);
  await idle(page);
  const third = page.locator(".token").nth(2), bubble = page.getByRole("tooltip");
  await third.hover();
  assert.match(await bubble.textContent(), /^"[^]*", token \d+\n(small|large), probability [\d.e-]+ %/);
  await page.mouse.move(2, 2);
  await bubble.waitFor({ state: "hidden" });
  await third.tap();
  await bubble.waitFor();
  await page.locator("#answer").focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.querySelectorAll(".token")[2].classList.contains("here"));
  await page.waitForFunction(() => /probability/.test(document.getElementById("spoken").textContent));
  const box = await bubble.boundingBox();
  assert.ok(box.x >= 0 && box.y >= 0 && box.x + box.width <= 1280 && box.y + box.height <= 800);
  await page.keyboard.press("Escape");
  await bubble.waitFor({ state: "hidden" });
  await page.locator("#answer").evaluate((box) => { // keys that come within one frame
    for (const key of ["Home", "ArrowRight", "ArrowRight", "ArrowRight"]) {
      box.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    }
  });
  await bubble.waitFor();
  assert.ok(await page.locator(".token").nth(3).evaluate((span) => span.classList.contains("here")));
  assert.equal(await page.locator(".token.here").count(), 1);
}));

test("an answer that comes all at once has a speed", () => on({}, async (page) => {
  await ready(page);
  fault = (a) => a.writeHead(200, stream).end(chunk("ab", [0, 0], []) +
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage: { completion_tokens: 2 } })}\n\n` +
    "data: [DONE]\n\n");
  await ask(page, "Quick");
  await page.waitForFunction(() => document.getElementById("finish").textContent === "stop");
  assert.match(await text(page, "speed"), /^[\d.]+ tok\/s$/);
}));

test("Escape and the button stop an answer, in the server too", () => on({}, async (page) => {
  for (const stop of [() => page.keyboard.press("Escape"), () => page.getByRole("button", { name: "Stop" }).click()]) {
    await ask(page, "Count", 4000);
    await page.waitForFunction(() => Number(document.getElementById("tokens").textContent) > 20);
    await stop();
    await idle(page);
    assert.equal(await text(page, "finish"), "stopped");
    assert.equal(await page.getByLabel("Prompt", { exact: true }).inputValue(), "Count");
    assert.ok(await page.locator("#error").isHidden());
    while ((await server.health()).live > 0) await page.waitForTimeout(50);
  }
}));

const chunk = (content, origin, logs, router_score) => `data: ${JSON.stringify({ origin_models: ["small", "large"],
  choices: [{ index: 0, delta: { content }, origin, logprobs: { content: logs }, router_score, finish_reason: null }] })}\n\n`;
const stream = { "Content-Type": "text/event-stream" };
const failure = (message) => JSON.stringify({ error: { message, type: "t", param: null, code: null } });

for (const [name, answer, want] of [
  ["a full server", (a) => a.writeHead(429, { "Retry-After": "7" }).end(failure("5 of 5 places are taken")),
    "The server is full. Try again in 7 s. (5 of 5 places are taken)"],
  ["a server that ends", (a) => a.writeHead(503).end(failure("the server ends")),
    "The server takes no requests now. (the server ends)"],
  ["a wrong field", (a) => a.writeHead(400).end(failure("max_tokens = 9, want less")), "max_tokens = 9, want less"],
  ["an error that is no document", (a) => a.writeHead(502).end("<b>Bad gateway</b>"), "<b>Bad gateway</b>"],
  ["an error in a stream", (a) => a.writeHead(200, stream).end(`${chunk("ab", [0], [])}data: ${failure("a fuse blew")}\n\n`),
    "The answer broke off: a fuse blew"],
  ["a stream that ends early", (a) => a.writeHead(200, stream).end(chunk("ab", [0], [])),
    "The answer broke off: the connection ended."],
  ["a connection that breaks", (a) => { a.writeHead(200, stream).write(chunk("ab", [0], [])); setTimeout(() => a.destroy(), 50); },
    "The answer broke off: the connection ended."],
  ["no connection", (a) => a.destroy(), "The server can not be reached."],
]) {
  test(`${name} is told, and the prompt stays`, () => on({}, async (page) => {
    await ready(page);
    fault = answer;
    await ask(page, "My long question");
    await page.getByRole("alert").filter({ hasText: want }).waitFor();
    assert.equal(await text(page, "error"), want);
    assert.equal(await page.getByLabel("Prompt", { exact: true }).inputValue(), "My long question");
    assert.ok(await page.getByRole("button", { name: "Send" }).isEnabled());
    fault = undefined;
    await ask(page, "Again");
    await counted(page, 40);
    assert.ok(await page.locator("#error").isHidden());
  }));
}

test("bytes may be split anywhere, and a character over tokens", () => on({}, async (page) => {
  await ready(page);
  const log = (bytes, p) => ({ token: "?", logprob: Math.log(p), bytes });
  const emoji = [...Buffer.from("\u{1f600}")];
  const whole = Buffer.from(": wait\r\n\r\n" + chunk("né", [0], [log([...Buffer.from("né")], 0.5)], [0.0314]) +
    chunk("\u{1f600}!", [0, 1, 1], [log(emoji.slice(0, 1), 0.25), log(emoji.slice(1), 0.75), log([33], 1)],
      [null, 0.975, 1]) +
    chunk(" 中\u{1f468}‍\u{1f469}", [1], [log([], 1)]).replaceAll("\n", "\r\n") +
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`);
  fault = async (a) => {
    a.writeHead(200, stream);
    for (const byte of whole) {
      a.write(Buffer.from([byte]));
      await new Promise(setImmediate);
    }
    a.end();
  };
  await ask(page, "Split");
  await page.waitForFunction(() => document.getElementById("finish").textContent === "stop");
  fault = undefined;
  const spans = await page.locator("#answer > span").evaluateAll((all) =>
    all.map((s) => [s.textContent, s.className, s.tokens.length]));
  assert.deepEqual(spans, [["né", "token of-0", 1], ["\u{1f600}", "token of-1", 2], ["!", "token of-1", 1],
    [" 中\u{1f468}‍\u{1f469}", "token of-1", 1]]);
  await page.locator(".token").nth(0).hover();
  assert.equal(await page.getByRole("tooltip").textContent(), '"?", token 1\nsmall, probability 50 %, router score 0.031');
  await page.locator(".token").nth(1).hover();
  assert.equal(await page.getByRole("tooltip").textContent(),
    '"?", token 2\nsmall, probability 25 %\n"?", token 3\nlarge, probability 75 %, router score 0.97');
}));

test("an empty prompt is not sent", () => on({}, async (page) => {
  await ready(page);
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("alert").filter({ hasText: "Type a prompt first." }).waitFor();
}));

test("a long answer scrolls in its box and follows its end", () => on({}, async (page) => {
  await ask(page, "Long", 1500);
  await counted(page, 1500);
  await idle(page);
  await page.waitForFunction(() => { // a frame later
    const b = document.getElementById("answer"), over = b.scrollHeight - b.clientHeight;
    return over > 0 && over - b.scrollTop < 60;
  });
}));

test("the server is seen at work", () => on({}, async (page) => {
  await ask(page, "Work", 3000);
  await page.waitForFunction(() => document.getElementById("state").textContent.startsWith("1 live"));
  const rows = await page.locator("#now tr").evaluateAll((all) => all.map((r) => r.innerText.split("\t")));
  assert.deepEqual(rows.map((r) => [r[0], r[3]]), [["small", "1"], ["large", "1"]]);
  await page.waitForFunction(() => { // blocks of both models are drawn
    const canvas = document.getElementById("timeline"), g = canvas.getContext("2d");
    const { data } = g.getImageData(0, 0, canvas.width, canvas.height);
    let blue = 0, orange = 0;
    for (let i = 0; i < data.length; i += 4) {
      if (data[i + 2] > data[i] + 60) blue++;
      if (data[i] > data[i + 2] + 60) orange++;
    }
    return blue > 500 && orange > 500;
  });
  await page.getByLabel("Shown").selectOption("10 s");
  await page.keyboard.press("Escape");
  await idle(page);
}));

test("a server that wants its key asks for it", async () => {
  const locked = await Server.start({ TOKENROUTER_API_KEY: "secret" });
  try {
    await on({ at: `${locked.url}/` }, async (page) => {
      const key = page.getByLabel("Key of this server");
      await key.waitFor();
      assert.equal(await text(page, "state"), "This server wants its API key: enter it above.");
      assert.equal(await page.locator("#now tr").count(), 0);
      await key.fill("secret");
      await key.press("Enter");
      await ask(page, "Open", 10);
      await counted(page, 10);
      assert.ok(await key.isHidden());
    });
  } finally {
    locked.stop();
  }
});

// contrast is that of two colours (WCAG 2.2).
const contrast = (a, b) => {
  const light = (c) => {
    const [r, g, b] = c.match(/[\da-f]{2}/g).map((h) => parseInt(h, 16) / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [dark, bright] = [light(a), light(b)].sort((x, y) => x - y);
  return (bright + 0.05) / (dark + 0.05);
};

for (const colorScheme of ["light", "dark"]) {
  for (const width of [320, 390, 1280]) {
    test(`nothing is cut off at ${width} px, ${colorScheme}`, () => on({ colorScheme, viewport: { width, height: 844 } }, async (page) => {
      await ask(page, "Why is the sky blue, and not as green as a meadow in May? ".repeat(4), 200);
      await counted(page, 200);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${over} px too wide`);
      const small = await page.evaluate(() => [...document.querySelectorAll("button, select, input")]
        .filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 24).map((e) => e.id));
      assert.deepEqual(small, [], "targets of at least 24 px");
      await page.screenshot({ path: `${SHOTS}/${colorScheme}-${width}.png`, fullPage: true });
    }));
  }
  test(`words are readable, ${colorScheme}`, () => on({ colorScheme }, async (page) => {
    const colours = await page.evaluate(() => {
      const style = getComputedStyle(document.documentElement);
      return Object.fromEntries(["ground", "sheet", "ink", "faint", "accent", "accent-ink", "bad", "bad-ground"]
        .map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    });
    for (const [ink, ground] of [["ink", "ground"], ["ink", "sheet"], ["faint", "ground"], ["faint", "sheet"],
      ["accent-ink", "accent"], ["bad", "bad-ground"]]) {
      const ratio = contrast(colours[ink], colours[ground]);
      assert.ok(ratio >= 4.5, `${ink} on ${ground}: ${ratio.toFixed(2)}`);
    }
  }));
}
