// Conversations: left the list of them, right the one that is read, or the box for a new one.

import { count, h, short, shortWho, visibleId, when } from './dom.js';
import { Refusal, get, poll } from './api.js';
import { Compose } from './compose.js';
import { conversation } from './conversation.js';
import { inbox } from './inbox.js';
import { visible } from './letters.js';
import { several } from './several.js';

const PAGE = 60; // conversations
const WAITING = 'waiting'; // the state of a conversation in which something waits for a person
const FOUND = 30; // turns that a search shows at once

/**
 * What a pane gets, beside what the page has.
 * @typedef {Object} Pane
 * @property {HTMLElement} root
 * @property {AbortSignal} signal ends with the pane
 * @property {boolean} fresh whether it was just begun by who looks on
 * @property {(take: (agents: any[]) => void) => void} agents tells of the agents that are here, as they are
 * @property {(title: string) => void} title
 * @property {(id: string) => string|undefined} titleOf the title of a conversation that is listed
 * @property {(take: (title: string) => void, id: string) => void} named tells of its title once it is listed
 * @property {() => void} asked something was asked: the list is read at once
 * @property {() => HTMLElement} back the way to the list where there is room for one of the two
 * @property {(id: string) => HTMLElement} actions what can be done with a conversation
 */

/** @param {import('./app.js').Page} page */
export function show(page) {
  const right = h('section', { class: 'pane', 'aria-label': 'The conversation' });
  const list = new Listed(page.signal);
  page.root.classList.add('talks');
  page.root.append(list.element, right);

  /** @type {any[]} */
  let agents = [];
  /** @type {Set<(all: any[]) => void>} */
  const takers = new Set();
  /** @type {AbortController|undefined} */
  let stop;
  page.signal.addEventListener('abort', () => stop?.abort());
  let fresh = false; // whether the conversation to be shown has just begun here
  /** @param {string} name @param {string[]} path @param {URLSearchParams} query */
  const open = (name, path, query) => {
    stop?.abort();
    stop = new AbortController();
    const signal = stop.signal;
    takers.clear();
    const id = name === 'conversations' ? path[0] ?? '' : '';
    page.root.classList.toggle('one', name !== 'conversations' || id !== '');
    list.mark(id);
    const root = h('div', { class: 'inside' });
    right.replaceChildren(root);
    /** @type {Pane} */
    const pane = {
      root, signal, fresh,
      agents(take) {
        takers.add(take);
        take(agents);
      },
      title: (t) => { if (!signal.aborted) page.title(t); },
      titleOf: (of) => list.titles.get(of),
      named(take, of) {
        const told = () => {
          const found = list.titles.get(of);
          if (found) take(found);
        };
        told();
        list.watch(told, signal);
      },
      asked() {
        fresh = true;
        list.now();
      },
      back: () => h('a', { class: 'back', href: '#/conversations' }, '← Conversations'),
      actions: (of) => h('a', { class: 'hint', href: '#/tasks?thread=' + encodeURIComponent(of) }, 'Its tasks'),
    };
    page.title(name === 'new' ? 'New conversation' : name === 'several' ? 'Answers side by side' : 'Conversations');
    fresh = false;
    page.keys = (name === 'several' ? several(pane, path) : id ? conversation(pane, id, path[1] ?? '') : begin(pane, query)) ?? {};
  };
  open(page.name, page.path, page.query);
  // What stands around it is read once the conversation has been asked for.
  poll(4000, page.signal, async () => {
    agents = (await get('/v1/agents', page.signal)).agents;
    for (const take of takers) take(agents);
  }, () => {});
  list.start();
  return (/** @type {string[]} */ path, /** @type {URLSearchParams} */ query, /** @type {string} */ name) => {
    open(name, path, query);
    return true;
  };
}

