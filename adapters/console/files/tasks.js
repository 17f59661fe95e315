// Tasks: those that one may read, newest first, page after page.

import { count, h, short, shortWho, taskLink, time } from './dom.js';
import { Refusal, get } from './api.js';
import { visible } from './letters.js';
import { List } from './list.js';

const PAGE = 200;

/** @param {import('./app.js').Page} page */
export function show(page) {
  const state = h('p', { class: 'state', role: 'status' });
  /** @type {Object<string, HTMLInputElement|HTMLSelectElement>} */
  const fields = {
    state: /** @type {HTMLSelectElement} */ (h('select', {}, h('option', { value: '' }, 'every state'), ['queued', 'running', 'done', 'failed', 'cancelled'].map((s) => h('option', { value: s }, s)))),
    agent: /** @type {HTMLInputElement} */ (h('input', { value: page.query.get('agent') ?? '', size: 14 })),
    from: /** @type {HTMLInputElement} */ (h('input', { value: page.query.get('from') ?? '', size: 14 })),
    thread: /** @type {HTMLInputElement} */ (h('input', { value: page.query.get('thread') ?? '', size: 14 })),
  };
  /** @type {HTMLSelectElement} */ (fields.state).value = page.query.get('state') ?? '';
  /** @type {any[]} */
  let tasks = [];
  let before = '', more = true, reading = false, round = 0;

  const list = new List('Tasks', (t) => [
    h('span', { class: 'at' }, time(t.opened_at)), taskLink(t.id), h('span', { class: 'is ' + t.state }, t.state),
    h('span', { class: 'agent', title: (t.from?.id ?? '') + ' → ' + (t.agent || t.to) }, shortWho(t.from?.id), ' → ', t.agent || t.to), h('span', { class: 'text' }, visible(short(t.content || JSON.stringify(t.data ?? t.notice ?? ''), 200)))], () => read());
  page.signal.addEventListener('abort', () => list.close());

  const read = async () => {
    if (reading || !more) return;
    reading = true;
    const of = round;
    try {
      const q = new URLSearchParams({ limit: String(PAGE) });
      for (const [k, f] of Object.entries(fields)) if (f.value.trim()) q.set(k, f.value.trim());
      if (before) q.set('before', before);
      const r = await get('/v1/tasks?' + q, page.signal);
      if (of !== round) return;
      tasks = tasks.concat(r.tasks);
      before = r.before ?? '';
      more = before !== '';
      state.textContent = count(tasks.length) + ' tasks' + (more ? ', and older ones further down.' : '.');
    } catch (e) {
      if (page.signal.aborted) return;
      if (!(e instanceof Refusal)) throw e;
      if (of !== round) return;
      more = false;
      state.textContent = e.message;
    } finally {
      if (of === round) reading = false;
    }
    list.show(tasks); // which reads on while its end is in sight
    if (more && tasks.length === 0) read(); // a page may be empty and not the last
  };
  const anew = () => {
    round++;
    tasks = [];
    before = '';
    more = true;
    reading = false;
    list.element.scrollTop = 0;
    read();
  };
  /** @type {any} */
  let timer;
  for (const f of Object.values(fields)) {
    f.addEventListener('input', () => {
      page.address(Object.fromEntries(Object.entries(fields).map(([k, x]) => [k, x.value.trim()])));
      clearTimeout(timer);
      timer = setTimeout(anew, 200);
    });
  }
  page.root.append(h('h1', {}, 'Tasks'),
    h('form', { class: 'filters', role: 'search', 'aria-label': 'Filters', submit: (/** @type {Event} */ e) => e.preventDefault() },
      Object.entries(fields).map(([name, f]) => h('label', {}, name, ' ', f)), h('button', { type: 'button', click: anew }, 'Refresh')),
    state, list.element);
  read();
}
