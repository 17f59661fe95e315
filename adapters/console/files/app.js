// The page: which view is shown, what every view shares, and the keyboard.

import { byId, clock, h } from './dom.js';
import { forgetToken, hasToken, keepToken, listeners } from './api.js';
import { inbox } from './inbox.js';
import { start } from './notices.js';
import * as waiting from './waiting.js';
import * as agents from './agents.js';
import * as live from './live.js';
import * as tasks from './tasks.js';
import * as task from './task.js';
import * as conversations from './conversations.js';
import * as usage from './usage.js';
import * as hub from './hub.js';

/**
 * What a view gets.
 * @typedef {Object} Page
 * @property {HTMLElement} root where it shows itself
 * @property {string} name by which the address calls the view
 * @property {string[]} path the parts of the address after the view
 * @property {URLSearchParams} query
 * @property {AbortSignal} signal ends with the view
 * @property {(text: string) => void} title
 * @property {(query: Object<string, string>) => void} address writes the query of the address
 * @property {Object<string, () => void>} keys what letters do in this view
 */

/**
 * A view that can show another address of itself returns how; the result says whether it did.
 * @typedef {{show: (page: Page) => void|((path: string[], query: URLSearchParams, name: string) => boolean)}} View
 */

/** In the order of the navigation; also are other names of a view. @type {{name: string, label: string, view: View, also?: string[]}[]} */
const views = [
  { name: 'conversations', label: 'Conversations', view: conversations, also: ['new', 'several'] },
  { name: 'waiting', label: 'Waiting', view: waiting },
  { name: 'agents', label: 'Agents', view: agents },
  { name: 'tasks', label: 'Tasks', view: { show: (p) => (p.path[0] ? task : tasks).show(p) } },
  { name: 'live', label: 'Live', view: live },
  { name: 'usage', label: 'Usage', view: usage },
  { name: 'hub', label: 'Hub', view: hub },
];

/** @type {{name: string, page: Page, stop: AbortController, move: any}|undefined} */
let shown;
let title = '';

/** @returns {{name: string, path: string[], query: URLSearchParams}} */
function address() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  const [name, ...rest] = (path ?? '').split('/').map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { name: name || 'conversations', path: rest.filter(Boolean), query: new URLSearchParams(query ?? '') };
}

/** @param {boolean} again shows the view again even if it could move */
function route(again = false) {
  const at = address();
  const found = views.find((v) => v.name === at.name || v.also?.includes(at.name));
  const name = found?.name ?? at.name;
  if (!again && shown?.name === name && shown.move?.(at.path, at.query, at.name)) return;
  shown?.stop.abort();
  const stop = new AbortController();
  const root = h('div', { class: 'view ' + (found?.name ?? 'nothing') });
  /** @type {Page} */
  const page = {
    root, name: at.name, path: at.path, query: at.query, signal: stop.signal, keys: {},
    title(text) {
      title = text;
      writeTitle();
    },
    address(query) {
      const q = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== '')).toString();
      history.replaceState(null, '', '#' + [at.name, ...address().path].map((p) => '/' + encodeURIComponent(p)).join('') + (q ? '?' + q : ''));
    },
  };
  shown = { name, page, stop, move: undefined };
  page.title(found?.label ?? 'Nothing here');
  for (const link of document.querySelectorAll('#views a')) {
    if (link.getAttribute('data-view') === name) {
      link.setAttribute('aria-current', 'page');
      link.scrollIntoView({ inline: 'nearest', block: 'nearest' }); // on a narrow screen
    } else link.removeAttribute('aria-current');
  }
  const main = byId('main');
  main.replaceChildren(root);
  if (found) shown.move = found.view.show(page);
  else root.append(h('h1', {}, 'Nothing here'), h('p', {}, 'The console has no view ' + at.name + '. ', h('a', { href: '#/conversations' }, 'Back to the conversations')));
  if (!root.contains(document.activeElement)) main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

function writeTitle() {
  const n = inbox.due.length;
  document.title = (n ? '(' + n + ') ' : '') + title + ' · Dragoman';
}

/** Writes how many wait beside the view of those. */
function writeBadge() {
  writeTitle();
  const n = inbox.due.length;
  const badge = byId('badge');
  badge.textContent = n ? String(n) : '';
}

