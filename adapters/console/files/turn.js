// A turn of a conversation: what was asked, and what its agent said and did, in order. What waits for a person
// stands where it was asked for.

import { count, h, say, short, shortWho, span, time } from './dom.js';
import { cardOf, held, retire, tell } from './cards.js';
import { Refusal, post, segment } from './api.js';
import { ENDS } from './events.js';
import { block, indent, visible } from './letters.js';
import { Prose, toolInput, toolOutput } from './markdown.js';
import { Model } from './model.js';

const PARTS = 2000; // of a turn
const NAMED = 100; // letters of what a tool is called with

/** A part that is shown. @typedef {{element: HTMLElement, update: () => void}} Shown */

/** How each kind is introduced. */
const WORDS = /** @type {Object<string, string>} */ ({
  injected: 'adds meanwhile', injection_answered: 'has what was added', file: 'sends a file', retrying: 'tries again', cancel_requested: 'was told to stop',
  approval_decided: 'decides', question_answered: 'answers', session_lost: 'lost its session', done: 'is done', failed: 'failed', cancelled: 'stopped', gap: 'has not kept everything',
});

export class Turn {
  /**
   * @param {string} id of the task
   * @param {string} state of the task when it was listed
   * @param {{model?: Model, foot?: (turn: Turn) => Node[], stop?: (turn: Turn) => Promise<void>}} [o] its events where others
   *   read them too, what can be done once it has ended, and how it is stopped
   */
  constructor(id, state, o = {}) {
    this.id = id;
    this.listed = state;
    this.o = o;
    this.model = o.model ?? new Model(false);
    this.list = h('ol', { class: 'parts' });
    this.more = h('p', { class: 'state' });
    this.doing = h('span', {});
    this.working = h('p', { class: 'working' }, this.doing, ' ', o.stop ? h('button', { type: 'button', class: 'link', 'data-do': 'take-back', click: () => o.stop?.(this) }, 'Stop this turn') : null);
    this.foot = h('div', { class: 'foot' });
    this.element = h('article', { class: 'turn', tabindex: -1, 'data-task': id }, this.list, this.more, this.working, this.foot);
    /** @type {Shown[]} */
    this.shown = [];
    this.painted = 0;
    /** @type {Map<string, ToolPart>} */
    this.tools = new Map();
    /** @type {Map<string, HTMLElement>} */
    this.questions = new Map();
    /** @type {Map<string, import('./cards.js').Card>} */
    this.cards = new Map();
    this.ended = false;
    /** How often a person had been asked for something when the list of what waits was read for it. */
    this.told = 0;
    /** Why its events cannot be read; '' if they can. */
    this.refused = '';
  }

  /** Whether it works, or waits for its agent. */
  get runs() {
    return !this.refused && !ENDS.has(this.model.opened ? this.model.state : this.listed);
  }

  /** Shows what has come since. */
  paint() {
    const m = this.model;
    // Only a part that is open can have changed: the last one, tools and questions.
    for (let i = 0; i < this.shown.length; i++) {
      const part = m.parts[i];
      if (i >= this.painted - 1 || part?.tool || part?.kind === 'question_asked') this.shown[i]?.update();
    }
    for (let i = this.shown.length; i < Math.min(m.parts.length, PARTS); i++) this.add(/** @type {import('./model.js').Part} */ (m.parts[i]));
    this.painted = this.shown.length;
    const rest = m.parts.length - this.shown.length;
    this.more.textContent = this.refused ? this.refused : rest > 0 ? count(rest) + ' later parts are not shown here; the events have them all.' : '';
    if (m.opened && !this.element.hasAttribute('aria-label')) this.element.setAttribute('aria-label', this.asker() + ' to ' + (m.agent || visible(m.opened.request?.to ?? '')) + ': ' + visible(short(m.opened.request?.content, 60)));
    if (!this.runs && !this.ended) {
      this.ended = true;
      this.end();
    }
    this.tick();
  }

  asker() {
    return shortWho(this.model.opened?.from?.id) || 'somebody';
  }

  /** @param {import('./model.js').Part} part */
  add(part) {
    let one;
    if (part.tool) {
      const tool = new ToolPart(part, part.tool, this.model);
      this.tools.set(part.tool.id, tool);
      one = tool;
    } else if (part.kind === 'question_asked') {
      one = questionPart(part, this.model);
      this.questions.set(part.body?.id, one.element);
    } else if (part.kind === 'opened') one = opened(part, this);
    else one = textPart(part, this.model);
    this.shown.push(one);
    const above = part.tool?.parent ? this.tools.get(part.tool.parent)?.below : undefined;
    (above ?? this.list).append(one.element);
  }

