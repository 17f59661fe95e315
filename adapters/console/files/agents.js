// Agents: who is here and how loaded, with why what failed did. Filters and order stand in the address.

import { count, h, patch, short, time } from './dom.js';
import { List } from './list.js';
import { filters } from './filters.js';
import { get, poll } from './api.js';
import { address, show as showOne, stateOf, stateShown, talkTo, whyNotReady } from './agent.js';

const LONG = 100; // rows; of more, only those that are seen exist

/** The states in the order in which they need somebody. */
const STATES = ['failed', 'restarting', 'starting', 'overloaded', 'draining', 'busy', 'idle'];

/**
 * A row: an agent, or what the settings say of one that could not join since another has its id. It is the same object
 * for as long as it is here; was is what it shows.
 * @typedef {{key: string, was: string, a: any, state: string, why: string, text: string}} Row
 */

/** @type {Object<string, (x: Row, y: Row) => number>} */
const ORDERS = {
  '': (x, y) => STATES.indexOf(x.state) - STATES.indexOf(y.state),
  name: (x, y) => compare(x.a.name || x.a.id, y.a.name || y.a.id),
  load: (x, y) => loadOf(y.a) - loadOf(x.a),
  seen: (x, y) => compare(y.a.load?.last_seen ?? '', x.a.load?.last_seen ?? ''),
};

/** @param {string} x @param {string} y */
const compare = (x, y) => (x < y ? -1 : x > y ? 1 : 0);

/** @param {any} a */
const loadOf = (a) => ((a.load?.active ?? 0) + (a.load?.queued ?? 0)) / Math.max(1, a.max_concurrent);

/** @param {import('./app.js').Page} page */
export function show(page) {
  if (page.path[0]) return showOne(page, page.path[0]);
  const state = h('p', { class: 'state', role: 'status' }, 'Reading…');
  const body = h('div', {});
  /** @type {Map<string, Row>} */
  const rows = new Map();
  /** @type {Table|List|undefined} */
  let shown;
  page.signal.addEventListener('abort', () => shown instanceof List && shown.close());

  const paint = () => {
    const f = filter.values(), text = f['text']?.toLowerCase() ?? '';
    const order = ORDERS[f['order'] ?? ''] ?? ORDERS[''];
    const found = [...rows.values()].filter((r) => r.text.includes(text) && (!f['state'] || r.state === f['state']))
      .sort((x, y) => order?.(x, y) || compare(x.key, y.key));
    state.textContent = !rows.size ? 'No agent is here that you may see.' : (found.length < rows.size ? count(found.length) + ' of ' : '') +
      count(rows.size) + (rows.size === 1 ? ' agent is here.' : ' agents are here.');
    if (!found.length) return empty(rows.size > 0);
    const kind = rows.size > LONG ? List : Table;
    if (!(shown instanceof kind)) {
      if (shown instanceof List) shown.close();
      shown = kind === List ? new List('Agents', brief) : new Table();
      body.replaceChildren(shown.element);
    }
    shown.show(found);
  };
  /** Says what to do where there is nothing. @param {boolean} filtered */
  const empty = (filtered) => {
    if (shown instanceof List) shown.close();
    shown = undefined;
    body.replaceChildren(filtered ? h('p', { class: 'empty' }, 'None matches. ', h('a', { href: '#/agents' }, 'Show all agents')) :
      h('p', { class: 'empty' }, 'Add one that is on the machine of the hub with ', h('code', {}, 'dragoman add claude'), ', or connect any program with ',
        h('code', {}, 'dragoman agent --name shout -- tr a-z A-Z'), '. If agents are here that you should see, your credential lacks a right to ask them or to read their tasks.'));
  };
  const filter = filters(page, [
    { name: 'text', label: 'Find', size: 18 },
    { name: 'state', label: 'State', options: [['', 'every state'], ...STATES.map((s) => /** @type {[string, string]} */ ([s, s]))] },
    { name: 'order', label: 'Order', options: [['', 'failed first'], ['name', 'by name'], ['load', 'most loaded first'], ['seen', 'seen last first']] },
  ], paint);
  page.root.append(h('h1', {}, 'Agents'), filter.element, state, body);

  /** Notes an agent; the result says whether it shows something else than before. @param {string} key @param {any} a */
  const take = (key, a) => {
    const was = JSON.stringify(a), row = rows.get(key);
    if (row?.was === was) return false;
    const fresh = { key, was, a, state: stateOf(a), why: whyNotReady(a), text: [a.id, a.name, a.dialect, ...(a.capabilities ?? [])].join(' ').toLowerCase() };
    if (!row) rows.set(key, fresh);
    else {
      Object.assign(row, fresh);
      if (shown instanceof List) shown.changed(row);
    }
    return true;
  };
  let read = false;
  poll(2000, page.signal, async () => {
    const { agents } = await get('/v1/agents', page.signal);
    let changed = !read;
    read = true;
    const here = new Set();
    for (const a of agents) {
      here.add(a.id);
      changed = take(a.id, a) || changed;
      if (!a.refused) continue;
      here.add(a.id + '\n');
      changed = take(a.id + '\n', { id: a.id, name: '(of the settings)', child: a.refused, load: {} }) || changed;
    }
    for (const key of rows.keys()) if (!here.has(key)) changed = rows.delete(key) || changed;
    if (changed) paint(); // nothing moves under a reader without need
  }, (why) => {
    if (why.status) state.textContent = why.message;
  });
}

