// Tasks: those that one may read, newest first, page after page, with why they failed.

import { count, h, short, shortWho, taskLink, time } from './dom.js';
import { Refusal, get } from './api.js';
import { filters } from './filters.js';
import { visible } from './letters.js';
import { List } from './list.js';

const PAGE = 200;

/** @param {import('./app.js').Page} page */
export function show(page) {
  const state = h('p', { class: 'state', role: 'status' });
  const next = h('p', { class: 'empty', hidden: true });
  /** @type {any[]} */
  let tasks = [];
  let before = '', more = true, reading = false, round = 0;

  const list = new List('Tasks', cells, () => read());
  page.signal.addEventListener('abort', () => list.close());

  const wanted = () => Object.entries(filter.values()).filter(([, v]) => v);
  const read = async () => {
    if (reading || !more) return;
    reading = true;
    const of = round;
    try {
      const q = new URLSearchParams([['limit', String(PAGE)], ...wanted()]);
      if (before) q.set('before', before);
      const r = await get('/v1/tasks?' + q, page.signal);
      if (of !== round) return;
      tasks = tasks.concat(r.tasks);
      before = r.before ?? '';
      more = before !== '';
      state.textContent = count(tasks.length) + (tasks.length === 1 ? ' task' : ' tasks') + (more ? ', and older ones further down.' : '.');
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
    empty();
    if (more && tasks.length === 0) read(); // a page may be empty and not the last
  };
  const empty = () => {
    next.hidden = list.element.hidden = false;
    if (tasks.length || more) next.hidden = true;
    else {
      list.element.hidden = true;
      next.replaceChildren(...(wanted().length ? ['None matches. ', h('a', { href: '#/tasks' }, 'Show all tasks')] :
        ['No task is kept that you may read. ', h('a', { href: '#/new' }, 'Ask an agent'), ': what you ask is a task.']));
    }
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
  page.signal.addEventListener('abort', () => clearTimeout(timer));
  const filter = filters(page, [
    { name: 'text', label: 'Find', size: 18 },
    { name: 'state', label: 'State', options: [['', 'every state'], ...['queued', 'running', 'done', 'failed', 'cancelled'].map((s) => /** @type {[string, string]} */ ([s, s]))] },
    { name: 'agent', label: 'Agent' }, { name: 'from', label: 'Asked by' }, { name: 'thread', label: 'Conversation' },
  ], () => {
    clearTimeout(timer);
    timer = setTimeout(anew, 200);
  }, h('button', { type: 'button', click: anew }, 'Refresh'));
  page.root.append(h('h1', {}, 'Tasks'), filter.element, state, next, list.element);
  read();
}

/** @param {any} t */
function cells(t) {
  const asked = t.found || t.content || JSON.stringify(t.data ?? t.notice ?? '');
  return [
    h('span', { class: 'at' }, time(t.opened_at)), taskLink(t.id), h('span', { class: 'is ' + t.state }, t.state),
    h('span', { class: 'agent', title: (t.from?.id ?? '') + ' → ' + (t.agent || t.to) }, shortWho(t.from?.id), ' → ', t.agent || t.to), h('span', { class: 'text' }, visible(short(asked, 200))),
    ...(t.fault ? [h('span', { class: 'why', title: visible(short(t.fault.message, 2000)) }, t.fault.code + ': ' + visible(short(t.fault.message, 200)))] : [])];
}
