// The frames of a task: the two dialects side by side. A row is what was said: in its middle the
// words, left the frames of who asked, right those of the agent, with what became of it on each side.

import { clock, count, h, short, shortWho } from './dom.js';
import { Refusal, segment, text } from './api.js';
import { indent, marked, textOf, values, visible } from './letters.js';
import { ENDS, summary } from './events.js';

/** @typedef {{kind: string, disposition: string, seq?: number, until?: number}} Became */
/** @typedef {{at: string, dialect: string, direction: 'in'|'out', connection: string, frame: any, text: string, became?: Became[]}} Frame text is the frame as it was written */
/** What was said, with the frames of both sides. @typedef {{seq: number, kind: string, left: Frame[], right: Frame[], toAgent: boolean, beside: Set<string>}} Row */

const ROWS = 200; // at once

/** What each kind says, in words. */
const SAYS = /** @type {Object<string, string>} */ ({
  opened: 'asks', assigned: 'is given to', accepted: 'takes it', session_started: 'has a session', session_lost: 'lost its session', thinking: 'thinks', text: 'says',
  tool_call: 'calls a tool', tool_state: 'has news of a tool', tool_result: 'has the result', approval_requested: 'wants a decision', approval_decided: 'decides', question_asked: 'asks people', question_answered: 'was answered', injected: 'adds',
  injection_answered: 'answers what was added', file: 'sends a file', usage: 'counts tokens', retrying: 'is tried again', cancel_requested: 'wants it stopped', foreign: 'says in its own way',
  done: 'is done', failed: 'failed', cancelled: 'was cancelled',
});

/** What became of it, in words. */
const MEANS = /** @type {Object<string, string>} */ ({
  native: 'said as it is', synthesised: 'made by the hub', folded: 'told in other words', refused: 'cannot be said', internal: 'stays in the hub',
});

/** From who asks to the agent. */
const TO_AGENT = new Set(['opened', 'assigned', 'injected', 'approval_decided', 'cancel_requested']);

/**
 * @param {import('./model.js').Model} m
 * @param {string} id
 * @param {AbortSignal} signal
 * @returns {import('./task.js').Tab}
 */
