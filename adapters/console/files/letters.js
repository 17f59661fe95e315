// Texts of others: letters that deceive are shown as their number, and words are found again.

import { count, h } from './dom.js';

const WHOLE = 20000; // letters of a text that are shown at once

const HIDDEN = '[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Variation_Selector}\\p{Default_Ignorable_Code_Point}\\u2800]';
const hidden = new RegExp('(?![\\n\\t])' + HIDDEN, 'gu'), isHidden = new RegExp('^' + HIDDEN, 'u');
const joinless = /^[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}]/u;

/**
 * Letters that reorder or hide others, or are not seen, are written as their number: what is
 * approved must be what is read. The commands of the program have the same rule.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(hidden, (c, at) => (joins(before(text, at), c) ? c : '⟨U+' + (c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0') + '⟩'));
}

/** The letter before a place. @param {string} text @param {number} at */
function before(text, at) {
  const low = at > 0 ? text.charCodeAt(at - 1) : 0;
  return at === 0 ? '' : low >= 0xdc00 && low < 0xe000 && at > 1 ? text.slice(at - 2, at) : text.slice(at - 1, at);
}

/** Whether a letter that is not seen itself belongs to the one before, as in an emoji. @param {string} b @param {string} c */
function joins(b, c) {
  const seen = b !== '' && !isHidden.test(b);
  if (c === '\ufe0e' || c === '\ufe0f') return seen && (b >= '\x80' || /[0-9#*]/.test(b));
  if (c === '\u200c' || c === '\u200d') return b === '\ufe0f' || seen && b >= '\x80' && !joinless.test(b);
  return false;
}

/**
 * JSON with an indentation, and otherwise letter by letter what it was: numbers and members that
 * appear twice too. What is no object and no array is returned as it is.
 * @param {string} text
 */
export function indent(text) {
  if (text.length > 200000) return text;
  try {
    const v = JSON.parse(text);
    if (typeof v !== 'object' || v === null) return text;
  } catch {
    return text;
  }
  let out = '', depth = 0;
  const line = () => '\n' + '  '.repeat(depth);
  for (let i = 0; i < text.length; i++) {
    const c = text[i] ?? '';
    if (c === '"') {
      const end = endOfString(text, i);
      out += text.slice(i, end);
      i = end - 1;
    } else if (c === '{' || c === '[') {
      const next = /[^ \t\r\n]/g;
      next.lastIndex = i + 1;
      const inner = next.exec(text);
      if (inner && (inner[0] === '}' || inner[0] === ']')) {
        out += c + inner[0];
        i = inner.index;
      } else {
        depth++;
        out += c + line();
      }
    } else if (c === '}' || c === ']') {
      depth--;
      out += line() + c;
    } else if (c === ',') out += c + line();
    else if (c === ':') out += ': ';
    else if (!/[ \t\r\n]/.test(c)) out += c;
  }
  return out;
}

/** Where a string of JSON ends that begins at a quote. @param {string} text @param {number} at */
function endOfString(text, at) {
  for (at++; at < text.length && text[at] !== '"'; at++) if (text[at] === '\\') at++;
  return at + 1;
}

/**
 * The texts of the values in an object or an array of JSON, as they are written.
 * @param {string} text that is JSON
 * @returns {Map<string|number, string>} by name, or by index
 */
export function values(text) {
  const found = new Map();
  let at = text.search(/[{[]/) + 1, n = 0;
  const named = text[at - 1] === '{';
  if (at === 0) return found;
  for (;;) {
    while (/[ \t\r\n,]/.test(text[at] ?? '')) at++;
    if (at >= text.length || text[at] === '}' || text[at] === ']') return found;
    /** @type {string|number} */
    let name = n++;
    if (named) {
      const end = endOfString(text, at);
      name = JSON.parse(text.slice(at, end));
      at = text.indexOf(':', end) + 1;
      while (/[ \t\r\n]/.test(text[at] ?? '')) at++;
    }
    const begin = at;
    for (let depth = 0; at < text.length; at++) {
      const c = text[at] ?? '';
      if (c === '"') at = endOfString(text, at) - 1;
      else if (c === '{' || c === '[') depth++;
      else if ((c === '}' || c === ']' || c === ',') && depth === 0) break;
      else if (c === '}' || c === ']') depth--;
    }
    found.set(name, text.slice(begin, at).trimEnd());
  }
}

/**
 * The text of a value in JSON, by the names on the way to it; undefined if there is none.
 * @param {string} text
 * @param {...(string|number)} path
 * @returns {string|undefined}
 */
export function textOf(text, ...path) {
  /** @type {string|undefined} */
  let t = text;
  for (const name of path) t = t === undefined ? undefined : values(t).get(name);
  return t;
}

/**
 * A text, of which the beginning is shown until somebody asks for the rest.
 * @param {string} text
 * @param {string} label
 * @param {() => void} [all] is called once all of it is shown
 */
export function block(text, label, all = () => {}) {
  const whole = visible(text);
  const pre = h('pre', { tabindex: 0, role: 'group', 'aria-label': label }, whole.slice(0, WHOLE));
  if (whole.length <= WHOLE) {
    all();
    return pre;
  }
  const more = h('button', { type: 'button', 'data-do': 'whole', click: () => { pre.textContent = whole; more.remove(); all(); } },
    count(whole.length - WHOLE) + ' more letters: show all');
  return h('div', {}, pre, more);
}

/**
 * A text, with the words marked where it has them, as they are or as JSON writes them. The result
 * has one node if it has not.
 * @param {string} text
 * @param {string} words
 * @returns {Node[]}
 */
export function marked(text, words) {
  const cut = text.length > WHOLE;
  const seen = cut ? text.slice(0, WHOLE) : text;
  const rest = cut ? '\n… ' + count(text.length - WHOLE) + ' more letters: copy has them all' : '';
  /** @param {number} at @param {number} length */
  const split = (at, length) => [document.createTextNode(visible(seen.slice(0, at))), h('mark', {}, visible(seen.slice(at, at + length))),
    document.createTextNode(visible(seen.slice(at + length)) + rest)];
  const some = words.slice(0, 2000);
  for (const w of words.trim().length > 1 ? [JSON.stringify(some).slice(1, -1), some] : []) {
    const at = seen.indexOf(w);
    if (at >= 0) return split(at, w.length);
  }
  // A dialect may tell them in pieces: the longest piece.
  let best = { at: 0, length: 0 };
  for (const m of seen.matchAll(/: "((?:[^"\\]|\\.){2,})"/g)) {
    const piece = m[1] ?? '';
    if (piece.length > best.length && JSON.stringify(words).includes(piece)) best = { at: m.index + 3, length: piece.length };
  }
  if (best.length) return split(best.at, best.length);
  return [document.createTextNode(visible(seen) + rest)];
}
