// The timeline: a lane a model, drawn from what /live tells. Upwards are its passes, downwards its queue.

const kept = 30_000; // ms
// The picture is this much behind the server, so that it can move on evenly while news are on their way.
const behind = 400; // ms

// Timeline keeps the last passes and states, and draws them on canvas.
export class Timeline {
  constructor(canvas) {
    this.canvas = canvas;
    this.span = 3000; // ms that are shown
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.reset();
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  reset() {
    this.after = -1; // the server's clock at the last news
    this.passes = [];
    this.states = [];
    this.running = [];
    this.models = [];
  }

  // show sets how many ms are shown.
  show(span) {
    this.span = span;
    this.draw();
  }

  // take takes an answer of /live, and draws as long as there is something that moves.
  take(news) {
    if (news.now_ms < this.after) this.reset(); // another server
    this.after = news.now_ms;
    this.taken = performance.now();
    this.models = news.models;
    this.running = news.running;
    this.passes.push(...news.passes);
    this.states.push(...news.states);
    const from = news.now_ms - kept;
    this.passes = this.passes.filter((p) => p.end_ms >= from);
    const first = this.states.findLastIndex((s) => s.at_ms < from); // holds where the picture begins
    if (first > 0) this.states.splice(0, first);
    if (this.frame === undefined) this.draw();
  }

  // step is the mean time in ms of the passes of a model that are shown; undefined without any.
  step(model) {
    const own = this.passes.filter((p) => p.model === model && p.end_ms > this.after - this.span);
    return own.length === 0 ? undefined : own.reduce((sum, p) => sum + p.end_ms - p.start_ms, 0) / own.length;
  }

  // moves says whether the picture changes by itself: a pass is in it.
  get moves() {
    const last = this.passes.at(-1);
    return !this.still.matches && document.visibilityState === "visible" && (this.running.length > 0 ||
      last !== undefined && last.end_ms > this.after - this.span - behind);
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = undefined;
    const ratio = devicePixelRatio || 1, width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (width === 0) return;
    const passed = this.still.matches ? behind : Math.min(performance.now() - (this.taken ?? 0), 2 * behind);
    this.now = this.after + passed - behind;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const g = this.canvas.getContext("2d");
    g.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = 18, left = 26, right = width - 6, lane = (height - axis) / Math.max(this.models.length, 1);
    const x = (ms) => left + (right - left) * (1 - (this.now - ms) / this.span);
    g.font = "11px system-ui, sans-serif";
    g.fillStyle = colour("--faint");
    for (let part = 0; part <= 4; part++) {
      g.textAlign = part === 0 ? "left" : part === 4 ? "right" : "center";
      const ago = (1 - part / 4) * this.span / 1000;
      g.fillText(ago === 0 ? "now" : `-${ago} s`, left + (right - left) * part / 4, height - 5);
    }
    this.models.forEach((name, model) => {
      this.lane(g, { model, name, colour, x, left, right, top: model * lane, height: lane });
    });
    if (this.moves) this.frame = requestAnimationFrame(() => this.draw());
  }

  lane(g, l) {
    const title = 22, rows = (l.height - title - 8) * 0.6, depth = (l.height - title - 8) * 0.4;
    const base = l.top + title + rows;
    const from = this.now - this.span;
    const running = this.running.filter((p) => p.model === l.model).map((p) => ({ ...p, end_ms: this.now }));
    const passes = [...this.passes.filter((p) => p.model === l.model && p.end_ms > from), ...running]
      .filter((p) => p.start_ms < this.now);
    const states = this.states.slice(Math.max(this.states.findLastIndex((s) => s.at_ms <= from), 0))
      .filter((s) => s.at_ms < this.now);
    const rowsMax = Math.max(2, ...passes.map((p) => p.rows));
    const queueMax = Math.max(2, ...states.map((s) => Math.max(s.queued[l.model], s.thresholds[l.model])));
    const ink = l.colour(`--model-${l.model % 8}`), faint = l.colour("--faint");
    g.save();
    g.beginPath();
    g.rect(l.left, l.top, l.right - l.left, l.height);
    g.clip();
    g.fillStyle = ink;
    g.globalAlpha = 0.75;
    for (const p of passes) {
      const start = l.x(p.start_ms), end = Math.max(l.x(Math.min(p.end_ms, this.now)), start + 0.5);
      const gap = end - start > 3 ? 1 : 0, high = rows * p.rows / rowsMax;
      g.fillRect(start, base - high, end - start - gap, high);
    }
    g.globalAlpha = 0.55;
    g.fillStyle = faint;
    states.forEach((s, i) => {
      const start = l.x(s.at_ms), end = l.x(states[i + 1]?.at_ms ?? this.now);
      g.fillRect(start, base, Math.max(end - start, 0.5), depth * s.queued[l.model] / queueMax);
    });
    g.globalAlpha = 1;
    g.strokeStyle = ink;
    g.lineWidth = 1.5;
    g.setLineDash([5, 4]);
    g.beginPath();
    states.forEach((s, i) => {
      const level = base + depth * s.thresholds[l.model] / queueMax;
      g[i === 0 ? "moveTo" : "lineTo"](l.x(s.at_ms), level);
      g.lineTo(l.x(states[i + 1]?.at_ms ?? this.now), level);
    });
    g.stroke();
    g.restore();
    g.strokeStyle = l.colour("--line");
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(l.left, base + 0.5);
    g.lineTo(l.right, base + 0.5);
    g.stroke();
    g.fillStyle = faint;
    g.textAlign = "right";
    g.fillText(String(rowsMax), l.left - 5, base - rows + 9);
    g.fillText("0", l.left - 5, base + 4);
    g.fillText(String(queueMax), l.left - 5, base + depth + 2);
    g.textAlign = "left";
    g.font = "600 12px system-ui, sans-serif";
    g.fillStyle = l.colour("--ink");
    g.fillText(l.name, l.left, l.top + 16);
    g.font = "11px system-ui, sans-serif";
  }
}
