// Texts of others: letters that deceive are shown as their number, and words are found again.

import { count, h } from './dom.js';

const WHOLE = 20000; // letters of a text that are shown at once

/**
 * Letters that reorder or hide others are written as their number: what is approved must be what
 * is read.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (c) => '⟨U+' + (c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0') + '⟩');
}

/** @param {string} text @param {string} label */
export function block(text, label) {
  const whole = visible(text);
  const pre = h('pre', { tabindex: 0, role: 'group', 'aria-label': label }, whole.slice(0, WHOLE));
  if (whole.length <= WHOLE) return pre;
  const more = h('button', { type: 'button', click: () => { pre.textContent = whole; more.remove(); } },
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
