// Elements, and how times and sizes are written. Every text becomes a text node.

import { visible } from './letters.js';

/** @typedef {Node|string|number|null|undefined|false} Child */

/**
 * Makes an element. Of the attributes, a function is a listener, true an attribute without a
 * value; false and undefined are left out.
 * @param {string} tag
 * @param {Object<string, any>} [attributes]
 * @param {...(Child|Child[])} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  set(e, attributes);
  add(e, children);
  return e;
}

/**
 * Makes an element of SVG.
 * @param {string} tag
 * @param {Object<string, any>} [attributes]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes = {}, ...children) {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  set(e, attributes);
  add(e, children);
  return e;
}

/** @param {Element} e @param {Object<string, any>} attributes */
function set(e, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined || value === null) continue;
    if (typeof value === 'function') e.addEventListener(name, value);
    else e.setAttribute(name, value === true ? '' : String(value));
  }
}

/** @param {Element} e @param {any[]} children */
function add(e, children) {
  for (const c of children.flat()) {
    if (c === null || c === undefined || c === false) continue;
    e.append(c instanceof Node ? c : document.createTextNode(String(c)));
  }
}

/**
 * The element with an id of the document, which has it.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const e = document.getElementById(id);
  if (!e) throw new Error('the document has no #' + id);
  return e;
}

/** @param {string|Date|undefined} at @returns {string} the time of day */
export function clock(at) {
  if (!at) return '';
  const d = new Date(at);
  return isNaN(d.getTime()) ? String(at) : d.toLocaleTimeString('en-GB');
}

/** @param {string|undefined} at @returns {HTMLElement|string} the time of day, with the date as a hint */
export function time(at) {
  return at ? h('time', { datetime: at, title: new Date(at).toLocaleString() }, clock(at)) : '';
}

/** @param {string|undefined} at @returns {HTMLElement|string} the time of day, or the day where that is not today */
export function when(at) {
  if (!at) return '';
  const d = new Date(at), today = d.toDateString() === new Date().toDateString();
  return h('time', { datetime: at, title: d.toLocaleString() }, today ? d.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' }) : d.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' }));
}

/** @param {number} ms @returns {string} such as 1 min 20 s */
export function span(ms) {
  if (!isFinite(ms)) return '';
  if (ms < 0) ms = 0;
  if (ms < 1) return '< 1 ms';
  if (ms < 1000) return Math.round(ms) + ' ms';
  const s = ms / 1000;
  if (s < 10) return s.toFixed(1) + ' s';
  if (s < 60) return Math.round(s) + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' min ' + Math.floor(s % 60) + ' s';
  if (s < 86400) return Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
  return Math.floor(s / 86400) + ' d ' + Math.floor(s % 86400 / 3600) + ' h';
}

/** @param {number} n @returns {string} such as 1.5 MiB */
export function bytes(n) {
  if (n < 1024) return n + ' bytes';
  return n < 1 << 20 ? (n / 1024).toFixed(1) + ' KiB' : (n / (1 << 20)).toFixed(1) + ' MiB';
}

/** An amount, to a millionth. @param {{nanos: number, currency: string}} m @returns {string} such as 0.25 USD */
export function money(m) {
  return (m.nanos / 1e9).toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 6 }) + ' ' + m.currency;
}

/** @param {any} n @returns {string} */
export function count(n) {
  return typeof n === 'number' ? n.toLocaleString('en') : String(n ?? '');
}

/**
 * At most n letters of a text.
 * @param {any} text
 * @param {number} n
 */
export function short(text, n) {
  const s = String(text ?? '');
  return s.length > n ? s.slice(0, n - 1) + '…' : s;
}

/** The last letters of an id tell two tasks of one moment apart. @param {string} id */
export function shortId(id) {
  return id.length > 13 ? id.slice(0, 4) + '…' + id.slice(-6) : id;
}

/** Who somebody is, with a generated id made short. @param {any} who @returns {string} */
export function shortWho(who) {
  return String(who ?? '').replace(/[0-9a-f]{4}[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{6}([0-9a-f]{6})/g, '…$1');
}

/** @param {string} id @param {string} [text] */
export function taskLink(id, text) {
  return h('a', { href: '#/tasks/' + encodeURIComponent(id), title: id }, text ?? shortId(id));
}

const GENERATED = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A name that people chose for a conversation is shown whole. @param {string} id */
export function visibleId(id) {
  return GENERATED.test(id) ? shortId(id) : visible(id);
}

/** @param {string} id */
export function threadLink(id) {
  return h('a', { href: '#/conversations/' + encodeURIComponent(id), title: id }, visibleId(id));
}

/**
 * A table with a caption.
 * @param {string} caption
 * @param {string[]} heads
 * @param {Child[][]} rows
 * @param {boolean} [quiet] hides the caption where a heading says the same
 */
export function table(caption, heads, rows, quiet = false) {
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
    h('table', {}, h('caption', { class: quiet && 'unseen' }, caption),
      h('thead', {}, h('tr', {}, heads.map((t) => h('th', { scope: 'col' }, t)))),
      h('tbody', {}, rows.map((r) => h('tr', {}, r.map((c) => h('td', {}, c)))))));
}

/** Says something to those who listen to the page. @param {string} text */
export function say(text) {
  byId('news').textContent = text;
}

/**
 * Collects calls into one of the next repaint.
 * @param {() => void} paint
 * @returns {() => void}
 */
export function painter(paint) {
  let due = false, frame = 0, timer = 0;
  const run = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    due = false;
    paint();
  };
  return () => {
    if (due) return;
    due = true;
    frame = requestAnimationFrame(run);
    timer = setTimeout(run, 250); // a page in the background gets no frame, also if it goes there now
  };
}

/**
 * Makes an element like a fresh one in place, so that what has the focus, is open or pressed stays.
 * Children with a key (data-key) stay with it.
 * @param {Element} old
 * @param {Element} fresh
 */
export function patch(old, fresh) {
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && name !== 'open') old.removeAttribute(name);
  for (const { name, value } of [...fresh.attributes]) if (name !== 'open' && old.getAttribute(name) !== value) old.setAttribute(name, value);
  /** @param {Node} n */
  const key = (n) => (n instanceof Element ? n.getAttribute('data-key') : null);
  const keyed = new Map([...old.children].map((c) => [key(c), c]));
  keyed.delete(null);
  /** @type {Node|null} */
  let at = old.firstChild;
  for (const f of [...fresh.childNodes]) {
    while (at && key(at) !== null && key(at) !== key(f) && !fresh.querySelector(':scope > [data-key="' + CSS.escape(key(at) ?? '') + '"]')) {
      const gone = /** @type {ChildNode} */ (at);
      at = at.nextSibling;
      gone.remove();
    }
    const same = /** @type {Node|null|undefined} */ (key(f) === null ? (at && key(at) === null ? at : null) : keyed.get(key(f)));
    if (!same || same.nodeName !== f.nodeName) {
      old.insertBefore(f, at);
      if (same && same === at) {
        at = at?.nextSibling ?? null;
        /** @type {ChildNode} */ (same).remove();
      }
      continue;
    }
    if (same === at) at = at.nextSibling;
    else old.insertBefore(same, at);
    if (same instanceof Element) patch(same, /** @type {Element} */ (f));
    else if (same.nodeValue !== f.nodeValue) same.nodeValue = f.nodeValue;
  }
  while (at) {
    const gone = /** @type {ChildNode} */ (at);
    at = at.nextSibling;
    gone.remove();
  }
}