/** @param {Row} r */
const loadText = (r) => (r.a.max_concurrent ? (r.a.load?.active ?? 0) + ' of ' + r.a.max_concurrent : '');

/** The cells of one of many. @param {Row} r */
function brief(r) {
  return [h('a', { class: 'agent', href: address(r.a.id) }, r.a.id), stateShown(r.state), h('span', { class: 'at' }, loadText(r) + (r.a.load?.queued ? ', ' + count(r.a.load.queued) + ' queued' : '')),
    h('span', { class: 'kind' }, r.a.dialect), r.why ? h('span', { class: 'why' }, short(r.why, 200)) : h('span', { class: 'text' }, short((r.a.capabilities ?? []).join(', '), 80)), talkTo(r.a.id)];
}

/** The columns; on a narrow screen the spare ones are left out, which the page of an agent has. */
const COLUMNS = /** @type {[string, boolean][]} */ ([['Agent', false], ['State', false], ['Works on', false], ['Queued', true], ['Dialect', true], ['Capabilities', true], ['Since', true], ['Seen', true], ['Talk', false]]);

/** A table whose rows stay what they are while they are here. */
class Table {
  constructor() {
    this.body = h('tbody', {});
    /** @type {Map<Row, {was: string, tr: HTMLElement}>} */
    this.rows = new Map();
    this.element = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Agents' }, h('table', { class: 'roster' }, h('caption', { class: 'unseen' }, 'Agents'),
      h('thead', {}, h('tr', {}, COLUMNS.map(([t, spare]) => h('th', { scope: 'col', class: spare && 'spare' }, t)))), this.body));
  }

  /** @param {Row[]} rows */
  show(rows) {
    const wanted = new Set(rows), focus = document.activeElement;
    for (const [row, { tr }] of this.rows) {
      if (wanted.has(row)) continue;
      tr.remove();
      this.rows.delete(row);
    }
    /** @type {Element|null} */
    let at = this.body.firstElementChild;
    for (const row of rows) {
      const known = this.rows.get(row), tr = known?.tr ?? tableRow(row);
      if (known && known.was !== row.was) patch(tr, tableRow(row));
      this.rows.set(row, { was: row.was, tr });
      if (tr === at) at = at.nextElementSibling;
      else this.body.insertBefore(tr, at);
    }
    if (focus instanceof HTMLElement && focus !== document.activeElement && this.body.contains(focus)) focus.focus({ preventScroll: true }); // what moves loses it
  }
}

/** @param {Row} r */
function tableRow(r) {
  const a = r.a, queued = a.load?.queued ?? 0;
  return h('tr', {},
    h('th', { scope: 'row' }, h('a', { href: address(a.id) }, a.id), a.name && a.name !== a.id ? h('span', { class: 'hint' }, ' ' + a.name) : null),
    h('td', {}, stateShown(r.state), r.why ? h('div', { class: 'why' }, short(r.why, 300)) : null),
    h('td', {}, a.load?.active ? h('a', { href: '#/tasks?state=running&agent=' + encodeURIComponent(a.id) }, loadText(r)) : loadText(r)),
    h('td', { class: 'spare' }, count(queued)), h('td', { class: 'spare' }, a.dialect),
    h('td', { class: 'spare' }, short((a.capabilities ?? []).join(', '), 80)), h('td', { class: 'spare' }, time(a.since)), h('td', { class: 'spare' }, time(a.load?.last_seen)),
    h('td', {}, talkTo(a.id)));
}
