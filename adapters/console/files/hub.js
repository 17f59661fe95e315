// Hub: its health, what it counted, what dialects lost of each other, and its limits.

import { bytes, count, h, patch, span, table, time } from './dom.js';
import { get, poll } from './api.js';

/** @param {import('./app.js').Page} page */
export function show(page) {
  const state = h('p', { class: 'state', role: 'status' }, 'Reading…');
  const body = h('div', {});
  page.root.append(h('h1', {}, 'Hub'), state, body);
  let before = '';
  poll(2000, page.signal, async () => {
    const v = await get('/v1/hub', page.signal);
    state.textContent = '';
    const text = JSON.stringify(v);
    if (text === before) return;
    before = text;
    const counters = Object.entries(v.counters ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
    const between = /** @type {any[]} */ (v.losses ?? []);
    const dropped = counters.filter(([name]) => LOSS.test(name));
    const fresh = h('div', {},
      h('dl', { class: 'facts' }, /** @type {[string, any][]} */ ([
        ['Hub', v.id], ['Version', v.version], ['Agents', count(v.agents)], ['Running', count(v.tasks.running)], ['Queued', count(v.tasks.queued)],
        ['Journal', h('span', {}, h('span', { class: 'is ' + v.journal.state }, v.journal.state), ' ', v.journal.reason ?? '', ' ', time(v.journal.since))],
        ...Object.entries(v.addresses ?? {}),
      ]).map(([k, x]) => h('div', {}, h('dt', {}, k), h('dd', {}, x)))),
      counters.length ? '' : h('p', {}, 'What the hub counted is for those who may operate it.'),
      between.length ? table('Lost in translation', ['From', 'To', 'What', 'How', 'Times'], between.map((l) => [
        l.from, l.to, l.kind.replaceAll('_', ' '), h('span', { class: 'became ' + l.how, title: l.how === 'folded' ? 'told in other words' : 'it could not be said' }, l.how), count(l.times)])) :
        counters.length ? h('p', { class: 'state' }, 'Nothing was lost in translation in the tasks that have ended.') : '',
      dropped.length ? table('What else was folded, refused or ignored', ['Counter', 'Times'], dropped.map(([k, n]) => [k, count(n)])) : '',
      counters.length ? h('details', { id: 'counters', 'data-key': 'counters' }, h('summary', {}, 'All counters'), table('Counters', ['Counter', 'Times'], counters.map(([k, n]) => [k, count(n)]))) : '',
      h('details', { id: 'limits', 'data-key': 'limits' }, h('summary', {}, 'Limits in force'), table('Limits in force', ['Limit', 'Value'], Object.entries(v.limits).map(([k, n]) => [k.replace(/_ms$/, '').replaceAll('_', ' '), k.endsWith('_ms') ? span(n) : k.endsWith('bytes') ? bytes(n) : count(n)]))));
    patch(body, fresh);
  }, (why) => {
    if (why.status) state.textContent = why.message;
  });
}

/** The names of counters of what was not passed on as it was. */
const LOSS = /(^|\.)(folded|refused|ignored|dropped|lost|loss|cut)(\.|$)/;