  /**
   * Puts the cards of what waits for this turn in their places, and retires those that wait no longer.
   * @param {import('./inbox.js').Item[]} items
   */
  place(items) {
    if (!this.element.isConnected) return; // nobody sees it yet
    const own = items.filter((i) => i.approval ? i.approval.task === this.id : i.question?.tasks?.includes(this.id));
    for (const item of own) {
      const card = this.cards.get(item.key) ?? cardOf(item, true);
      if (!this.cards.has(item.key)) {
        tell(card);
        say(card.element.getAttribute('aria-label') ?? '');
      }
      this.cards.set(item.key, card);
      const host = item.approval ? this.tools.get(item.approval.id)?.asked : this.questions.get(item.question?.id ?? '');
      if (card.element.parentElement === host || held(card.element)) continue;
      if (host) host.append(card.element);
      else if (!card.element.isConnected) this.working.before(card.element); // its events are still to come, or it is of a task that this one caused
    }
    for (const [key, card] of this.cards) {
      if (!card.gone && !own.some((i) => i.key === key)) retire(card, 'It no longer waits: it was decided elsewhere, or its time is over.');
    }
  }

  /** Says what the agent does and how long it has, while it works. */
  tick() {
    for (const [key, card] of this.cards) {
      tell(card);
      if (card.gone && !held(card.element)) { // the log has what became of it
        card.element.remove();
        this.cards.delete(key);
      }
    }
    this.working.hidden = !this.runs;
    if (!this.runs) return;
    const m = this.model, since = Date.parse(m.attempts[0]?.at ?? m.firstAt);
    const busy = [...m.tools.values()].filter((t) => !t.end).pop();
    const waits = busy?.state === 'awaiting_approval' || [...m.questions.values()].some((q) => !q.answer);
    const doing = waits ? 'waiting for a person' : busy ? visible(short(busy.name + ' ' + about(busy.input), NAMED)) : '';
    this.doing.textContent = (m.agent ? m.agent : 'queued') + (isFinite(since) ? ' · ' + span(Math.floor((Date.now() - since) / 1000) * 1000) : '') + (doing ? ' · ' + doing : '');
    this.working.classList.toggle('waits', waits);
  }

  /** Says how it went, and what can be done now. */
  end() {
    const m = this.model, u = m.usage;
    this.element.classList.add('ended', m.state);
    const last = m.parts[m.parts.length - 1]; // how it ended is shown, however much came before
    if (last && m.parts.length > PARTS) this.more.after(h('ol', { class: 'parts' }, textPart(last, m).element));
    const took = Date.parse(m.endAt) - Date.parse(m.attempts[0]?.at ?? m.firstAt);
    this.foot.replaceChildren(
      h('span', { class: 'hint' }, [m.agent, span(took), u.input || u.output ? count(u.input) + ' in, ' + count(u.output) + ' out' : '', u.currency ? cost(u) : ''].filter(Boolean).join(' · ')), ' ',
      h('a', { href: '#/tasks/' + encodeURIComponent(this.id) + '/timeline', title: this.id }, 'Details'), ...(this.o.foot?.(this) ?? []));
  }

  /** What the agent said, as it said it. */
  answer() {
    return this.model.parts.filter((p) => p.kind === 'text' || p.kind === 'done').map((p) => p.text).join('');
  }
}

/** Has the agent of a turn stop, or takes back one that no agent has yet. @param {Turn} turn */
export async function cancel(turn) {
  try {
    await post('/v1/tasks/' + segment(turn.id) + '/cancel', {});
  } catch (e) {
    if (!(e instanceof Refusal)) throw e;
    turn.more.textContent = 'Refused: ' + e.message;
  }
}

/** @param {{nanos: number, currency: string}} u */
export function cost(u) {
  return (u.nanos / 1e9).toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 4 }) + ' ' + u.currency;
}

/** What a call is about: its command, its file, or the beginning of its input. @param {string} input */
function about(input) {
  try {
    const v = JSON.parse(input);
    const first = ['command', 'cmd', 'file_path', 'path', 'filePath', 'url', 'pattern', 'query', 'description', 'title'].map((k) => v?.[k]).find((x) => typeof x === 'string' || Array.isArray(x));
    return String(Array.isArray(first) ? first.join(' ') : first ?? input).replace(/\s+/g, ' ');
  } catch {
    return input.replace(/\s+/g, ' ');
  }
}

