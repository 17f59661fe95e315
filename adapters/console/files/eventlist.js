// The events of a task: a line each, and the whole event on demand.

import { clock, h } from './dom.js';
import { List } from './list.js';
import { block, indent, visible } from './letters.js';

/**
 * @param {import('./model.js').Model} m
 * @returns {import('./task.js').Tab}
 */
export function events(m) {
  const whole = h('div', { class: 'whole', 'aria-live': 'polite' });
  const list = new List('Events', (/** @type {import('./model.js').Line} */ l) => [
    h('button', { type: 'button', class: 'link', 'aria-label': 'Event ' + l.seq + ', whole', click: () => {
      whole.replaceChildren(h('h2', {}, 'Event ' + l.seq), l.whole ? block(indent(l.whole), 'Event ' + l.seq) :
        h('p', {}, 'This page did not keep it: it keeps the first 16 MiB of a task.'));
    } }, String(l.seq)),
    h('span', { class: 'at' }, clock(l.at)), h('span', { class: 'kind ' + l.kind }, l.kind), h('span', { class: 'text' }, visible(l.text))]);
  return {
    element: h('div', {}, list.element, whole),
    paint: () => list.show(m.lines),
    close: () => list.close(),
  };
}
