// Agents: who is here, how loaded, since when, and what the hub knows of those it starts itself.

import { clock, count, h, patch, say, short, time } from './dom.js';
import { visible } from './letters.js';
import { List } from './list.js';
import { Refusal, get, poll, post, segment } from './api.js';

/** The states as a shape too: not everybody sees the colours. */
const SHAPES = /** @type {Object<string, string>} */ ({ idle: '○', busy: '●', overloaded: '▲', draining: '◐', ready: '○', starting: '◌', restarting: '↻', failed: '✕' });

/** @param {import('./app.js').Page} page */
export function show(page) {
  const one = page.path[0];
  const state = h('p', { class: 'state' }, 'Reading…');
  const body = h('div', {});
  page.root.append(h('h1', {}, one ? 'Agent ' + one : 'Agents'), state, body);
  if (one) page.title('Agent ' + one);
  let before = '';
  /** @type {List|undefined} */
  let long;
  /** Rows as they were, so that what did not change stays. @type {Map<string, {id: string, was: string, a: any}>} */
  let rows = new Map();
  page.signal.addEventListener('abort', () => long?.close());
  poll(2000, page.signal, async () => {
    const all = one ? [await get('/v1/agents/' + segment(one), page.signal)] : (await get('/v1/agents', page.signal)).agents;
    state.textContent = one ? '' : all.length ? all.length + (all.length === 1 ? ' agent is here.' : ' agents are here.') : 'No agent is here that you may see.';
    const text = JSON.stringify(all);
    if (text === before) return; // nothing moves under a reader without need
    before = text;
    if (one || all.length <= LONG) {
      long?.close();
      long = undefined;
      const fresh = h('div', {}, one ? detail(all[0]) : roster(all));
      if (body.firstChild) patch(body, fresh);
      else body.replaceChildren(...fresh.childNodes);
      return;
    }
    if (!long) {
      long = new List('Agents', (r) => brief(r.a));
      body.replaceChildren(long.element);
    }
    rows = new Map(all.map((/** @type {any} */ a) => {
      const was = JSON.stringify({ ...a, load: { ...a.load, last_seen: '' } }), old = rows.get(a.id);
      return [a.id, old?.was === was ? old : { id: a.id, was, a }];
    }));
    long.show([...rows.values()]);
  }, (why) => {
    if (why.status) state.textContent = (why.status === 403 ? 'You may not see this: ' : '') + why.message;
  });
}

/** @param {any} v */
const written = (v) => visible(JSON.stringify(v, null, 2));

const LONG = 500; // agents; of more, only the rows that are seen exist

/** The cells of one of many. @param {any} a */
function brief(a) {
  return [h('a', { class: 'agent', href: '#/agents/' + encodeURIComponent(a.id) }, a.id), stateOf(a), h('span', { class: 'at' }, (a.load?.active ?? 0) + ' of ' + a.max_concurrent),
    h('span', { class: 'kind' }, a.dialect), h('span', { class: 'text' }, short((a.capabilities ?? []).join(', '), 80))];
}

/** @param {any} a */
function stateOf(a) {
  const s = a.child && a.child.state !== 'ready' ? a.child.state : a.load?.state ?? 'idle';
  return h('span', { class: 'is ' + s }, h('span', { 'aria-hidden': 'true' }, (SHAPES[s] ?? '·') + ' '), s);
}

/** @param {any[]} all */
function roster(all) {
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Agents' }, h('table', {}, h('caption', { class: 'unseen' }, 'Agents'),
    h('thead', {}, h('tr', {}, ['Agent', 'State', 'Works on', 'Queued', 'Dialect', 'Capabilities', 'Since', 'Seen'].map((t) => h('th', { scope: 'col' }, t)))),
    h('tbody', {}, all.map((a) => h('tr', { 'data-key': a.id },
      h('th', { scope: 'row' }, h('a', { href: '#/agents/' + encodeURIComponent(a.id) }, a.id), a.name && a.name !== a.id ? h('span', { class: 'hint' }, ' ' + a.name) : null),
      h('td', {}, stateOf(a)),
      h('td', {}, a.load?.active ? h('a', { href: '#/tasks?state=running&agent=' + encodeURIComponent(a.id) }, a.load.active + ' of ' + a.max_concurrent) : '0 of ' + a.max_concurrent),
      h('td', {}, count(a.load?.queued ?? 0)), h('td', {}, a.dialect),
      h('td', {}, short((a.capabilities ?? []).join(', '), 80)), h('td', {}, time(a.since)), h('td', {}, time(a.load?.last_seen)))))));
}

/** @param {any} a */
function detail(a) {
  const note = h('p', { role: 'status', class: 'note' });
  const restart = h('button', {
    type: 'button', click: async () => {
      try {
        await post('/v1/agents/' + segment(a.id) + '/restart', {});
        note.textContent = 'It is being started again, as of ' + clock(new Date()) + '.';
        say(note.textContent);
      } catch (e) {
        if (!(e instanceof Refusal)) throw e;
        note.textContent = e.message;
      }
    },
  }, 'Start it again');
  const rows = /** @type {[string, any][]} */ ([
    ['State', stateOf(a)], ['Dialect', a.dialect], ['Model', a.model], ['Features', (a.features ?? []).join(', ')],
    ['Capabilities', (a.capabilities ?? []).join(', ')], ['Domains', (a.domains ?? []).join(', ')], ['Tools', (a.tools ?? []).join(', ')],
    ['Works on', (a.load?.active ?? 0) + ' of ' + a.max_concurrent], ['Queued', a.load?.queued ?? 0],
    ['Here since', time(a.since)], ['Seen', time(a.load?.last_seen)], ['Connected as', a.principal?.id],
  ]);
  return h('div', {},
    h('p', {}, h('a', { href: '#/ask?to=' + encodeURIComponent(a.id) }, 'Ask it'), ' · ',
      h('a', { href: '#/tasks?agent=' + encodeURIComponent(a.id) }, 'Its tasks'), ' · ',
      h('a', { href: '#/live?agent=' + encodeURIComponent(a.id) }, 'Live')),
    h('dl', {}, rows.filter(([, v]) => v !== undefined && v !== '').map(([k, v]) => [h('dt', {}, k), h('dd', {}, v)]).flat()),
    a.vitals && [h('h2', {}, 'Vitals'), h('pre', { tabindex: 0 }, written(a.vitals))],
    a.metadata && [h('h2', {}, 'Metadata'), h('pre', { tabindex: 0 }, short(written(a.metadata), 20000))],
    a.child && [h('h2', {}, 'Started by the hub'), h('pre', { tabindex: 0 }, written(a.child)), restart, note]);
}
