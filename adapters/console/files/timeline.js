// The timeline of a task as a waterfall: who waited for what, and how long. Long silence is drawn
// short and marked.

import { clock, h, span, svg, table } from './dom.js';
import { get, poll } from './api.js';

const ROW = 24, LEFT = 190, ROWS = 300, TABLE = 2000;

/** @typedef {{name: string, kind: string, depth: number, from: number, to: number, bad: boolean, link?: string}} Bar */

/**
 * @param {import('./model.js').Model} m
 * @param {string} id
 * @param {AbortSignal} signal
 * @returns {import('./task.js').Tab}
 */
export function timeline(m, id, signal) {
  const note = h('p', { class: 'state' });
  const drawing = h('div', { class: 'waterfall', tabindex: 0, role: 'region', 'aria-label': 'Drawing of the timeline' });
  const values = h('div', {});
  const asTable = h('details', { toggle: () => { drawn = -1; listedAt = -5000; paint(); } }, h('summary', {}, 'As a table'), values);
  const element = h('section', { 'aria-label': 'Timeline' }, note, drawing, asTable);
  let drawn = -1, width = 0;
  /** @type {any[]} */
  let below = [];
  let older = false, listed = false, /** @type {any} */ later, paintedAt = 0, listedAt = 0;
  /** Paints at most twice a second. */
  const paint = () => {
    if (later) return;
    const wait = paintedAt + 500 - performance.now();
    if (wait > 0) {
      later = setTimeout(() => {
        later = undefined;
        paint();
      }, wait);
      return;
    }
    const now = drawing.clientWidth || 800;
    if (m.version === drawn && now === width || !m.lines.length) return;
    drawn = m.version;
    width = now;
    const bars = barsOf(m, below, id);
    draw(drawing, bars.slice(0, ROWS), width, note);
    const rest = bars.length >= TABLE ? 'More' : String(bars.length - ROWS);
    if (bars.length > ROWS) note.textContent += ' ' + rest + ' are not drawn; the table has the first ' + TABLE + '.';
    if (older) note.textContent += ' Of the tasks that this one caused, those among the latest 500 are shown.';
    paintedAt = performance.now();
    if (asTable.hasAttribute('open') && (paintedAt - listedAt > 5000 || m.endAt)) listedAt = paintedAt;
    else return;
    values.replaceChildren(table('Timeline', ['What', 'From', 'Took', ''], bars.slice(0, TABLE).map((b) => [
      b.link ? h('a', { href: b.link }, b.name) : b.name, clock(new Date(b.from)), span(b.to - b.from), b.bad ? 'failed' : ''])));
  };
  // What this task has caused is not in its own events.
  const stop = new AbortController();
  signal.addEventListener('abort', () => stop.abort());
  poll(2000, stop.signal, async () => {
    if (m.endAt && listed && below.every((t) => t.ended_at)) return;
    const r = await get('/v1/tasks?limit=500', stop.signal);
    listed = true;
    below = descendants(r.tasks, id);
    older = !!r.before;
    drawn = -1;
    paint();
  }, () => {});
  const resized = new ResizeObserver(paint);
  resized.observe(drawing);
  // What runs grows while nothing is said.
  const grow = setInterval(() => {
    if (m.endAt) return;
    drawn = -1;
    paint();
  }, 1000);
  return {
    element, paint, close() {
      resized.disconnect();
      clearInterval(grow);
      clearTimeout(later);
      stop.abort();
    },
  };
}

/**
 * The tasks that a task has caused, directly or not, with their depth.
 * @param {any[]} tasks newest first
 * @param {string} id
 */
function descendants(tasks, id) {
  const depth = new Map([[id, 0]]), found = [];
  for (const t of tasks.slice().reverse()) {
    const above = t.cause === undefined ? undefined : depth.get(t.cause);
    if (above === undefined) continue;
    depth.set(t.id, above + 1);
    found.push({ ...t, depth: above + 1 });
  }
  return found;
}

