// What was decided and answered, by whom: from the audit, which operators may read.

import { count, h, short, shortWho, taskLink, time } from './dom.js';
import { Refusal, lines, pause } from './api.js';
import { Decided } from './decided.js';
import { block, indent, visible } from './letters.js';

/** An entry of the audit. @typedef {{seq: number, at: string, principal: string, act: string, object: string, outcome: string, approved?: boolean, call?: string}} Entry */

const READ = 2000; // of the latest entries
const SHOWN = 50; // decisions

export class History {
  /** @param {AbortSignal} signal */
  constructor(signal) {
    this.signal = signal;
    /** The latest first. @type {Entry[]} */
    this.decisions = [];
    /** The last entry that was read. */
    this.last = 0;
    this.refused = false;
    /** @type {Promise<void>|undefined} */
    this.reading = undefined;
    this.decided = new Decided(signal);
    /** The rows by their entries, which stay. @type {Map<Entry, HTMLElement>} */
    this.rows = new Map();
    /** What fills a row once it is seen. @type {WeakMap<Element, () => void>} */
    this.fill = new WeakMap();
    this.seen = new IntersectionObserver((rows) => {
      for (const { target, isIntersecting } of rows) {
        if (!isIntersecting) continue;
        this.seen.unobserve(target);
        this.fill.get(target)?.();
      }
    });
    signal.addEventListener('abort', () => this.seen.disconnect());
    this.tbody = h('tbody', {});
    this.table = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Decided before' }, h('table', {}, h('caption', { class: 'unseen' }, 'Decided before'),
      h('thead', {}, h('tr', {}, ['Decision', 'What', 'By', 'When', 'Task'].map((t) => h('th', { scope: 'col' }, t)))), this.tbody));
    this.body = h('div', {});
    this.element = h('details', { class: 'history', toggle: () => { if (this.element.hasAttribute('open')) this.read(); } }, h('summary', {}, 'Decided before'), this.body);
    this.follow();
  }

  /** Reads on while it is open. */
  async follow() {
    while (!this.signal.aborted) {
      if (this.element.hasAttribute('open')) await this.read();
      await pause(5000, this.signal);
    }
  }

  /** Reads what was added since. */
  read() {
    this.reading ??= this.readOn().catch((e) => {
      if (!(e instanceof Refusal)) {
        if (!this.signal.aborted) throw e;
      } else if (e.status) {
        this.refused = e.status === 403;
        this.body.replaceChildren(h('p', { class: 'state' }, e.status === 403 ? 'Who decided what is in the audit, which your credential may not read: it lacks the right operate.' : e.message));
      }
    }).finally(() => { this.reading = undefined; });
    return this.reading;
  }

  async readOn() {
    if (this.refused) return;
    if (!this.last) this.last = Math.max(0, (await this.end()) - READ);
    let changed = !this.body.firstChild;
    await lines('/v1/audit?after=' + this.last, (/** @type {Entry} */ e) => {
      this.last = e.seq;
      if ((e.act !== 'decide' && e.act !== 'answer') || e.outcome !== 'ok') return;
      this.decisions.unshift(e);
      changed = true;
    }, this.signal);
    if (!changed) return;
    this.decisions.length = Math.min(this.decisions.length, SHOWN);
    for (const [d, row] of this.rows) {
      if (this.decisions.includes(d)) continue;
      row.remove();
      this.rows.delete(d);
    }
    for (const d of [...this.decisions].reverse()) {
      if (this.rows.has(d)) continue;
      const row = this.row(d);
      this.rows.set(d, row);
      this.tbody.prepend(row);
    }
    this.body.replaceChildren(this.decisions.length ? this.table :
      h('p', { class: 'empty' }, 'Nothing was decided in the latest ' + count(READ) + ' entries of the audit. What you approve, deny and answer comes here.'));
  }

  /** @param {Entry} d */
  row(d) {
    const what = h('td', { class: 'what' }, d.act === 'decide' ? '…' : 'a question, which stands in the conversation of its task');
    const row = h('tr', {}, h('td', {}, h('span', { class: 'is ' + said(d) }, said(d))), what, h('td', {}, shortWho(d.principal) || 'the hub'), h('td', {}, time(d.at)),
      h('td', {}, d.act === 'decide' ? taskLink(d.object) : ''));
    if (d.act === 'decide') {
      this.fill.set(row, () => this.decided.find(d).then((asked) => what.replaceChildren(...(typeof asked === 'string' ? [asked] : whatOf(asked)))));
      this.seen.observe(row);
    }
    return row;
  }

  /** The number of the last entry: found by steps, since the audit is read from its beginning. */
  async end() {
    /** @param {number} after */
    const next = async (after) => {
      let found = 0;
      await lines('/v1/audit?limit=1&after=' + after, (e) => { found = e.seq; }, this.signal);
      return found;
    };
    let low = await next(0), step = READ;
    for (let seq; low && (seq = await next(low + step)); step *= 2) low = seq;
    let high = low + step;
    while (low && high - low > READ / 2) {
      const middle = (low + high) >> 1, seq = await next(middle);
      if (seq) low = seq;
      else high = middle;
    }
    return high > READ ? low + READ / 2 : 0;
  }

  /** Who decided on what waited, and what. @param {import('./inbox.js').Item} item @returns {Promise<string>} */
  async find(item) {
    await pause(200, this.signal); // the audit is written together
    await this.read();
    const d = this.decisions.find((e) => (item.approval ? e.act === 'decide' && e.object === item.approval.task && e.call === item.approval.id : e.act === 'answer' && e.object === item.question?.id));
    return d ? said(d) + (d.call ? ' ' + d.call : '') + ' by ' + shortWho(d.principal) : '';
  }
}

/** @param {Entry} d */
function said(d) {
  return d.act === 'answer' ? 'answered' : d.approved ? 'approved' : 'denied';
}

/** The tool, and its input in short and whole. @param {import('./decided.js').Asked} a */
function whatOf(a) {
  return [h('code', {}, visible(a.name)), h('details', {}, h('summary', {}, visible(short(a.input.replace(/\s+/g, ' '), 80))),
    block(indent(a.input), 'The whole input of ' + visible(a.name)), a.more ? h('p', { class: 'hint' }, count(a.more) + ' more letters stand in the task.') : '')];
}
