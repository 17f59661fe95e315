// What was decided and answered, by whom: from the audit, which operators may read.

import { count, h, shortWho, table, taskLink, time } from './dom.js';
import { Refusal, lines, pause } from './api.js';

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
        this.refused = true;
        this.body.replaceChildren(h('p', { class: 'state' }, e.status === 403 ? 'Who decided what is in the audit, which operators may read.' : e.message));
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
    this.body.replaceChildren(this.decisions.length ? table('Decided before', ['When', 'Who', 'What', 'Of'], this.decisions.map((d) => [
      time(d.at), shortWho(d.principal) || 'the hub', said(d), d.act === 'decide' ? taskLink(d.object) : shortWho(d.object)]), true) :
      h('p', { class: 'state' }, 'Nothing was decided in the latest ' + count(READ) + ' entries of the audit.'));
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
    return d ? said(d) + ' by ' + shortWho(d.principal) : '';
  }
}

/** @param {Entry} d */
function said(d) {
  return d.act === 'answer' ? 'answered' : (d.approved ? 'approved' : 'denied') + (d.call ? ' ' + d.call : '');
}