/** What was asked. @param {import('./model.js').Part} part @param {Turn} turn @returns {Shown} */
function opened(part, turn) {
  const r = part.body?.request ?? {}, earlier = r.history ?? [];
  const to = visible(r.to ?? '');
  return { update() {}, element: h('li', { class: 'part opened' },
    earlier.length ? h('details', { class: 'earlier' }, h('summary', {}, count(earlier.length) + (earlier.length === 1 ? ' earlier turn' : ' earlier turns') + ', from another conversation'),
      r.branch ? h('p', {}, 'It branches from ', h('a', { href: '#/tasks/' + encodeURIComponent(r.branch) }, 'this turn'), '.') : null,
      h('ol', {}, earlier.slice(-200).map((/** @type {any} */ t) => h('li', {}, h('b', {}, t.agent || t.role), ' ', h('span', { class: 'words' }, visible(short(t.text, 2000))))))) : null,
    h('p', { class: 'who' }, h('b', {}, turn.asker()), r.intent === 'notify' ? ' notifies ' : r.intent === 'delegate' ? ' gives to ' : ' to ', h('b', {}, to), ' ', time(part.at)),
    h('div', { class: 'words', dir: 'auto' }, visible(part.text.slice(0, 200000))), part.text.length > 200000 ? h('p', { class: 'hint' }, count(part.text.length - 200000) + ' more letters: see its events.') : null,
    part.data !== undefined && part.data !== 'null' ? block(indent(part.data), 'Data') : null,
    (r.attachments ?? []).map((/** @type {any} */ f) => file(f))) };
}

/** A file, to be saved: it is not opened here, since it may be anything. @param {any} f */
function file(f) {
  const name = visible(f.name ?? 'file');
  const save = f.data ? h('a', { href: 'data:application/octet-stream;base64,' + f.data, download: f.name ?? 'file' }, 'save') : null;
  return h('p', { class: 'file' }, 'File ', h('b', {}, name), ' ', f.media_type ?? '', ' ', save);
}

/** @param {import('./model.js').Part} part @param {Model} m @returns {Shown} */
function textPart(part, m) {
  if (part.kind === 'handover') return { update() {}, element: h('li', { class: 'part handover' }, h('p', { class: 'who' }, h('b', {}, part.who), ' ', visible(part.text))) };
  const says = part.kind === 'text' || part.kind === 'done' && part.text !== '';
  const who = h('p', { class: 'who' }, h('b', {}, shortWho(part.who) || 'hub'), ' ', part.body?.answered === false ? 'got no answer' : WORDS[part.kind] ?? '', ' ', time(part.at));
  const extra = [part.data !== undefined && part.data !== 'null' ? block(indent(part.data), 'Data') : null, part.kind === 'file' ? file(part.body) : null,
    part.kind === 'failed' && part.body?.fault?.code ? h('p', { class: 'hint' }, 'Error code: ' + String(part.body.fault.code)) : null];
  if (part.kind === 'thinking') {
    const summary = h('summary', {}, 'Thinking'), words = h('div', { class: 'words', dir: 'auto' });
    const element = h('li', { class: 'part thinking' }, h('details', { toggle: () => update() }, summary, words));
    const update = () => {
      const took = Date.parse(part.end) - Date.parse(part.at);
      summary.textContent = took < 1000 ? 'Thinking' : 'Thought for ' + span(took);
      if (element.querySelector('details')?.hasAttribute('open')) words.textContent = visible(part.text.slice(0, 200000));
    };
    update();
    return { element, update };
  }
  if (part.kind === 'done' && !says && !extra.some(Boolean)) return { update() {}, element: h('li', { class: 'part done', hidden: true }) };
  if (!says) {
    const text = part.kind === 'failed' ? part.body?.fault?.message ?? part.text : part.text;
    return { update() {}, element: h('li', { class: 'part ' + part.kind }, who, h('div', { class: 'words', dir: 'auto' }, visible(text)), extra) };
  }
  const prose = new Prose();
  const update = () => prose.update(part.text, m.parts[m.parts.length - 1] !== part || ENDS.has(m.state));
  update();
  return { element: h('li', { class: 'part ' + part.kind }, who, prose.element, extra), update };
}

/** @param {import('./model.js').Part} part @param {Model} m @returns {Shown} */
function questionPart(part, m) {
  const answered = h('p', { class: 'answered' });
  const b = part.body ?? {};
  const element = h('li', { class: 'part question' }, h('p', { class: 'who' }, h('b', {}, shortWho(part.who) || 'an agent'), ' asks ', b.header ? visible(b.header) + ' ' : '', time(part.at)),
    h('div', { class: 'words', dir: 'auto' }, visible(part.text)), answered);
  let before = '';
  const update = () => {
    const a = part.answer;
    const now = a ? (a.answered ? shortWho(a.by) + ' answered: ' + said(a) : 'Nobody answered' + (REASONS[a.reason] ?? (a.reason ? ': ' + visible(String(a.reason).replaceAll('_', ' ')) : '')) + '.') :
      ENDS.has(m.state) ? 'Nobody answered.' : 'Waiting for an answer.';
    if (now === before) return;
    before = now;
    answered.textContent = now;
  };
  update();
  return { element, update };
}

