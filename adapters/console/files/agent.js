// An agent: what it is, how loaded, and what the hub knows of it if it runs it.

import { clock, h, patch, say, short, time } from './dom.js';
import { visible } from './letters.js';
import { Refusal, get, poll, post, segment } from './api.js';

/** The states as a shape too: not everybody sees the colours. */
const SHAPES = /** @type {Object<string, string>} */ ({ idle: '○', busy: '●', overloaded: '▲', draining: '◐', ready: '○', starting: '◌', restarting: '↻', failed: '✕' });

/** The state of an agent: of one that the hub runs and that is not ready, why. @param {any} a @returns {string} */
export function stateOf(a) {
  return a.child && a.child.state !== 'ready' ? a.child.state : a.load?.state ?? 'idle';
}

/** @param {string} s */
export function stateShown(s) {
  return h('span', { class: 'is ' + s }, h('span', { 'aria-hidden': 'true' }, (SHAPES[s] ?? '·') + ' '), s);
}

/** Why an agent is not ready, in one line; '' for one that is. @param {any} a @returns {string} */
export function whyNotReady(a) {
  if (!a.child || a.child.state === 'ready') return '';
  const why = visible(String(a.child.last_error ?? '').replace(/\s+/g, ' ').trim());
  if (why || a.child.state !== 'failed') return why;
  return 'why is for those who may operate it (the right operate)';
}

/** @param {string} id */
export const address = (id) => '#/agents/' + encodeURIComponent(id);

/** A link that begins a conversation. @param {string} id */
export function talkTo(id) {
  return h('a', { class: 'talk-to', href: '#/new?to=' + encodeURIComponent(id) }, 'Talk', h('span', { class: 'unseen' }, ' to ' + id));
}

/** @param {any} v */
const written = (v) => visible(JSON.stringify(v, null, 2));

/** @param {import('./app.js').Page} page @param {string} id */
export function show(page, id) {
  const state = h('p', { class: 'state', role: 'status' }, 'Reading…');
  const body = h('div', {});
  page.root.append(h('h1', {}, 'Agent ' + id), state, body);
  page.title('Agent ' + id);
  let before = '';
  poll(2000, page.signal, async () => {
    const a = await get('/v1/agents/' + segment(id), page.signal);
    state.textContent = '';
    const text = JSON.stringify(a);
    if (text === before) return; // nothing moves under a reader without need
    before = text;
    patch(body, h('div', {}, detail(a)));
  }, (why) => {
    if (why.status) state.textContent = why.message;
  });
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
    ['State', stateShown(stateOf(a))], ['Why', whyNotReady(a)], ['Dialect', a.dialect], ['Model', a.model], ['Features', (a.features ?? []).join(', ')],
    ['Capabilities', (a.capabilities ?? []).join(', ')], ['Domains', (a.domains ?? []).join(', ')], ['Tools', (a.tools ?? []).join(', ')],
    ['Works on', (a.load?.active ?? 0) + ' of ' + a.max_concurrent], ['Queued', a.load?.queued ?? 0],
    ['Here since', time(a.since)], ['Seen', time(a.load?.last_seen)], ['Connected as', a.principal?.id],
  ]);
  return h('div', {},
    h('p', {}, talkTo(a.id), ' · ',
      h('a', { href: '#/tasks?agent=' + encodeURIComponent(a.id) }, 'Its tasks'), ' · ',
      h('a', { href: '#/live?agent=' + encodeURIComponent(a.id) }, 'Live')),
    h('dl', {}, rows.filter(([, v]) => v !== undefined && v !== '').map(([k, v]) => [h('dt', {}, k), h('dd', {}, v)]).flat()),
    a.vitals && [h('h2', {}, 'Vitals'), h('pre', { tabindex: 0 }, written(a.vitals))],
    a.metadata && [h('h2', {}, 'Metadata'), h('pre', { tabindex: 0 }, short(written(a.metadata), 20000))],
    a.child && [h('h2', {}, 'Started by the hub'), h('pre', { tabindex: 0 }, written(a.child)), restart, note]);
}
