// Task: its conversation, its timeline, its events and its frames, each with an address of its own.

import { bytes, count, h, painter, say, shortId, shortWho, span, threadLink, time } from './dom.js';
import { Refusal, follow, post, segment } from './api.js';
import { exports } from './export.js';
import { ENDS } from './events.js';
import { Model } from './model.js';
import { cardKeys } from './cards.js';
import { inbox } from './inbox.js';
import { timeline } from './timeline.js';
import { events } from './eventlist.js';
import { frames } from './frames.js';
import { Turn, cost } from './turn.js';

/**
 * A tab paints itself when the task has changed.
 * @typedef {{element: HTMLElement, paint: () => void, close?: () => void}} Tab
 */

/** @type {Object<string, (m: Model, id: string, signal: AbortSignal) => Tab>} */
const TABS = { conversation: said, timeline, events, frames };

/** What was said, as in its conversation. @param {Model} m @param {string} id @param {AbortSignal} signal @returns {Tab} */
function said(m, id, signal) {
  const turn = new Turn(id, 'running', { model: m });
  const closed = new AbortController(), clock = setInterval(() => turn.tick(), 1000);
  const close = () => {
    closed.abort();
    clearInterval(clock);
  };
  inbox.subscribe(() => turn.place(inbox.items), closed.signal);
  signal.addEventListener('abort', close);
  return { element: h('section', { 'aria-label': 'Conversation' }, turn.element), close, paint() {
    turn.paint();
    turn.place(inbox.items);
    if (turn.runs && m.asked > turn.told) inbox.now();
    turn.told = m.asked;
  } };
}

/** @param {import('./app.js').Page} page */
export function show(page) {
  const id = page.path[0] ?? '';
  page.title('Task ' + shortId(id));
  const model = new Model();
  const head = h('div', { class: 'head' });
  const state = h('p', { class: 'state', role: 'status' }, 'Reading…');
  const body = h('div', { class: 'tab' });
  const links = Object.keys(TABS).map((name) => h('a', { href: '#/tasks/' + encodeURIComponent(id) + (name === 'conversation' ? '' : '/' + name) }, name));
  page.root.append(h('h1', {}, 'Task ', h('code', {}, id)), head, h('nav', { class: 'tabs', 'aria-label': 'Parts of the task' }, links), state, body, steering(model, id), exports(model, id));

  /** @type {Tab|undefined} */
  let tab;
  let lostAt = '', ended = false;
  const paint = painter(() => {
    if (page.signal.aborted) return;
    facts(head, model);
    page.root.classList.toggle('ended', ended || ENDS.has(model.state));
    state.textContent = lostAt || (model.cut ? count(model.cut) + ' events are listed without their bodies: this page keeps ' + bytes(16 << 20) + ' of a task.' : '') +
      (!lostAt && model.unlisted ? ' ' + count(model.unlisted) + ' more are not listed.' : '');
    tab?.paint();
  });
  /** @param {string} name */
  const open = (name) => {
    tab?.close?.();
    tab = (TABS[name] ?? said)(model, id, page.signal);
    body.replaceChildren(tab.element);
    for (const a of links) {
      if (a.textContent === (TABS[name] ? name : 'conversation')) a.setAttribute('aria-current', 'page');
      else a.removeAttribute('aria-current');
    }
    paint();
  };
  page.signal.addEventListener('abort', () => tab?.close?.());
  page.keys = cardKeys(body);
  open(page.path[1] ?? 'conversation');

  follow('/v1/tasks/' + segment(id) + '/events', {
    signal: page.signal,
    open() {
      lostAt = '';
      state.textContent = '';
      paint();
    },
    cut() {
      lostAt = 'The connection was lost; what follows comes when the hub is back.';
      paint();
    },
    ended() {
      ended = true;
      lostAt = '';
      if (ENDS.has(model.state)) say('The task is ' + model.state);
      paint();
    },
    event(m) {
      if (m.event === 'gap') model.gap(m.data);
      else if (m.event !== 'shutdown') model.add(m.data, m.text);
      paint();
      return ENDS.has(m.event);
    },
  }).catch((e) => {
    if (!(e instanceof Refusal)) throw e;
    tab?.close?.();
    page.root.replaceChildren(h('h1', {}, 'Task ', h('code', {}, id)), h('p', { class: 'state', role: 'status' }, e.status === 404 ? 'There is no such task, or you may not read it.' : e.message));
  });

  return (/** @type {string[]} */ path) => {
    if (path[0] !== id) return false;
    open(path[1] ?? 'conversation');
    return true;
  };
}