/** Why a question has no answer. */
const REASONS = /** @type {Object<string, string>} */ ({ timeout: ' in time', task_ended: ' before the turn ended', left: ': the agent has left' });

/** @param {any} a */
function said(a) {
  return visible([...(a.selected ?? []), a.custom_text, a.content && JSON.stringify(a.content)].filter(Boolean).join(', '));
}

/** A call of a tool: a line, and below it what it was called with, what was decided and what came of it. */
class ToolPart {
  /** @param {import('./model.js').Part} part @param {import('./model.js').Tool} tool @param {Model} m */
  constructor(part, tool, m) {
    this.tool = tool;
    this.m = m;
    this.line = h('summary', { class: 'who' });
    this.inside = h('div', { class: 'io' });
    this.details = /** @type {HTMLDetailsElement} */ (h('details', { toggle: () => this.fill() }, this.line, this.inside));
    this.asked = h('div', { class: 'asked' });
    this.waits = h('p', { class: 'hint' });
    this.below = h('ol', { class: 'parts below', 'aria-label': 'Calls below ' + visible(tool.name || tool.id) });
    this.element = h('li', { class: 'part tool' }, this.details, this.asked, this.waits, this.below);
    this.who = part.who;
    this.before = '';
    this.input = '';
    this.output = '';
    /** What is shown inside. @type {{input: string, output: string, end: string|undefined}|undefined} */
    this.filled = undefined;
    this.decided = 0;
    this.update();
  }

  update() {
    const t = this.tool;
    const now = [t.name, t.state, t.end, t.approvals.length, t.approvals.filter((a) => a.decision).length, this.m.state].join(' ');
    if (now === this.before && t.input === this.input && t.output === this.output) return;
    Object.assign(this, { before: now, input: t.input, output: t.output });
    this.element.classList.toggle('bad', t.failed);
    this.line.replaceChildren(h('span', { class: 'is ' + t.state }, SHAPES[t.state] ?? '·', h('span', { class: 'unseen' }, ' ' + t.state.replaceAll('_', ' '))), ' ', h('code', {}, visible(t.name || t.id)), ' ',
      h('span', { class: 'about' }, visible(short(about(t.input), NAMED))), ' ',
      h('span', { class: 'hint' }, t.end ? span(Date.parse(t.end) - Date.parse(t.at)) : '', t.failed && t.output ? ' failed: ' + visible(short(t.output.trim().split('\n')[0], NAMED)) : t.state === 'denied' ? ' denied' : ''));
    this.decisions();
    this.waits.textContent = t.state === 'awaiting_approval' && !t.end ? 'Waiting for a decision on this call.' : '';
    this.fill();
  }

  /** What was decided, each on its own input. */
  decisions() {
    const all = this.tool.approvals, done = !!this.tool.end || ENDS.has(this.m.state);
    for (; this.decided < all.length; this.decided++) {
      const a = /** @type {import('./model.js').Approval} */ (all[this.decided]);
      if (!a.decision && !done && this.decided === all.length - 1) return;
      this.asked.before(decisionOn(a));
    }
  }

  /** Shows input and output once they are wanted. */
  fill() {
    if (!this.details.open) return;
    const t = this.tool, was = this.filled;
    if (was && was.input === t.input && was.output === t.output && was.end === t.end) return;
    this.filled = { input: t.input, output: t.output, end: t.end };
    this.inside.replaceChildren(toolInput(t.name, t.input), ...(t.output || t.end ? [h('p', { class: 'hint' }, t.failed ? 'Error' : 'Result'), toolOutput(t.output)] : []));
  }
}

/** The states of a call as a shape: not everybody sees the colours. */
const SHAPES = /** @type {Object<string, string>} */ ({ pending: '◌', running: '◌', awaiting_approval: '?', completed: '✓', failed: '✕', denied: '⊘', timeout: '✕', cancelled: '⊘' });

/** A decision, with the input that it was on. @param {import('./model.js').Approval} a */
function decisionOn(a) {
  const d = a.decision;
  return h('details', { class: 'decided' }, h('summary', {}, d ? (d.approved ? 'Approved' : 'Denied') + ' by ' + shortWho(d.by) + (d.reason ? ': ' + visible(d.reason) : '') : 'Nobody decided on',
    ' ', h('code', {}, visible(a.name)), ' ', short(visible(a.input), 80), ' ', time(a.decidedAt ?? a.at)), block(indent(a.input), 'The input that was decided on'));
}