/** A new conversation. @param {Pane} pane @param {URLSearchParams} query */
function begin(pane, query) {
  const branch = query.get('branch') ?? '';
  const compose = new Compose({
    first: !branch, branch: () => branch || undefined, to: query.get('to') ?? undefined,
    sent: (asked) => {
      pane.asked();
      if (pane.signal.aborted) return;
      const one = asked.length === 1 ? asked[0] : undefined;
      location.hash = one ? '#/conversations/' + encodeURIComponent(one.thread) : '#/several/' + asked.map((a) => encodeURIComponent(a.id)).join('/');
    },
  });
  const hint = h('p', { class: 'state' });
  pane.root.append(h('div', { class: 'top' }, pane.back(), h('h1', {}, branch ? 'New branch' : 'New conversation')), hint, compose.element);
  pane.agents((all) => {
    hint.replaceChildren(...(branch ? ['It begins with all that was said until then. The conversation that it comes from stays as it is.'] :
      all.length ? ['Ask any of ' + (all.length === 1 ? 'the one agent that is' : count(all.length) + ' agents that are') + ' here. An answer can be followed, steered and stopped.'] :
        ['No agent is here yet. Add one with ', h('code', {}, 'dragoman add claude'), ', or look at ', h('a', { href: '#/agents' }, 'Agents'), '.']));
    compose.know(all);
  });
  if (innerWidth > 640) compose.words.focus({ preventScroll: true });
}

/** The list of conversations, and the search in what was said. */
class Listed {
  /** @param {AbortSignal} signal */
  constructor(signal) {
    this.signal = signal;
    this.state = h('p', { class: 'state', role: 'status' }, 'Reading…');
    this.items = h('ol', { class: 'talk-list' });
    this.more = h('button', { type: 'button', hidden: true, click: () => this.older() }, 'Show older ones');
    this.field = /** @type {HTMLInputElement} */ (h('input', { type: 'search', 'aria-label': 'Search in what was said', placeholder: 'Search', input: () => this.search() }));
    this.only = /** @type {HTMLSelectElement} */ (h('select', { 'aria-label': 'Which conversations', change: () => { this.pages = 1; this.now(); } },
      [['', 'all'], [WAITING, 'waiting for you'], ['running', 'running'], ['queued', 'queued'], ['failed', 'failed'], ['done', 'done'], ['cancelled', 'cancelled']].map(([value, words]) => h('option', { value }, words))));
    this.element = h('nav', { class: 'side', 'aria-label': 'Conversations' },
      h('div', { class: 'act' }, h('a', { class: 'button', href: '#/new' }, 'New conversation'), this.only), h('form', { role: 'search', submit: (/** @type {Event} */ e) => e.preventDefault() }, this.field), this.state, this.items, this.more);
    /** @type {Map<string, string>} */
    this.titles = new Map();
    /** @type {Set<() => void>} */
    this.watchers = new Set();
    /** @type {any[]} */
    this.all = [];
    this.pages = 1;
    this.open = '';
    this.text = '';
    this.was = '';
    inbox.subscribe(() => this.paint(), signal);
  }

  /** Reads it again and again. */
  start() {
    poll(3000, this.signal, () => this.read(), (why) => {
      if (!why.status) return;
      this.state.textContent = why.message;
      this.was = '';
    });
  }

  /** @param {() => void} watcher @param {AbortSignal} signal */
  watch(watcher, signal) {
    this.watchers.add(watcher);
    signal.addEventListener('abort', () => this.watchers.delete(watcher));
  }

  now() {
    this.read().catch((e) => {
      if (!(e instanceof Refusal) && !this.signal.aborted) throw e;
    });
  }

  older() {
    this.pages++;
    this.now();
  }

  async read() {
    if (this.text) return;
    /** @type {any[]} */
    let all = [];
    let before = '';
    for (let i = 0; i < this.pages; i++) {
      const q = new URLSearchParams({ limit: String(PAGE), ...(before ? { before } : {}), ...(this.only.value && this.only.value !== WAITING ? { state: this.only.value } : {}) });
      const r = await get('/v1/threads?' + q, this.signal);
      all = all.concat(r.threads);
      before = r.before ?? '';
      if (!before) break;
    }
    if (this.text) return;
    this.all = all;
    this.more.hidden = !before;
    for (const t of all) this.titles.set(t.id, t.title || visibleId(t.id));
    this.paint();
    for (const watcher of this.watchers) watcher();
  }

