// What waits for a person: approvals and questions of all agents, read again and again, since
// whoever looks may have no right to the events.

import { Refusal, get, poll } from './api.js';

/**
 * @typedef {Object} Approval
 * @property {string} task
 * @property {string} thread
 * @property {string} id
 * @property {string} name
 * @property {string} input
 * @property {string} input_sha256
 * @property {string} agent
 * @property {{id: string}} from
 * @property {string} since
 * @property {string} until
 */

/**
 * @typedef {Object} Question
 * @property {string} id
 * @property {string} agent
 * @property {string[]} tasks
 * @property {string} question
 * @property {string} [header]
 * @property {{label: string, description?: string}[]} [options]
 * @property {boolean} [multi_select]
 * @property {{message: string, schema: import('./form.js').Schema, decline?: string}} [form]
 * @property {string} since
 * @property {string} until
 */

/**
 * One that waits. Its key changes with what is decided on.
 * @typedef {{key: string, since: string, until: string, approval?: Approval, question?: Question}} Item
 */

const LATER = 'dragoman.later';

class Inbox {
  /** @type {Item[]} */
  items = [];
  /** Why nothing can be read; "" if it can. */
  refused = '';
  /** Whether it was read at all. */
  read = false;
  /** @type {Set<() => void>} */
  watchers = new Set();
  stop = new AbortController();
  /** What was put off, until it changes: by key, kept until the tab is closed. @type {Set<string>} */
  later = new Set(JSON.parse(sessionStorage.getItem(LATER) ?? '[]'));

  /** What waits now, without what was put off. */
  get due() {
    return this.items.filter((i) => !this.later.has(i.key));
  }

  /** @param {string} key @param {boolean} off */
  putOff(key, off) {
    if (off) this.later.add(key);
    else this.later.delete(key);
    sessionStorage.setItem(LATER, JSON.stringify([...this.later]));
    this.tell();
  }

  /** @param {() => void} watcher @param {AbortSignal} [signal] */
  subscribe(watcher, signal) {
    this.watchers.add(watcher);
    signal?.addEventListener('abort', () => this.watchers.delete(watcher));
  }

  start() {
    this.stop = new AbortController();
    // Who reads the questions is there to answer: agents can ask.
    poll(2000, this.stop.signal, () => this.load(), (why) => {
      if (why.status === 0) return;
      this.refused = why.message;
      this.tell();
    });
  }

  /** Reads it at once. */
  now() {
    this.load().catch(() => {}); // who reads again and again tells of it
  }

  /** Starts over, with another credential. */
  restart() {
    this.stop.abort();
    this.start();
  }

  async load() {
    const signal = this.stop.signal;
    const [approvals, questions] = await Promise.all([
      orNone(get('/v1/approvals', signal), 'approvals'), orNone(get('/v1/questions', signal), 'questions'),
    ]);
    if (signal.aborted) return;
    /** @type {Item[]} */
    const items = [];
    for (const a of approvals) items.push({ key: ['a', a.task, a.id, a.input_sha256].join(' '), since: a.since, until: a.until, approval: a });
    for (const q of questions) items.push({ key: 'q ' + q.id, since: q.since, until: q.until, question: q });
    items.sort((x, y) => Date.parse(x.since) - Date.parse(y.since) || (x.key < y.key ? -1 : 1));
    this.items = items;
    for (const key of this.later) if (!items.some((i) => i.key === key)) this.later.delete(key);
    this.refused = '';
    this.read = true;
    this.tell();
  }

  tell() {
    for (const watcher of this.watchers) watcher();
  }
}

/**
 * Who may do one of the two is not refused the other.
 * @param {Promise<any>} answer
 * @param {string} member
 * @returns {Promise<any[]>}
 */
async function orNone(answer, member) {
  try {
    return (await answer)[member] ?? [];
  } catch (e) {
    if (e instanceof Refusal && (e.status === 403 || e.status === 404)) return [];
    throw e;
  }
}

export const inbox = new Inbox();