/** @type {Date|undefined} */
let reachedAt;
let lost = false;
listeners.connection = (reached) => {
  if (reached) reachedAt = new Date();
  if (reached !== lost) return;
  lost = !reached;
  const bar = byId('connection');
  document.documentElement.classList.toggle('lost', lost);
  bar.textContent = lost ? 'Connection lost. What you see is as of ' + clock(reachedAt ?? new Date()) + '.' : '';
};

/** @type {Map<string, string[]>} the hubs of the cluster that did not answer, by the list that misses them */
const missing = new Map();
listeners.missing = (path, hubs) => {
  missing.set(path, hubs);
  const all = [...new Set([...missing.values()].flat())].sort();
  const text = all.length ? 'Without what only these hubs know, which do not answer: ' + all.join(', ') + '.' : '';
  if (byId('missing').textContent !== text) byId('missing').textContent = text;
};

listeners.unauthenticated = (why) => {
  const login = /** @type {HTMLDialogElement} */ (byId('login'));
  if (login.open) return;
  byId('login-why').textContent = why;
  login.showModal();
};

byId('login-form').addEventListener('submit', (e) => {
  e.preventDefault();
  const field = /** @type {HTMLInputElement} */ (byId('token'));
  keepToken(field.value.trim());
  field.value = '';
  /** @type {HTMLDialogElement} */ (byId('login')).close();
  byId('forget').hidden = false;
  inbox.restart();
  route(true);
});
// Without a credential there is nothing to see.
byId('login').addEventListener('cancel', (e) => e.preventDefault());

byId('forget').addEventListener('click', () => {
  forgetToken();
  location.reload();
});
byId('forget').hidden = !hasToken();
byId('skip').addEventListener('click', (e) => {
  e.preventDefault();
  byId('main').focus();
});

const SHORTCUTS = [
  ...views.map((v, i) => [String(i + 1), v.label]),
  ['j, k', 'Next and previous of what waits'],
  ['e', 'Conversation: to the end, where one writes'],
  ['a, d', 'Approve or deny the tool call that has the focus'],
  ['n', 'Not now: put off what has the focus until it changes'],
  ['p', 'Live: pause or resume'],
  ['/', 'To the first filter or field of the view'],
  ['Esc', 'Out of a field, so that letters are shortcuts again'],
  ['?', 'This list'],
];
const KEYS = 'dragoman.keys';
const keysOn = /** @type {HTMLInputElement} */ (byId('keys-on'));
keysOn.checked = localStorage.getItem(KEYS) !== 'off';
keysOn.addEventListener('change', () => localStorage.setItem(KEYS, keysOn.checked ? 'on' : 'off'));
for (const [key, what] of SHORTCUTS) byId('shortcuts').append(h('dt', {}, h('kbd', {}, key)), h('dd', {}, what));

function help() {
  const dialog = /** @type {HTMLDialogElement} */ (byId('help'));
  if (!dialog.open) dialog.showModal();
}
byId('keys').addEventListener('click', help);

document.addEventListener('keydown', (e) => {
  const at = /** @type {Element} */ (e.target);
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || !keysOn.checked) return;
  if (at.closest('input, textarea, select, dialog[open]')) {
    if (e.key === 'Escape' && !at.closest('dialog')) byId('main').focus();
    return;
  }
  const view = views[Number(e.key) - 1];
  if (view) location.hash = '#/' + view.name;
  else if (e.key === '?') help();
  else if (e.key === '/') /** @type {HTMLElement|null} */ ((byId('main').querySelector('input:not([type=radio], [type=checkbox]), textarea') ?? byId('main').querySelector('select')))?.focus();
  else if (shown?.page.keys[e.key]) shown.page.keys[e.key]?.();
  else return;
  e.preventDefault();
});

for (const [i, v] of views.entries()) {
  byId('views').append(h('li', {}, h('a', { href: '#/' + v.name, 'data-view': v.name, title: 'key ' + (i + 1) },
    v.label, v.name === 'waiting' && h('span', { id: 'badge', class: 'badge' }))));
}
window.addEventListener('hashchange', () => route());
inbox.subscribe(writeBadge);
start(inbox);
route();
inbox.start();
