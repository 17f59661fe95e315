// What a tool call was that somebody has decided on. The audit has no content: it is read from the events of the task.

import { Refusal, lines, segment } from './api.js';

const READ = 4 << 20; // bytes of the events of a task
const KEPT = 50; // tasks
const INPUT = 64 << 10; // letters of an input

/** A request for a decision. @typedef {{at: number, call: string, name: string, input: string, more: number}} Asked */

/** @typedef {{seq: number, asked: Promise<{all: Asked[], why: string}>}} Reading */

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
      const asked = this.last.then(() => this.read(d.object));
      this.last = asked;
      reading = { seq: d.seq, asked };
      this.tasks.delete(d.object);
      this.tasks.set(d.object, reading);
      if (this.tasks.size > KEPT) this.tasks.delete(/** @type {string} */ (this.tasks.keys().next().value));
    }
    const { all, why } = await reading.asked;
    const of = all.filter((a) => a.call === d.call);
    // A call may be asked about again, with another input.
    return of.findLast((a) => a.at <= Date.parse(d.at)) ?? of[0] ?? why;
  }

  /** @param {string} task */
  async read(task) {
    /** @type {Asked[]} */
    const all = [];
    try {
      const whole = await lines('/v1/tasks/' + segment(task) + '/events?follow=false', (e) => {
        if (e.kind !== 'approval_requested') return;
        const input = String(e.body.input ?? '');
        all.push({ at: Date.parse(e.at), call: e.body.id, name: e.body.name, input: input.slice(0, INPUT), more: Math.max(0, input.length - INPUT) });
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