/** @param {import('./model.js').Model} m @param {any[]} below @param {string} id @returns {Bar[]} */
function barsOf(m, below, id) {
  /** @param {string|undefined} s */
  const at = (s) => Date.parse(s ?? '') || Date.parse(m.lastAt);
  const begin = at(m.lines[0]?.at), end = m.endAt ? at(m.endAt) : Math.max(at(m.lastAt), Date.now());
  /** @type {Bar[]} */
  const bars = [{ name: 'task', kind: 'task', depth: 0, from: begin, to: end, bad: m.state === 'failed' }];
  const first = m.attempts[0];
  if (!first || at(first.at) > begin) bars.push({ name: 'queued', kind: 'wait', depth: 1, from: begin, to: first ? at(first.at) : end, bad: false });
  for (const a of m.attempts) bars.push({ name: a.agent, kind: 'agent', depth: 1, from: at(a.at), to: a.end ? at(a.end) : end, bad: !!a.fault });
  for (const p of m.parts) { // in the order of time
    if (bars.length >= TABLE) break;
    if (p.tool) {
      const t = p.tool, stop = t.end ? at(t.end) : end;
      bars.push({ name: t.name || t.id, kind: 'tool', depth: 2, from: at(t.at), to: stop, bad: t.failed });
      for (const a of t.approvals) bars.push({ name: 'waits for a person', kind: 'wait', depth: 3, from: at(a.at), to: a.decidedAt ? at(a.decidedAt) : stop, bad: a.decision?.approved === false });
    } else if (p.kind === 'text' || p.kind === 'thinking') bars.push({ name: p.kind, kind: p.kind, depth: 2, from: at(p.at), to: at(p.end), bad: false });
  }
  for (const t of below) {
    const from = Date.parse(t.opened_at);
    if (!from || t.id === id) continue;
    bars.push({ name: '→ ' + (t.agent || t.to) + ' (' + t.state + ')', kind: 'child', depth: 1 + t.depth, from, to: Date.parse(t.ended_at) || end, bad: t.state === 'failed', link: '#/tasks/' + encodeURIComponent(t.id) });
  }
  return bars.map((b) => ({ ...b, to: Math.max(b.to, b.from) })).sort((x, y) => (x.kind === 'task' ? -1 : y.kind === 'task' ? 1 : x.from - y.from || x.depth - y.depth));
}

/**
 * A scale in which silence that lasts more than twice as long as all that is shorter is squeezed.
 * @param {Bar[]} bars
 * @param {number} width
 */
function scale(bars, width) {
  const points = [...new Set(bars.flatMap((b) => [b.from, b.to]))].sort((a, b) => a - b);
  const gaps = points.slice(1).map((p, i) => p - (points[i] ?? p));
  let cap = Infinity, shorter = 0;
  for (const [i, g] of gaps.slice().sort((a, b) => a - b).entries()) {
    if (i >= gaps.length / 2 && shorter > 0 && g > 2 * shorter) {
      cap = shorter / 2;
      break;
    }
    shorter += g;
  }
  /** @type {{from: number, to: number, took: number}[]} */
  const squeezed = [];
  /** @type {number[]} */
  const at = [0];
  gaps.forEach((g, i) => {
    const drawn = g > cap ? cap : g;
    if (g > cap) squeezed.push({ from: at[i] ?? 0, to: (at[i] ?? 0) + drawn, took: g });
    at.push((at[i] ?? 0) + drawn);
  });
  const whole = at[at.length - 1] || 1;
  const index = new Map(points.map((p, i) => [p, i]));
  /** @param {number} v */
  const px = (v) => v / whole * width;
  return {
    /** @param {number} t */
    x: (t) => px(at[index.get(t) ?? 0] ?? 0),
    squeezed: squeezed.map((s) => ({ from: px(s.from), to: px(s.to), took: s.took })),
  };
}

/** @param {HTMLElement} at @param {Bar[]} bars @param {number} width @param {HTMLElement} note */
function draw(at, bars, width, note) {
  const left = Math.min(LEFT, width / 3);
  const s = scale(bars, Math.max(100, width - left - 90));
  const height = bars.length * ROW + 8;
  const label = bars.map((b) => b.name + ' ' + span(b.to - b.from) + (b.bad ? ', failed' : '')).slice(0, 20).join('; ');
  at.replaceChildren(svg('svg', { width, height, role: 'img', 'aria-label': 'Timeline: ' + label },
    ...s.squeezed.map((q) => svg('g', { class: 'squeezed' },
      svg('rect', { x: left + q.from, y: 0, width: Math.max(2, q.to - q.from), height }), svg('title', {}, span(q.took) + ' drawn short'))),
    ...bars.map((b, i) => {
      const x = left + s.x(b.from), w = Math.max(2, s.x(b.to) - s.x(b.from)), y = i * ROW + 4;
      return svg('g', { class: 'bar ' + b.kind + (b.bad ? ' bad' : '') },
        svg('text', { x: 4 + b.depth * 10, y: y + 13 }, fit(b.name, left - b.depth * 10)),
        svg('rect', { x, y: y + 2, width: w, height: ROW - 8, rx: 2 }),
        svg('text', { x: x + w + 5, y: y + 13, class: 'took' }, (b.bad ? '✕ ' : '') + span(b.to - b.from)),
        svg('title', {}, b.name + ', ' + clock(new Date(b.from)) + ', ' + span(b.to - b.from)));
    })));
  note.textContent = s.squeezed.length ? 'Idle time is drawn short: ' + s.squeezed.map((q) => span(q.took)).slice(0, 5).join(', ') + '.' : '';
}

/** @param {string} text @param {number} px */
function fit(text, px) {
  const n = Math.max(4, Math.floor(px / 7.5));
  return text.length > n ? text.slice(0, n - 1) + '…' : text;
}
