// Several: one question to several agents, their answers side by side.

import { h, painter } from './dom.js';
import { cardKeys } from './cards.js';
import { inbox } from './inbox.js';
import { visible } from './letters.js';
import { Reader } from './reader.js';
import { Turn, cancel } from './turn.js';

const MOST = 4;

/** @param {import('./conversations.js').Pane} pane @param {string[]} ids of the tasks */
export function several(pane, ids) {
  const turns = ids.slice(0, MOST).map((id) => new Turn(id, 'running', { stop: cancel }));
  const columns = turns.map((t) => {
    const head = h('h2', {}, '…'), go = h('a', { hidden: true }, 'Continue');
    return { t, head, go, element: h('section', { class: 'column', 'aria-label': 'An answer' }, h('div', { class: 'top' }, head, go), t.element) };
  });
  const asked = h('h1', {}, 'Answers side by side');
  pane.root.replaceChildren(h('div', { class: 'top' }, pane.back(), asked), h('div', { class: 'columns', tabindex: 0, role: 'region', 'aria-label': 'Answers' }, columns.map((c) => c.element)));
  const paint = painter(() => {
    if (pane.signal.aborted) return;
    for (const { t, head, go, element } of columns) {
      t.paint();
      const r = t.model.opened?.request;
      if (!r) continue;
      const name = visible(t.model.agent || r.to);
      if (head.textContent !== name) {
        head.textContent = name;
        element.setAttribute('aria-label', 'Answer of ' + name);
        go.removeAttribute('hidden');
        go.setAttribute('href', '#/conversations/' + encodeURIComponent(r.thread));
        asked.textContent = visible(r.content).slice(0, 200) || 'Answers side by side';
        pane.title(asked.textContent.slice(0, 60));
      }
      t.place(inbox.items);
    }
  });
  const reader = new Reader(pane.signal, () => paint(), MOST);
  for (const t of turns) reader.read(t);
  inbox.subscribe(() => paint(), pane.signal);
  const clock = setInterval(() => { for (const t of turns) t.tick(); }, 1000);
  pane.signal.addEventListener('abort', () => clearInterval(clock));
  paint();
  return cardKeys(pane.root);
}
