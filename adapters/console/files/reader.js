// Reads the events of tasks into turns: what has ended at once, what runs as it comes. A browser opens at most six
// connections to a hub, all tabs together, so few are used at a time.

import { Refusal, follow, segment } from './api.js';
import { say } from './dom.js';
import { ENDS } from './events.js';

const RUNNING = 3; // turns that are followed
const READING = 2; // turns that are read

export class Reader {
  /**
   * @param {AbortSignal} signal ends all that it reads
   * @param {(turn: import('./turn.js').Turn) => void} changed
   * @param {number} [running] how many turns are followed at once
   */
  constructor(signal, changed, running = RUNNING) {
    this.signal = signal;
    this.changed = changed;
    this.running = new Slots(running);
    this.reading = new Slots(READING);
    /** Why what is shown may be behind; '' if it is not. */
    this.lost = '';
  }

  /**
   * Reads a turn to its end, however long that takes. What it returns is resolved once what there is now is read, or for
   * what runs at once.
   * @param {import('./turn.js').Turn} turn
   * @returns {Promise<void>}
   */
  async read(turn) {
    if (turn.runs) {
      this.running.use(() => this.follow(turn));
      return;
    }
    await this.reading.use(() => this.follow(turn)); // one that is cut is resumed, as what runs is
  }

  /** @param {import('./turn.js').Turn} turn */
  async follow(turn) {
    let live = false;
    try {
      await follow('/v1/tasks/' + segment(turn.id) + '/events', {
        signal: this.signal,
        open: () => {
          this.lost = '';
          this.changed(turn);
        },
        cut: () => {
          live = true;
          this.lost = 'The connection was lost; what follows comes when the hub is back.';
          this.changed(turn);
        },
        ended: () => { this.lost = ''; },
        event: (e) => {
          const m = turn.model;
          if (e.event === 'gap') m.gap(e.data);
          else if (e.event !== 'shutdown') m.add(e.data, e.text);
          const end = ENDS.has(e.event);
          if (end && live) say((m.agent || 'The task') + (m.state === 'done' ? ' has answered' : ' ' + m.state));
          if (!end && Date.now() - Date.parse(e.data.at) < 2000) live = true;
          this.changed(turn);
          return end;
        },
      });
    } catch (e) {
      this.lost = '';
      this.refuse(turn, e);
    }
    this.changed(turn);
  }

  /** @param {import('./turn.js').Turn} turn @param {unknown} why */
  refuse(turn, why) {
    if (this.signal.aborted) return;
    if (!(why instanceof Refusal)) throw why;
    turn.refused = why.status === 404 ? 'There is no such task, or you may not read it.' : why.message;
  }
}

/** What is done at once, at most; the rest waits for its turn. */
class Slots {
  /** @param {number} free */
  constructor(free) {
    this.free = free;
    /** @type {((value: undefined) => void)[]} */
    this.waiting = [];
  }

  /** @param {() => Promise<void>} what */
  async use(what) {
    if (this.free > 0) this.free--;
    else await new Promise((done) => this.waiting.push(done));
    try {
      await what();
    } finally {
      const next = this.waiting.shift();
      if (next) next(undefined);
      else this.free++;
    }
  }
}
