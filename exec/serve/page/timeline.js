// The timeline: a lane a model with its passes and its queue, drawn from what /live tells.

const span = 10_000; // ms that are shown

// Timeline keeps the last passes and states, and draws them on canvas.
export class Timeline {
  constructor(canvas) {
    this.canvas = canvas;
    this.reset();
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  reset() {
    this.after = -1;
    this.passes = [];
    this.states = [];
    this.running = [];
    this.models = [];
  }

  // take takes an answer of /live.
  take(news) {
    if (news.now_ms < this.after) this.reset(); // another server
    this.after = news.now_ms;
    this.models = news.models;
    this.running = news.running;
    this.passes.push(...news.passes);
    this.states.push(...news.states);
    const from = news.now_ms - span;
    this.passes = this.passes.filter((p) => p.end_ms >= from);
    const first = this.states.findLastIndex((s) => s.at_ms < from); // holds where the picture begins
    if (first > 0) this.states.splice(0, first);
  }

  // last is the newest pass of a model, one that runs first.
  last(model) {
    return this.running.find((p) => p.model === model) ?? this.passes.findLast((p) => p.model === model);
  }

  // step is the mean time in ms of the passes of a model that are shown; undefined without any.
  step(model) {
    const own = this.passes.filter((p) => p.model === model);
    return own.length === 0 ? undefined : own.reduce((sum, p) => sum + p.end_ms - p.start_ms, 0) / own.length;
  }

  draw() {
    const ratio = devicePixelRatio || 1, width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (width === 0) return;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const g = this.canvas.getContext("2d");
    g.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = 18, lane = (height - axis) / Math.max(this.models.length, 1), left = 26;
    const x = (ms) => left + (width - left - 6) * (1 - (this.after - ms) / span);
    g.font = "11px system-ui, sans-serif";
    g.fillStyle = colour("--faint");
    for (let s = 0; s <= span; s += span / 5) {
      g.textAlign = s === 0 ? "right" : s === span ? "left" : "center";
      g.fillText(s === 0 ? "now" : `-${s / 1000} s`, x(this.after - s), height - 5);
    }
    this.models.forEach((name, model) => {
      this.lane(g, { model, name, colour, x, left, right: width - 6, top: model * lane, height: lane });
    });
  }

  lane(g, l) {
    const pad = 24, base = l.top + l.height - 6, room = l.height - pad - 6;
    const own = this.passes.filter((p) => p.model === l.model);
    const now = this.running.filter((p) => p.model === l.model).map((p) => ({ ...p, end_ms: this.after }));
    const most = Math.max(2, ...[...own, ...now].map((p) => p.rows),
      ...this.states.map((s) => Math.max(s.queued[l.model], s.thresholds[l.model])));
    const y = (n) => base - room * n / most;
    const ink = l.colour(`--model-${l.model % 8}`);
    g.strokeStyle = l.colour("--line");
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(l.left, base + 0.5);
    g.lineTo(l.right, base + 0.5);
    g.stroke();
    g.textAlign = "right";
    g.fillStyle = l.colour("--faint");
    g.fillText(String(most), l.left - 5, y(most) + 4);
    g.fillText("0", l.left - 5, base + 3);
    g.fillStyle = ink;
    for (const p of [...own, ...now]) {
      const from = Math.max(l.x(p.start_ms), l.left), to = Math.max(l.x(p.end_ms), from + 0.75);
      const gap = to - from > 3 ? 0.75 : 0; // between blocks that are wide enough
      g.globalAlpha = 0.55;
      g.fillRect(from, y(p.rows), to - from - gap, base - y(p.rows));
    }
    g.globalAlpha = 1;
    this.steps(g, l, y, (s) => s.queued[l.model], l.colour("--ink"), []);
    this.steps(g, l, y, (s) => s.thresholds[l.model], ink, [5, 4]);
    g.textAlign = "left";
    g.font = "600 12px system-ui, sans-serif";
    g.fillStyle = l.colour("--ink");
    g.fillText(l.name, l.left, l.top + 15);
    g.font = "11px system-ui, sans-serif";
  }

  // steps draws a value of the states, each of which holds until the next.
  steps(g, l, y, value, ink, dash) {
    if (this.states.length === 0) return;
    g.strokeStyle = ink;
    g.lineWidth = 1.5;
    g.setLineDash(dash);
    g.beginPath();
    let before;
    for (const s of this.states) {
      const at = Math.max(l.x(s.at_ms), l.left), level = y(value(s));
      if (before === undefined) g.moveTo(at, level);
      else {
        g.lineTo(at, before);
        g.lineTo(at, level);
      }
      before = level;
    }
    g.lineTo(l.right, before);
    g.stroke();
    g.setLineDash([]);
  }
}
