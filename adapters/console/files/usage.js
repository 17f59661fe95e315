// Usage: tokens and money, and what is left of the budgets.

import { count, h, money, patch, table, taskLink, threadLink, time } from './dom.js';
import { get, poll, refusal } from './api.js';

/** How one says what the hub counts by. */
const BY = /** @type {Object<string, string>} */ ({ agent: 'agent', thread: 'conversation', requester: 'who asked', day: 'day', task: 'task' });

/** Whose a budget is. */
const OF = /** @type {Object<string, string>} */ ({ agent: 'agent', thread: 'conversation', requester: 'what is asked by' });

/** @param {import('./app.js').Page} page */
export function show(page) {
  const by = /** @type {HTMLSelectElement} */ (h('select', {}, Object.entries(BY).map(([k, label]) => h('option', { value: k }, label))));
  by.value = page.query.get('by') ?? 'agent';
  if (!by.value) by.value = 'agent';
  const state = h('p', { class: 'state', role: 'status' }, 'Reading…');
  const body = h('div', {});
  page.root.append(h('h1', {}, 'Usage'), h('form', { class: 'filters', submit: (/** @type {Event} */ e) => e.preventDefault() }, h('label', {}, 'Tokens and money by ', by)), state, body);
  let before = '';
  const read = async () => {
    const u = await get('/v1/usage?by=' + by.value, page.signal);
    state.textContent = u.totals.length ? '' : 'No usage is known yet.';
    const text = JSON.stringify(u);
    if (text === before) return;
    before = text;
    patch(body, h('div', {},
      u.totals.length ? table('Tokens and money by ' + BY[u.by], [BY[u.by] ?? u.by, 'Cost', 'In', 'Out', 'Read from cache', 'Written to cache', 'Thinking', 'Reports'], u.totals.map((/** @type {any} */ t) => [
        u.by === 'task' ? taskLink(t.key) : u.by === 'thread' ? threadLink(t.key) : t.key, cost(t),
        ...['input', 'output', 'cache_read', 'cache_write', 'thinking'].map((k) => count(t.tokens[k] ?? 0)), count(t.events)]), true) :
        h('p', { class: 'empty' }, 'Agents tell the hub what they used when they answer: ', h('a', { href: '#/new' }, 'ask one'), '. Some never do, such as plain commands. Money is counted where an agent tells its cost, or ',
          h('code', {}, 'usage.prices'), ' has the price of its model.'),
      u.budgets?.length ? table('Budgets', ['Of', 'Used', 'Limit', 'Share', 'Resets'], u.budgets.map((/** @type {any} */ b) => [
        (OF[b.by] ?? b.by) + ' ' + b.key, b.cost ? money(b.used_cost ?? { nanos: 0, currency: b.cost.currency }) : count(b.used) + ' tokens',
        (b.cost ? money(b.cost) : count(b.tokens) + ' tokens') + (b.per === 'day' ? ' a day' : ' in total'), meter(b.percent), time(b.resets) || 'never'])) : ''));
  };
  /** @param {Error} e */
  const failed = (e) => { state.textContent = refusal(e); };
  poll(5000, page.signal, read, failed);
  by.addEventListener('change', () => {
    page.address({ by: by.value });
    read().catch((e) => page.signal.aborted || failed(e));
  });
}

/** What a total cost; what has no price is said, and not counted as nothing. @param {any} t */
function cost(t) {
  const known = t.cost?.currency ? money(t.cost) : '';
  if (!t.unpriced) return known || '–';
  return known && t.unpriced < t.events ? known + ', ' + count(t.unpriced) + ' of ' + count(t.events) + ' reports without a price' : 'no price';
}

/** @param {number} percent */
function meter(percent) {
  return h('span', {}, h('meter', { min: 0, max: 100, high: 80, value: Math.min(100, percent), 'aria-label': percent + ' percent' }), ' ' + percent + ' %');
}
