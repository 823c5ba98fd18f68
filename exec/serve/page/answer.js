// The answer: a span a token, in the colour of its model. Text comes in whole characters, of which several
// tokens may be the parts; then their span is one, and it tells of all of them.

// Answer shows an answer in box, and what is known of a token in bubble.
export class Answer {
  constructor(box, bubble, spoken) {
    this.box = box;
    this.bubble = bubble;
    this.spoken = spoken;
    this.models = [];
    this.clear();
    box.addEventListener("pointerover", (event) => this.point(event.target.closest?.(".token")));
    box.addEventListener("pointerdown", (event) => this.point(event.target.closest?.(".token")));
    box.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") this.hide(); // a finger that is lifted leaves too
    });
    box.addEventListener("scroll", () => this.scrolled());
    box.addEventListener("blur", () => this.hide());
    box.addEventListener("keydown", (event) => this.key(event));
    addEventListener("resize", () => this.hide());
  }

  clear() {
    this.hide();
    this.box.replaceChildren();
    this.counts = [];
    this.total = 0;
    this.follow = true; // the end stays in sight
    this.top = 0;
  }

  // add shows text that tokens ({text, model, probability, score, bytes}) have given. The last model has their colour.
  add(text, tokens) {
    for (const part of split(text, tokens)) {
      for (const token of part.tokens) {
        token.index = ++this.total;
        this.counts[token.model] = (this.counts[token.model] ?? 0) + 1;
      }
      if (part.text !== "") this.span(part);
    }
  }

  span(part) {
    const span = document.createElement("span");
    const model = part.tokens.at(-1)?.model;
    span.className = model === undefined ? "" : `token of-${model % 8}`;
    if (part.text.trim() === "") span.classList.add("blank");
    span.textContent = part.text;
    span.tokens = part.tokens;
    this.box.append(span);
    this.frame ??= requestAnimationFrame(() => { // once for all tokens of a frame
      this.frame = undefined;
      if (this.follow) this.box.scrollTop = this.box.scrollHeight;
    });
  }

  // scrolled keeps to the end until somebody scrolls up, and again from when they are back there.
  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.box;
    if (scrollTop < this.top) this.follow = false;
    else if (scrollHeight - scrollTop - clientHeight < 48) this.follow = true;
    this.top = scrollTop;
    this.hide();
  }

  // share is the part of the tokens that the last of all models has made.
  get share() {
    return this.total === 0 ? 0 : (this.counts[this.models.length - 1] ?? 0) / this.total;
  }

  get here() { return this.box.querySelector(".here"); }

  mark(span) {
    this.here?.classList.remove("here");
    span.classList.add("here");
  }

  // point shows what is known of a token.
  point(span) {
    if (!span?.tokens) return;
    this.mark(span);
    const words = span.tokens.map((t) => this.words(t)).join("\n");
    this.bubble.textContent = words;
    this.bubble.hidden = false;
    const at = span.getClientRects()[0], size = this.bubble.getBoundingClientRect(), margin = 8;
    const left = Math.min(Math.max(at.left, margin), innerWidth - size.width - margin);
    const above = at.top - size.height - margin;
    this.bubble.style.left = `${left}px`;
    this.bubble.style.top = `${above > margin ? above : at.bottom + margin}px`;
  }

  words(t) {
    const sure = t.probability === undefined ? "" : `, probability ${percent(t.probability)}`;
    const score = t.score === undefined ? "" : `, router score ${Number(t.score.toPrecision(2))}`;
    return `${JSON.stringify(t.text)}, token ${t.index}\n${this.models[t.model] ?? "?"}${sure}${score}`;
  }

  hide() {
    this.here?.classList.remove("here");
    this.bubble.hidden = true;
  }

  key(event) {
    const all = [...this.box.querySelectorAll(".token")], at = all.indexOf(this.here);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Escape") this.hide();
    if (to === undefined || all.length === 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const span = all[Math.min(Math.max(to, 0), all.length - 1)];
    this.mark(span); // at once: the next key may come before the frame
    span.scrollIntoView({ block: "nearest" });
    requestAnimationFrame(() => { // after the scrolling, which hides the bubble
      this.point(span);
      this.spoken.textContent = this.bubble.textContent;
    });
  }
}

export function percent(p) {
  const hundred = 100 * p;
  return `${hundred >= 10 || hundred === 0 ? hundred.toFixed(0) : hundred.toPrecision(2)} %`;
}

// split divides text among tokens, where their bytes say how. A token that ends within a character goes with
// the next ones.
function split(text, tokens) {
  if (tokens.length <= 1) return [{ text, tokens }];
  const decoder = new TextDecoder();
  const parts = [];
  let held = [];
  for (const token of tokens) {
    held.push(token);
    const own = decoder.decode(Uint8Array.from(token.bytes ?? []), { stream: true });
    if (own !== "") {
      parts.push({ text: own, tokens: held });
      held = [];
    }
  }
  const rest = decoder.decode();
  if (held.length > 0 || rest !== "") parts.push({ text: rest, tokens: held });
  // Text that was held for a stop string, or that is cut at one, is not that of the bytes.
  return parts.map((p) => p.text).join("") === text ? parts : [{ text, tokens }];
}