/** @param {HTMLElement} head @param {Model} m */
function facts(head, m) {
  if (!m.opened) return;
  const r = m.opened.request ?? {};
  const from = Date.parse(m.attempts[0]?.at ?? m.lastAt) || 0;
  /** @type {[string, any][]} */
  const rows = [
    ['State', h('span', { class: 'is ' + m.state }, m.state)],
    ['From', shortWho(m.opened.from?.id) + (m.opened.from?.dialect ? ' (' + m.opened.from.dialect + ')' : '')],
    ['To', m.agent || (r.to ?? '')],
    ['Conversation', r.thread ? threadLink(r.thread) : ''],
    ['Began', time(m.lines[0]?.at)],
    ['Took', m.endAt ? span(Date.parse(m.endAt) - Date.parse(m.lines[0]?.at ?? m.endAt)) : from ? 'running' : 'queued'],
    ['Tokens', m.usage.input || m.usage.output ? count(m.usage.input) + ' in, ' + count(m.usage.output) + ' out' : ''],
    ['Cost', m.usage.currency ? cost(m.usage) : ''],
    ['Cause', r.cause ? h('a', { href: '#/tasks/' + encodeURIComponent(r.cause) }, shortId(r.cause)) : ''],
  ];
  const key = rows.map(([k, v]) => k + (v instanceof Node ? v.textContent : v)).join('|');
  if (head.dataset.key === key) return;
  head.dataset.key = key;
  head.replaceChildren(h('dl', { class: 'facts' }, rows.filter(([, v]) => v !== '').map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, v)))));
}

/** What can be said to a running task, and after it in its conversation. @param {Model} m @param {string} id */
function steering(m, id) {
  const note = h('p', { class: 'note', role: 'status' });
  const words = /** @type {HTMLInputElement} */ (h('input', { 'aria-label': 'What to tell the agent while it works', placeholder: 'tell the agent while it works' }));
  /** @param {() => Promise<string>} what */
  const act = async (what) => {
    note.textContent = 'Sending…';
    try {
      note.textContent = await what();
    } catch (e) {
      if (!(e instanceof Refusal)) throw e;
      note.textContent = 'Refused: ' + e.message;
    }
  };
  return h('div', { class: 'steering' },
    h('form', { class: 'running', submit: (/** @type {Event} */ e) => {
      e.preventDefault();
      if (words.value) act(async () => {
        const r = await post('/v1/tasks/' + segment(id) + '/inject?wait=true', { content: words.value });
        if (r.accepted === false) return 'The agent refused it' + (r.reason ? ': ' + r.reason : '.');
        words.value = '';
        return r.accepted ? 'The agent took it.' : 'The task ended first.';
      });
    } }, words, h('button', { type: 'submit' }, 'Tell'),
    h('button', { type: 'button', class: 'no', 'data-do': 'cancel', click: () => act(async () => {
      await post('/v1/tasks/' + segment(id) + '/cancel', {});
      return 'The agent was told to stop.';
    }) }, 'Cancel the task')),
    h('form', { class: 'after', submit: (/** @type {Event} */ e) => {
      e.preventDefault();
      location.hash = '#/conversations/' + encodeURIComponent(m.opened?.request?.thread ?? id);
    } }, h('button', { type: 'submit' }, 'Go on in its conversation'),
    h('button', { type: 'button', 'data-do': 'again', click: () => act(async () => {
      const r = await post('/v1/tasks', { again: id });
      location.hash = '#/tasks/' + segment(r.id);
      return 'It is asked again.';
    }) }, 'Ask again')), note);
}
