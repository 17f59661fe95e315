// The frames of a task: what each connection said in its own dialect, side by side, and what
// became of it.

import { clock, h, pretty } from './dom.js';
import { Refusal, get, segment } from './api.js';
import { block } from './waiting.js';

/** @typedef {{at: string, dialect: string, direction: 'in'|'out', connection: string, frame: any, became?: {kind: string, disposition: string}[]}} Frame */

/**
 * @param {import('./model.js').Model} m
 * @param {string} id
 * @param {AbortSignal} signal
 * @returns {import('./task.js').Tab}
 */
export function frames(m, id, signal) {
  const state = h('p', { class: 'state', role: 'status' }, 'Reading…');
  const grid = h('div', { class: 'frames', tabindex: 0, role: 'region', 'aria-label': 'Frames side by side' });
  let read = -1, reading = false, refused = false;
  const load = async () => {
    if (reading || refused || read === m.version) return;
    reading = true;
    read = m.version;
    try {
      const r = await get('/v1/tasks/' + segment(id) + '/frames', signal);
      lay(grid, r.frames ?? []);
      state.textContent = (r.frames ?? []).length ? r.frames.length + ' frames.' + (r.missing ? ' ' + r.missing : '') : r.missing || 'The hub keeps no frame of this task: it came before frames were kept, or they made room for newer ones.';
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
  return { element: h('section', { 'aria-label': 'Frames' }, state, grid), paint: () => {}, close: () => clearInterval(again) };
}

/** Lays frames out, a column for each connection, in the order of time. @param {HTMLElement} grid @param {Frame[]} all */
function lay(grid, all) {
  const columns = [...new Set(all.map((f) => f.connection))];
  grid.style.setProperty('--columns', String(Math.max(1, columns.length)));
  grid.replaceChildren(
    ...columns.map((c, i) => {
      const head = h('h2', {}, all.find((f) => f.connection === c)?.dialect ?? '', h('span', { class: 'hint' }, ' ' + c));
      head.style.gridColumn = String(i + 1);
      return head;
    }),
    ...all.map((f, i) => {
      const text = f.frame === null ? 'Not said: the dialect has no words for it.' : pretty(f.frame);
      const e = h('article', { class: 'frame ' + f.direction, 'aria-label': f.dialect + ', ' + (f.direction === 'in' ? 'to the hub' : 'from the hub') },
        h('p', { class: 'who' }, (f.direction === 'in' ? '→ hub' : '← hub') + ' ', clock(f.at), ' ',
          (f.became ?? []).map((b) => h('span', { class: 'became ' + b.disposition, title: b.disposition }, (b.kind || '') + ' ' + b.disposition))),
        block(text, 'Frame'), h('button', { type: 'button', class: 'link', click: () => navigator.clipboard?.writeText(text) }, 'Copy'));
      e.style.gridColumn = String(columns.indexOf(f.connection) + 1);
      e.style.gridRow = String(i + 2);
      return e;
    }));
}
