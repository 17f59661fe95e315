// Threads: the conversations of the latest tasks, and the turns of one.

import { count, h, short, shortWho, table, taskLink, threadLink, time } from './dom.js';
import { Refusal, get, segment } from './api.js';
import { visible } from './letters.js';

/** @param {import('./app.js').Page} page */
export function show(page) {
  const one = page.path[0];
  const state = h('p', { class: 'state', role: 'status' }, 'Reading…');
  page.root.append(h('h1', {}, one ? 'Conversation' : 'Conversations'), one ? h('p', {}, h('code', {}, visible(one))) : '', state);
  if (one) page.title('Conversation');
  (one ? turns(page, one, state) : list(page, state)).catch((e) => {
    if (page.signal.aborted) return;
    if (!(e instanceof Refusal)) throw e;
    state.textContent = e.message;
  });
}

/** @param {import('./app.js').Page} page @param {HTMLElement} state */
async function list(page, state) {
  const { tasks, before } = await get('/v1/tasks?limit=500', page.signal);
  /** @type {Map<string, {last: any, n: number}>} */
  const threads = new Map();
  for (const t of tasks) {
    const known = threads.get(t.thread);
    if (known) known.n++;
    else threads.set(t.thread, { last: t, n: 1 });
  }
  state.textContent = count(threads.size) + (threads.size === 1 ? ' conversation' : ' conversations') + ' among the latest ' + count(tasks.length) + ' tasks that you may read' + (before ? '; older ones are not listed.' : '.');
  page.root.append(table('Conversations', ['Conversation', 'Tasks', 'Last', 'Who', 'Said'], [...threads].map(([id, t]) => [
    threadLink(id), count(t.n), time(t.last.opened_at), shortWho(t.last.from?.id) + ' → ' + (t.last.agent || t.last.to), visible(short(t.last.content, 120))]), true));
}

/** @param {import('./app.js').Page} page @param {string} id @param {HTMLElement} state */
async function turns(page, id, state) {
  const { turns } = await get('/v1/threads/' + segment(id), page.signal);
  state.textContent = turns.length ? count(turns.length) + ' turns.' : 'The hub has no turn of this conversation that you may read.';
  page.root.append(h('p', {}, h('a', { href: '#/tasks?thread=' + encodeURIComponent(id) }, 'Its tasks'), ' · ', h('a', { href: '#/ask?thread=' + encodeURIComponent(id) }, 'Ask a follow-up')),
    h('ol', { class: 'talk' }, turns.map((/** @type {any} */ t) => h('li', { class: 'part ' + (t.role === 'user' ? 'opened' : 'text') },
      h('p', { class: 'who' }, h('b', {}, t.agent || t.role), ' ', time(t.at), ' ', t.task ? taskLink(t.task) : null),
      h('div', { class: 'words', dir: 'auto' }, visible(t.text))))));
}
