// The page: a prompt, its answer, and the server while it works.

import { Answer, percent } from "./answer.js";
import { call, events, Failure, said, setKey } from "./api.js";
import { Timeline } from "./timeline.js";

const $ = (id) => document.getElementById(id);
const answer = new Answer($("answer"), $("bubble"), $("spoken"));
const timeline = new Timeline($("timeline"));
let members = []; // models, small first
let chats = true; // the server has a chat template
let asking; // AbortController of the request under way

function show(error) {
  $("error").hidden = error === "";
  $("error").textContent = error;
}

// words says a failure, and what can be done about it.
function words(failure) {
  switch (failure.status) {
    case 401: return "This server wants its API key: enter it above.";
    case 429: return `The server is full. Try again${failure.retryAfter ? ` in ${failure.retryAfter} s` : ""}. (${failure.message})`;
    case 503: return `The server takes no requests now. (${failure.message})`;
    default: return failure.message;
  }
}

function wantKey(failure) {
  if (failure.status !== 401 || $("access").open) return;
  $("access").open = true;
  $("key").focus();
}

// Models

async function loadModels() {
  const list = (await (await call("/v1/models")).json()).data;
  const chosen = $("model").value;
  $("model").replaceChildren(...list.map((m) => new Option(m.id, m.id)));
  if (list.some((m) => m.id === chosen)) $("model").value = chosen;
}

function setModels(names) {
  if (names.join("\n") === members.join("\n")) return;
  members = answer.models = names;
  $("share-of").textContent = names.length > 1 ? `By ${names.at(-1)}` : "Large model";
  $("legend").replaceChildren(...names.map((name, i) => {
    const span = document.createElement("span");
    span.className = `of-${i % 8}`;
    span.textContent = name;
    return span;
  }));
}

// Asking

function body(prompt) {
  const temperature = Number($("temperature").value), most = Number($("tokens-max").value);
  const common = {
    model: $("model").value, max_tokens: most, temperature, stream: true, stream_options: { include_usage: true },
    return_origin: true, return_router_score: true,
  };
  return chats ? { ...common, messages: [{ role: "user", content: prompt }], logprobs: true }
    : { ...common, prompt, logprobs: 0 };
}

// tokensOf are those of a chunk's choice.
function tokensOf(choice) {
  const origin = choice.origin ?? [], scores = choice.router_score ?? [];
  const logs = choice.logprobs?.content ?? (choice.logprobs?.tokens ?? []).map((token, i) => ({
    token, logprob: choice.logprobs.token_logprobs[i], bytes: [...new TextEncoder().encode(token)],
  }));
  return origin.map((model, i) => ({
    model, text: logs[i]?.token ?? "", bytes: logs[i]?.bytes,
    probability: logs[i] === undefined ? undefined : Math.exp(logs[i].logprob), score: scores[i] ?? undefined,
  }));
}

// Figures are those of one answer.
class Figures {
  constructor() {
    this.begun = performance.now();
    for (const id of ["ttft", "speed", "tokens", "share", "dropped", "finish"]) $(id).textContent = "–";
  }

  show() {
    const now = performance.now();
    this.first ??= now;
    const seconds = (now - this.first) / 1000;
    $("ttft").textContent = `${((this.first - this.begun)).toFixed(0)} ms`;
    $("tokens").textContent = String(answer.total);
    $("share").textContent = members.length > 1 ? percent(answer.share) : "–";
    if (seconds > 0.05 && answer.total > 1) {
      $("speed").textContent = `${((answer.total - 1) / seconds).toFixed(1)} tok/s`;
    }
  }

  // end takes the server's counts. An answer too short for a speed between tokens has that of the whole of it.
  end(usage) {
    if ($("speed").textContent === "–" && usage.completion_tokens > 0) {
      const seconds = (performance.now() - this.begun) / 1000;
      $("speed").textContent = `${(usage.completion_tokens / seconds).toFixed(1)} tok/s`;
    }
    $("tokens").textContent = String(usage.completion_tokens);
    $("dropped").textContent = String(usage.dropped_drafts ?? "–");
    if (members.length > 1 && usage.large_model_share !== undefined) {
      $("share").textContent = percent(usage.large_model_share);
    }
  }
}