  /** @param {string} id of the conversation that is read */
  mark(id) {
    this.open = id;
    for (const a of this.items.querySelectorAll('a')) {
      if (a.getAttribute('data-id') === id && !a.hasAttribute('data-found')) a.setAttribute('aria-current', 'page');
      else a.removeAttribute('aria-current');
    }
  }

  paint() {
    if (this.text) return;
    const waits = new Set(inbox.items.flatMap((i) => i.approval ? [i.approval.thread] : i.question?.tasks ?? []));
    const now = JSON.stringify([this.all, [...waits], this.only.value]);
    if (now === this.was) return;
    this.was = now;
    /** @param {any} t */
    const waiting = (t) => waits.has(t.id) || waits.has(t.task);
    const all = this.only.value === WAITING ? this.all.filter(waiting) : this.all;
    this.state.textContent = all.length ? '' : this.only.value ? 'None is ' + (this.only.value === WAITING ? 'waiting for you' : this.only.value) + '.' : 'No conversation yet. Ask something: it begins one.';
    const focused = document.activeElement?.closest('.talk-list a')?.getAttribute('data-id');
    this.items.replaceChildren(...all.map((t) => {
      const state = waiting(t) ? 'waiting' : t.state;
      return h('li', {}, h('a', { href: '#/conversations/' + encodeURIComponent(t.id), 'data-id': t.id, title: t.id },
        h('span', { class: 'title' }, visible(t.title || visibleId(t.id))),
        h('span', { class: 'hint' }, h('span', { class: 'is ' + state }, state === 'waiting' ? 'waiting for you' : state), ' · ', (t.agents ?? []).map(shortWho).join(', ') || 'no agent', ' · ', when(t.opened_at))));
    }));
    this.mark(this.open);
    if (focused) /** @type {HTMLElement|null} */ (this.items.querySelector('a[data-id="' + CSS.escape(focused) + '"]'))?.focus({ preventScroll: true });
  }

  /** Searches once nobody writes on. */
  search() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.find(this.field.value.trim(), ''), 250);
  }

  /** @param {string} text @param {string} before the next page of what was found; '' for the first */
  async find(text, before) {
    const anew = !before;
    if (anew && text === this.text) return;
    this.text = text;
    this.was = '';
    if (!text) return this.now();
    if (anew) {
      this.items.replaceChildren();
      this.more.hidden = true;
    }
    this.state.textContent = 'Searching…';
    try {
      const r = await get('/v1/tasks?' + new URLSearchParams({ text, limit: String(FOUND), ...(before ? { before } : {}) }), this.signal);
      if (this.text !== text) return;
      this.items.append(...r.tasks.filter((/** @type {any} */ t) => t.thread).map((/** @type {any} */ t) => h('li', {}, h('a', {
        href: '#/conversations/' + encodeURIComponent(t.thread) + '/' + encodeURIComponent(t.id), 'data-id': t.thread, 'data-found': true,
      }, h('span', { class: 'title' }, around(t.found || t.content, text)), h('span', { class: 'hint' }, t.state, ' · ', shortWho(t.agent || t.to), ' · ', when(t.opened_at))))));
      const n = this.items.children.length;
      this.state.textContent = n ? count(n) + (n === 1 ? ' turn' : ' turns') + (r.before ? ' so far.' : '.') : r.before ? 'Nothing among the latest.' : 'Nothing was found.';
      this.state.append(...(r.before ? [' ', h('button', { type: 'button', class: 'link', click: () => this.find(text, r.before) }, 'Search on')] : []));
    } catch (e) {
      if (this.signal.aborted) return;
      if (!(e instanceof Refusal)) throw e;
      if (this.text === text) this.state.textContent = e.message;
    }
  }
}

/** What was found, with the words marked. @param {string} found @param {string} text */
function around(found, text) {
  const whole = short(found, 240), at = whole.toLowerCase().indexOf(text.toLowerCase());
  if (at < 0) return [visible(whole)];
  return [visible(whole.slice(0, at)), h('mark', {}, visible(whole.slice(at, at + text.length))), visible(whole.slice(at + text.length))];
}
