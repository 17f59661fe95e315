// Reads the events of tasks into turns, few at a time: a browser opens at most six connections to a hub.

import { Refusal, follow, segment } from './api.js';
import { say } from './dom.js';
import { ENDS } from './events.js';

const AT_ONCE = 4;

export class Reader {
  /** @param {AbortSignal} signal ends all that it reads @param {(turn: import('./turn.js').Turn) => void} changed */
  constructor(signal, changed) {
    this.signal = signal;
    this.changed = changed;
    this.free = AT_ONCE;
    /** @type {(() => void)[]} */
    this.waiting = [];
    /** When the connection was lost; '' while it stands. */
    this.lost = '';
  }

  /**
   * Reads a turn to its end, however long that takes. What it returns is resolved once what there is now is read.
   * @param {import('./turn.js').Turn} turn
   * @param {boolean} runs whether its task was running when it was listed
   * @returns {Promise<void>}
   */
  async read(turn, runs) {
    if (this.free > 0) this.free--;
    else await new Promise((done) => this.waiting.push(() => done(undefined)));
    return new Promise((whole) => {
      this.follow(turn, () => whole()).finally(() => {
        turn.whole = true;
        this.changed(turn);
        whole();
        const next = this.waiting.shift();
        if (next) next();
        else this.free++;
      });
      if (runs) whole();
    });
  }

  /** @param {import('./turn.js').Turn} turn @param {() => void} whole */
  async follow(turn, whole) {
    const m = turn.model;
    let live = false;
    try {
      await follow('/v1/tasks/' + segment(turn.id) + '/events', {
        signal: this.signal,
        open: () => { this.lost = ''; },
        cut: () => {
          live = true;
          this.lost = 'The connection was lost; what follows comes when the hub is back.';
          this.changed(turn);
        },
        ended: () => { this.lost = ''; },
        event: (e) => {
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
      if (!(e instanceof Refusal)) throw e;
      turn.refused = e.status === 404 ? 'There is no such task, or you may not read it.' : e.message;
    }
    whole();
  }
}