// follow shows a stream until its end.
async function follow(response, figures) {
  let finish = "";
  for await (const data of events(response.body)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new Failure(`The answer broke off: ${said(data)}`);
    if (chunk.origin_models) setModels(chunk.origin_models);
    for (const choice of chunk.choices) {
      const text = choice.delta?.content ?? choice.text ?? "", tokens = tokensOf(choice);
      if (text !== "" || tokens.length > 0) {
        answer.add(text, tokens);
        figures.show();
      }
      if (choice.finish_reason) $("finish").textContent = finish = choice.finish_reason;
    }
    if (chunk.usage) figures.end(chunk.usage);
  }
  if (finish === "") throw new Failure("The answer broke off: the connection ended.");
}

async function ask() {
  const prompt = $("prompt").value;
  if (asking) return;
  if (prompt.trim() === "") {
    show("Type a prompt first.");
    $("prompt").focus();
    return;
  }
  if (!$("ask").reportValidity()) return;
  show("");
  answer.clear();
  asking = new AbortController();
  $("stop").hidden = false;
  $("send").disabled = true;
  $("answer").setAttribute("aria-busy", "true");
  const figures = new Figures();
  try {
    const response = await call(chats ? "/v1/chat/completions" : "/v1/completions", {
      method: "POST", body: JSON.stringify(body(prompt)), signal: asking.signal,
      headers: { "Content-Type": "application/json" },
    });
    await follow(response, figures);
    $("spoken").textContent = `The answer is there: ${answer.total} tokens.`;
  } catch (error) {
    if (error.name === "AbortError") {
      $("finish").textContent = "stopped";
    } else {
      show(error instanceof Failure ? words(error) : "The answer broke off: the connection ended.");
      wantKey(error);
    }
  } finally {
    const focused = document.activeElement === $("stop");
    asking = undefined;
    $("stop").hidden = true;
    $("send").disabled = false;
    $("answer").removeAttribute("aria-busy");
    if (focused) $("send").focus();
  }
}

// The server, live

function tell(news) {
  const last = news.states.at(-1) ?? timeline.states.at(-1);
  $("state").textContent = `${news.live} live, ${news.waiting} waiting, ${percent(news.large_model_share)} of all tokens by ${news.models.at(-1)}`;
  $("now").replaceChildren(...news.models.map((name, model) => {
    const row = document.createElement("tr"), head = document.createElement("th"), swatch = document.createElement("span");
    head.scope = "row";
    swatch.className = `swatch of-${model % 8}`;
    head.append(swatch, name);
    row.append(head);
    const pass = timeline.running.find((p) => p.model === model), step = timeline.step(model);
    for (const value of [pass?.rows ?? 0, last?.queued[model] ?? 0, last?.thresholds[model] ?? "–",
      step === undefined ? "–" : `${step.toPrecision(3)} ms`]) {
      row.insertCell().textContent = String(value);
    }
    return row;
  }));
  $("load").textContent = news.planned_tok_s && news.live > 0
    ? `Planned for ${news.live} live: ${news.planned_tok_s.toFixed(0)} tok/s.` : "";
}

// watch asks for news until the page is left: often while something happens, and not while it is hidden.
async function watch() {
  const quick = 250, slow = 1000, failed = 3000;
  for (;;) {
    let wait = slow;
    if (document.visibilityState === "visible") {
      try {
        const news = await (await call(`/live?after_ms=${timeline.after}`)).json();
        timeline.take(news);
        if (news.models.length > 0) setModels(news.models);
        chats = news.chat;
        if ($("model").options.length === 0) await loadModels();
        tell(news);
        if (news.live > 0 || asking) wait = quick;
      } catch (error) {
        $("state").textContent = error instanceof Failure ? words(error) : "The server can not be reached.";
        wantKey(error);
        wait = failed;
      }
    }
    await new Promise((resolve) => {
      wake = resolve;
      setTimeout(resolve, wait);
    });
  }
}
let wake = () => {};

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
  wake();
});
$("stop").addEventListener("click", () => asking?.abort());
$("prompt").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("ask").requestSubmit();
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape") asking?.abort();
});
$("access-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setKey($("key").value);
  $("access").open = false;
  show("");
  wake();
});
$("span").addEventListener("change", () => timeline.show(Number($("span").value)));
document.addEventListener("visibilitychange", () => wake());
watch();