export function frames(m, id, signal) {
  const state = h('p', { class: 'state', role: 'status' }, 'Reading…');
  const only = /** @type {HTMLInputElement} */ (h('input', { type: 'checkbox', input: () => paint() }));
  const readers = /** @type {HTMLInputElement} */ (h('input', { type: 'checkbox', input: () => paint() }));
  const beside = h('label', {}, readers, ' and those who only read along ');
  const heads = h('div', { class: 'sides' });
  const list = h('ol', { class: 'said' });
  const more = h('button', { type: 'button', click: () => { limit += ROWS; paint(); } });
  const filters = h('div', { class: 'filters' }, h('label', {}, only, ' only what was folded or refused '), beside,
    h('span', { class: 'legend' }, ['native', 'synthesised', 'folded', 'refused'].flatMap((d) => [chip('', d), h('span', { class: 'hint' }, ' ' + MEANS[d] + ' ')])));
  const whole = h('div', { hidden: true }, filters, heads, list, more);
  /** @type {Frame[]} */
  let all = [];
  let limit = ROWS, read = -1, reading = false, refused = false, before = '';
  /** Rows as they are shown, by what is in them: what is open stays open. @type {Map<string, HTMLElement>} */
  let shown = new Map();

  const paint = () => {
    const { rows, left, right, along, frames: n } = pair(all, m, readers.checked);
    beside.hidden = along === 0;
    const odd = rows.filter((r) => [...r.left, ...r.right].some((f) => of(f, r).some((b) => b.disposition === 'folded' || b.disposition === 'refused')));
    const wanted = only.checked ? odd : rows;
    whole.hidden = all.length === 0;
    if (all.length === 0) return;
    heads.replaceChildren(side(left, 'asks'), h('p', { class: 'middle' }, 'what was said'), side(right, 'answers'));
    const now = new Map();
    for (const r of wanted.slice(0, limit)) {
      const key = JSON.stringify([r, [...r.beside], lineOf(m, r.seq)?.text, left.length > 1, right.length > 1]);
      now.set(key, shown.get(key) ?? row(r, m, left.length > 1, right.length > 1));
    }
    shown = now;
    list.replaceChildren(...now.values());
    more.hidden = wanted.length <= limit;
    more.textContent = count(wanted.length - limit) + ' more are not shown: show the next ' + count(Math.min(ROWS, wanted.length - limit));
    const times = (/** @type {string} */ d) => rows.flatMap((r) => [...r.left, ...r.right]).reduce((sum, f) => sum + (f.became ?? []).filter((b) => b.disposition === d).length, 0);
    state.textContent = count(n) + (n === 1 ? ' frame, ' : ' frames, ') + 'folded ' + often(times('folded')) + ', refused ' + often(times('refused')) + '.' +
      (along && !readers.checked ? ' The frames of ' + count(along) + (along === 1 ? ' connection' : ' connections') + ' that only read along are not shown.' : '') + before;
  };
  const load = async () => {
    if (reading || refused || read === m.version) return;
    reading = true;
    read = m.version;
    try {
      const answer = await text('/v1/tasks/' + segment(id) + '/frames', signal);
      const r = JSON.parse(answer);
      all = r.frames ?? [];
      for (const [i, f] of values(textOf(answer, 'frames') ?? '[]')) all[Number(i)] = { ...r.frames[i], text: textOf(f, 'frame') ?? '' };
      before = r.missing ? ' ' + r.missing : '';
      if (!all.length) state.textContent = r.missing || 'The hub keeps no frame of this task: it came before frames were kept, or over a transport of which none are kept, or they made room for newer ones.';
      paint();
      if (!ENDS.has(m.state)) read = -1; // a frame may follow on what it says
    } catch (e) {
      if (signal.aborted) return;
      if (!(e instanceof Refusal)) throw e;
      if (e.status === 0) read = -1;
      else {
        refused = true;
        state.textContent = e.status === 403 ? 'You may not see the frames of this task: ' + e.message :
          e.status === 404 && e.code === 'unsupported' ? 'This hub does not show frames.' : e.message;
      }
    } finally {
      reading = false;
    }
  };
  const again = setInterval(load, 2000);
  load();
  return { element: h('section', { class: 'both', 'aria-label': 'Frames' }, state, whole), paint: () => {}, close: () => clearInterval(again) };
}

/**
 * Puts the frames of both sides together that say the same.
 * @param {Frame[]} all in the order of time
 * @param {import('./model.js').Model} m
 * @param {boolean} readers whether those who only read along are shown too
 */
