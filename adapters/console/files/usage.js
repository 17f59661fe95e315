// Usage: tokens, and what is left of the budgets.

import { count, h, patch, table, taskLink, threadLink, time } from './dom.js';
import { poll, get } from './api.js';

/** @param {import('./app.js').Page} page */
export function show(page) {
  const by = /** @type {HTMLSelectElement} */ (h('select', {}, ['agent', 'thread', 'requester', 'day', 'task'].map((k) => h('option', { value: k }, k))));
  by.value = page.query.get('by') ?? 'agent';
  if (!by.value) by.value = 'agent';
  const state = h('p', { class: 'state', role: 'status' }, 'Reading…');
  const body = h('div', {});
  page.root.append(h('h1', {}, 'Usage'), h('form', { class: 'filters', submit: (/** @type {Event} */ e) => e.preventDefault() }, h('label', {}, 'Tokens by ', by)), state, body);
  let before = '';
  const read = async () => {
    const u = await get('/v1/usage?by=' + by.value, page.signal);
    state.textContent = u.totals.length ? '' : 'Nothing was reported.';
    const text = JSON.stringify(u);
    if (text === before) return;
    before = text;
    patch(body, h('div', {},
      u.totals.length ? table('Tokens by ' + u.by, [u.by, 'In', 'Out', 'Read from cache', 'Written to cache', 'Thinking', 'Reports'], u.totals.map((/** @type {any} */ t) => [
        u.by === 'task' ? taskLink(t.key) : u.by === 'thread' ? threadLink(t.key) : t.key,
        ...['input', 'output', 'cache_read', 'cache_write', 'thinking'].map((k) => count(t.tokens[k] ?? 0)), count(t.events)])) : '',
      u.budgets?.length ? table('Budgets', ['Of', 'Tokens', 'Used', 'Share', 'Resets'], u.budgets.map((/** @type {any} */ b) => [
        b.by + ' ' + b.key, count(b.tokens) + ' a ' + b.per, count(b.used), meter(b.percent), time(b.resets)])) : ''));
  };
  /** @param {Error} e */
  const failed = (e) => { state.textContent = e.message; };
  poll(5000, page.signal, read, failed);
  by.addEventListener('change', () => {
    page.address({ by: by.value });
    read().catch((e) => page.signal.aborted || failed(e));
  });
}

/** @param {number} percent */
function meter(percent) {
  return h('span', {}, h('meter', { min: 0, max: 100, high: 80, value: Math.min(100, percent), 'aria-label': percent + ' percent' }), ' ' + percent + ' %');
}
