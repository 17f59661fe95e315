// What a tool call was that somebody has decided on. The audit has no content: it is read from the events of the task.

import { Refusal, lines, segment } from './api.js';

const READ = 4 << 20; // bytes of the events of a task
const KEPT = 50; // tasks
const INPUT = 64 << 10; // letters of an input

/** What was asked. @typedef {{name: string, input: string, more: number}} Asked */

/** A decision on it, in a task. @typedef {{at: number, call: string, approved: boolean, asked: Asked}} Decision */

/** @typedef {{seq: number, all: Promise<{all: Decision[], why: string}>}} Reading */

export class Decided {
  /** @param {AbortSignal} signal */
  constructor(signal) {
    this.signal = signal;
    /** What was read for the decision with the highest number of a task. @type {Map<string, Reading>} */
    this.tasks = new Map();
    /** One task is read at a time. @type {Promise<any>} */
    this.last = Promise.resolve();
  }

  /**
   * What was decided on; a text says why that is not known.
   * @param {import('./history.js').Entry} d
   * @returns {Promise<Asked|string>}
   */
  async find(d) {
    let reading = this.tasks.get(d.object);
    if (!reading || reading.seq < d.seq) {
      const all = this.last.then(() => this.read(d.object));
      this.last = all;
      reading = { seq: d.seq, all };
      this.tasks.delete(d.object);
      this.tasks.set(d.object, reading);
      if (this.tasks.size > KEPT) this.tasks.delete(/** @type {string} */ (this.tasks.keys().next().value));
    }
    const { all, why } = await reading.all;
    // A call may be decided on again, with another input: it is the one of that time.
    const off = (/** @type {Decision} */ x) => Math.abs(x.at - Date.parse(d.at));
    const of = all.filter((x) => x.call === d.call && x.approved === Boolean(d.approved)).sort((x, y) => off(x) - off(y));
    return of[0]?.asked ?? why;
  }

  /** @param {string} task */
  async read(task) {
    /** @type {Decision[]} */
    const all = [];
    /** @type {Map<string, Asked>} */
    const asked = new Map();
    try {
      const whole = await lines('/v1/tasks/' + segment(task) + '/events?follow=false', ({ kind, at, body }) => {
        if (kind === 'approval_requested') {
          const input = String(body.input ?? '');
          asked.set(body.id, { name: String(body.name), input: input.slice(0, INPUT), more: Math.max(0, input.length - INPUT) });
        }
        const of = kind === 'approval_decided' && asked.get(body.id);
        if (of) all.push({ at: Date.parse(at), call: body.id, approved: Boolean(body.approved), asked: of });
      }, this.signal, READ);
      return { all, why: whole ? 'The task no longer has it.' : 'It is behind the first 4 MiB of the task.' };
    } catch (e) {
      if (!(e instanceof Refusal)) {
        if (!this.signal.aborted) throw e;
        return { all, why: '' };
      }
      return { all, why: e.status === 403 || e.status === 404 ? 'You may not read the task, or it is no longer kept.' : 'It cannot be read: ' + e.message };
    }
  }
}