function pair(all, m, readers) {
  const agents = new Set(all.filter((f) => f.became?.some((b) => f.direction === 'out' ? b.kind === 'assigned' && !all.some((o) => o.connection === f.connection && o.became?.some((x) => x.kind === 'opened')) :
    !TO_AGENT.has(b.kind) && b.seq)).map((f) => f.connection));
  // Who reads along, such as this page, takes no part in the conversation.
  const asked = new Set(all.filter((f) => f.direction === 'in' && f.became?.some((b) => TO_AGENT.has(b.kind))).map((f) => f.connection));
  const along = new Set(all.filter((f) => asked.size > 0 && !asked.has(f.connection) && !agents.has(f.connection)).map((f) => f.connection));
  if (!readers) all = all.filter((f) => !along.has(f.connection));
  /** @type {Map<number, Row>} */
  const rows = new Map();
  /** @param {number} seq @param {string} kind */
  const at = (seq, kind) => {
    let r = rows.get(seq);
    if (!r) rows.set(seq, r = { seq, kind, left: [], right: [], toAgent: TO_AGENT.has(kind), beside: new Set() });
    return r;
  };
  /** The first agent is given the task as it is opened: one sentence, told on. */
  const first = all.flatMap((f) => f.became ?? []).filter((b) => b.kind === 'assigned').reduce((min, b) => Math.min(min, b.seq ?? Infinity), Infinity);
  // A frame that tells several texts at once makes one row of them.
  /** @type {Map<number, number>} */
  const merged = new Map();
  for (const f of all) for (const b of f.became ?? []) for (let s = (b.seq ?? 0) + 1; b.seq && s <= (b.until ?? 0); s++) merged.set(s, merged.get(b.seq) ?? b.seq);
  /** @type {Map<string, Row>} */
  const latest = new Map();
  for (const f of all) {
    // Of several events the last one made the dialect speak; those before it are told with it.
    const b = [...(f.became ?? [])].reverse().find((x) => x.seq);
    let r = latest.get(f.connection);
    if (b?.seq) {
      const line = lineOf(m, b.seq); // the hub tells texts of the past as one
      const seq = b.seq === first ? 1 : merged.get(b.seq) ?? (b.kind === 'text' && line?.kind === 'text' ? line.seq : b.seq);
      r = at(seq, b.seq === first ? 'opened' : b.kind);
    } else r ??= at(1, 'opened');
    r[agents.has(f.connection) ? 'right' : 'left'].push(f);
    latest.set(f.connection, r);
  }
  for (const f of all) for (const b of f.became ?? []) rows.get(b.seq ?? 0)?.beside.add(agents.has(f.connection) ? 'right' : 'left');
  const names = [...new Set(all.map((f) => f.connection))].map((c) => ({ connection: c, dialect: all.find((f) => f.connection === c)?.dialect ?? '' }));
  return { along: along.size, frames: all.length, rows: [...rows.values()].sort((a, b) => a.seq - b.seq), left: names.filter((n) => !agents.has(n.connection)), right: names.filter((n) => agents.has(n.connection)) };
}

/** @param {{connection: string, dialect: string}[]} who @param {string} role */
function side(who, role) {
  return h('h2', {}, who.length ? [...new Set(who.map((w) => w.dialect))].join(', ') : 'no frames', h('span', { class: 'hint' }, ' ' + [role, ...who.map((w) => w.connection)].join(' · ')));
}

/** What a frame became that belongs to the row, or that is told with it. @param {Frame} f @param {Row} r */
function of(f, r) {
  return (f.became ?? []).filter((b) => b.kind !== 'opened' || r.kind === 'opened');
}

/** @param {Row} r @param {import('./model.js').Model} m @param {boolean} manyLeft @param {boolean} manyRight */
function row(r, m, manyLeft, manyRight) {
  const line = lineOf(m, r.seq);
  const words = (line?.whole && said(JSON.parse(line.whole))) || line?.text || '';
  const by = r.kind === 'opened' ? m.opened?.from?.id ?? '' : r.toAgent ? '' : m.agent;
  const arrow = r.toAgent ? '→' : '←';
  const loss = (/** @type {Frame[]} */ side) => side.some((f) => f.became?.some((b) => b.disposition === 'refused')) ? ' refused' : '';
  return h('li', { class: 'row-said' + loss(r.left) + loss(r.right) },
    h('div', { class: 'middle' },
      h('p', { class: 'what' }, h('span', { class: 'arrow', 'aria-hidden': 'true' }, arrow), ' ', h('b', {}, visible(shortWho(by))), ' ', SAYS[r.kind] ?? r.kind, ' ', h('span', { class: 'arrow', 'aria-hidden': 'true' }, arrow)),
      words ? h('p', { class: 'words', dir: 'auto' }, visible(short(words, 300))) : null),
    cell(r, r.left, words, manyLeft, 'left'), cell(r, r.right, words, manyRight, 'right'));
}

/** The line of an event, or of the merged one that it is in. @param {import('./model.js').Model} m @param {number} seq */
function lineOf(m, seq) {
  let low = 0, high = m.lines.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((m.lines[middle]?.seq ?? 0) <= seq) low = middle + 1;
    else high = middle;
  }
  return m.lines[low - 1];
}

/** The words of an event, as both dialects must say them. @param {import('./events.js').Event} e @returns {string} */
function said(e) {
  const b = e.body ?? {};
  switch (e.kind) {
    case 'opened': return b.request?.content ?? '';
    case 'text': case 'thinking': return b.text;
    case 'injected': return b.content ?? '';
    case 'tool_call': return b.name + ' ' + b.input;
    case 'tool_result': return b.output ?? '';
    case 'file': return b.name ?? '';
    default: return summary(e);
  }
}

