// Ask: any agent. The answer is then followed, steered and stopped where every task is.

import { h } from './dom.js';
import { Refusal, get, post } from './api.js';
import { optionFields } from './options.js';

/** @param {import('./app.js').Page} page */
export function show(page) {
  const note = h('p', { class: 'note', role: 'status' });
  const known = h('datalist', { id: 'known' });
  const to = /** @type {HTMLInputElement} */ (h('input', { id: 'to', list: 'known', required: true, value: page.query.get('to') ?? '', autocomplete: 'off', input: () => offer() }));
  const words = /** @type {HTMLTextAreaElement} */ (h('textarea', { id: 'words', rows: 6, required: true, keydown: (/** @type {KeyboardEvent} */ e) => {
    if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) form.requestSubmit();
  } }));
  const thread = /** @type {HTMLInputElement} */ (h('input', { id: 'thread', value: page.query.get('thread') ?? '', autocomplete: 'off' }));
  const set = h('div', { class: 'ask' });
  /** @type {Map<string, any>} */
  const metadata = new Map();
  let chosen = optionFields(undefined).chosen;
  const offer = () => {
    const { fields, chosen: now } = optionFields(metadata.get(to.value.trim()));
    chosen = now;
    set.replaceChildren(...fields);
  };
  const send = h('button', { type: 'submit' }, 'Ask');
  const form = /** @type {HTMLFormElement} */ (h('form', { class: 'ask', submit: async (/** @type {Event} */ e) => {
    e.preventDefault();
    send.setAttribute('disabled', '');
    note.textContent = 'Sending…';
    try {
      const r = await post('/v1/tasks', { to: to.value.trim(), content: words.value, options: chosen(), ...(thread.value.trim() ? { thread: thread.value.trim() } : {}) });
      location.hash = '#/tasks/' + encodeURIComponent(r.id);
    } catch (err) {
      if (!(err instanceof Refusal)) throw err;
      note.textContent = 'Refused: ' + err.message;
    } finally {
      send.removeAttribute('disabled');
    }
  } },
  h('label', { for: 'to' }, 'Whom'), to, known,
  h('label', { for: 'words' }, 'What'), words,
  h('label', { for: 'thread' }, 'Conversation'), thread, set,
  h('p', { class: 'hint' }, 'Whom: an agent, capability:a, domain:family.calendar, or * for any that is free. Ctrl+Enter sends. Without a conversation a new one begins.'),
  send, note));
  page.root.append(h('h1', {}, 'Ask'), form);
  get('/v1/agents', page.signal).then(({ agents }) => {
    for (const a of agents) {
      known.append(h('option', { value: a.id }, a.name ?? ''));
      metadata.set(a.id, a.metadata);
    }
    offer();
  }).catch((e) => {
    if (!(e instanceof Refusal) && !page.signal.aborted) throw e;
  });
}