/** @param {Row} r @param {Frame[]} all @param {string} words @param {boolean} many @param {string} name */
function cell(r, all, words, many, name) {
  // The frame with the words is open, the others are a line each.
  const texts = all.map((f) => (f.frame === null ? '' : typeof f.frame === 'string' ? f.frame : indent(f.text)));
  const marks = texts.map((t) => marked(t, words)[1]?.textContent?.length ?? 0);
  const open = marks.indexOf(Math.max(...marks));
  if (!all.length) return h('div', { class: 'cell ' + name }, h('p', { class: 'hint' }, r.beside.has(name) ? 'told with what follows' : 'not told of it'));
  return h('div', { class: 'cell ' + name }, all.map((f, i) => frame(f, r, texts[i] ?? '', words, many, i === open)));
}

/** @param {Frame} f @param {Row} r @param {string} text @param {string} words @param {boolean} many @param {boolean} open */
function frame(f, r, text, words, many, open) {
  const head = [h('span', { class: 'arrow', 'aria-hidden': 'true' }, f.direction === 'in' ? '↦' : '↤'), h('span', { class: 'unseen' }, f.direction === 'in' ? 'to the hub' : 'from the hub'),
    h('b', {}, visible(short(nameOf(f.frame), 60))), many ? h('span', { class: 'hint' }, f.connection) : '', ...of(f, r).map((b) => chip(b.kind === r.kind || b.kind === 'assigned' && r.kind === 'opened' ? '' : b.kind, b.disposition))];
  const label = f.dialect + ', ' + (f.direction === 'in' ? 'to the hub' : 'from the hub');
  if (f.frame === null) {
    return h('article', { class: 'frame none ' + f.direction, 'aria-label': label }, h('p', { class: 'who' }, of(f, r).map((b) => chip(b.kind, b.disposition))), h('p', {}, f.dialect + ' cannot say it, so nothing was sent.'));
  }
  const pre = h('pre', { tabindex: 0, role: 'group', 'aria-label': 'Frame, ' + label });
  const fill = () => {
    if (pre.firstChild) return;
    pre.append(...marked(text, words));
    const mark = pre.querySelector('mark'); // what is long is shown where the words are
    if (mark) pre.scrollTop = mark.offsetTop - pre.clientHeight / 2;
  };
  return h('article', { class: 'frame ' + f.direction, 'aria-label': label },
    h('details', { open, toggle: fill }, h('summary', { title: clock(f.at) }, head), pre,
      h('button', { type: 'button', class: 'link', click: (/** @type {Event} */ e) => {
        navigator.clipboard?.writeText(text).then(() => { /** @type {HTMLElement} */ (e.target).textContent = 'Copied'; });
      } }, 'Copy')));
}

/** @param {string} kind @param {string} disposition */
function chip(kind, disposition) {
  return h('span', { class: 'became ' + disposition, title: MEANS[disposition] ?? '' }, (kind ? kind.replaceAll('_', ' ') + ' ' : '') + disposition);
}

/** What a dialect calls a frame. @param {any} f @returns {string} */
function nameOf(f) {
  if (typeof f !== 'object' || f === null) return 'text';
  const inner = f.event?.assistantMessageEvent?.type ?? f.event?.type ?? f.params?.update?.sessionUpdate;
  const name = f.type ?? f.kind ?? f.method ?? f.command;
  if (typeof name === 'string') return name + (typeof inner === 'string' ? ' ' + inner : '');
  // Protobuf: the one member that is an object names the message, and that of a response what it has.
  const [key, value] = Object.entries(f).find(([, v]) => typeof v === 'object' && v !== null) ?? [];
  if (!key) return f.result !== undefined ? 'result' : 'frame';
  const part = key === 'response' ? Object.keys(value).find((k) => k !== 'requestId') : '';
  return key + (part ? ' ' + part : '');
}

/** How often, in words. @param {number} n */
function often(n) {
  return count(n);
}
