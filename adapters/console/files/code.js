// Code: its words coloured, and a button that copies it.

import { h, short } from './dom.js';
import { block, visible } from './letters.js';
import { languages, StringStream } from './vendor.js';

const COLOURED = 50000; // letters; longer code stays plain
const LINE = 1000; // letters; a longer line stays plain
const TIME = 10; // ms that colours may take

/**
 * A block of code, with its language and a button that copies what is seen. A language that is
 * not known leaves it plain.
 * @param {string} text
 * @param {string} [language]
 * @returns {HTMLElement}
 */
export function code(text, language = '') {
  const whole = visible(text), name = visible(short(language.trim().split(/\s/)[0], 40));
  const label = name ? 'Code in ' + name : 'Code';
  const words = h('code', {}, coloured(whole, name));
  // What is copied is read from the page, since a growing message gives an old block new text.
  const copy = h('button', { type: 'button', class: 'copy', click: async () => {
    const done = await copied(whole.length > COLOURED ? whole : words.textContent ?? '', words);
    copy.textContent = done ? 'Copied' : 'Selected';
  } }, 'Copy');
  return h('div', { class: 'code' }, h('div', { class: 'bar' }, h('span', {}, name), copy),
    whole.length > COLOURED ? block(text, label) : h('pre', { tabindex: 0, role: 'group', 'aria-label': label }, words));
}

/**
 * Copies a text; selects it in the page where the browser does not let it, as without TLS on
 * another machine.
 * @param {string} text
 * @param {Node} element
 */
export async function copied(text, element) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection()?.selectAllChildren(element);
    return false;
  }
}

/** The colour of each kind of word. */
const KINDS = new Map(Object.entries({
  keyword: 'word', atom: 'word', bool: 'word', meta: 'word', builtin: 'word', modifier: 'word', self: 'word',
  string: 'text', 'string-2': 'text', number: 'text', regexp: 'text', inserted: 'text', positive: 'text',
  def: 'name', type: 'name', typeName: 'name', tag: 'name', tagName: 'name', attribute: 'name', attributeName: 'name', property: 'name', propertyName: 'name', deleted: 'name', negative: 'name',
  comment: 'quiet', header: 'quiet', documentMeta: 'quiet',
}));

/**
 * The words of code in their colours, line by line: for some time, after which the rest stays plain.
 * @param {string} text
 * @param {string} language
 * @returns {Node[]}
 */
function coloured(text, language) {
  const parser = /** @type {any} */ (languages.get(language.toLowerCase()));
  if (text.length > COLOURED || !parser) return [document.createTextNode(text)];
  const until = performance.now() + TIME;
  /** @type {Node[]} */
  const nodes = [];
  let plain = '', at = 0;
  /** @param {string} word @param {string|undefined} kind */
  const add = (word, kind) => {
    if (!kind) {
      plain += word;
      return;
    }
    if (plain) nodes.push(document.createTextNode(plain));
    plain = '';
    nodes.push(h('span', { class: 'hl-' + kind }, word));
  };
  try {
    const state = parser.startState?.(2) ?? {};
    while (at < text.length && performance.now() < until) {
      const end = (text.indexOf('\n', at) + 1 || text.length + 1) - 1;
      const words = line(parser, state, text.slice(at, end));
      for (const [word, kind] of words) add(word, kind);
      if (end < text.length) plain += '\n';
      at = end + 1;
    }
  } catch {
    // The tokenizer has failed at this line: it stays plain, as do those that follow.
  }
  return [...nodes, document.createTextNode(plain + text.slice(at))];
}

/** @param {any} parser @param {any} state @param {string} text @returns {[string, string|undefined][]} its words, and their colours */
function line(parser, state, text) {
  if (text === '') parser.blankLine?.(state, 2);
  if (text.length > LINE) return [[text, undefined]];
  /** @type {[string, string|undefined][]} */
  const words = [];
  const stream = new StringStream(text, 2, 2);
  for (let idle = 0; !stream.eol() && idle < 10; idle++) {
    stream.start = stream.pos;
    const kind = parser.token(stream, state) ?? '';
    if (stream.pos === stream.start) continue;
    idle = 0;
    words.push([text.slice(stream.start, stream.pos), KINDS.get(kind) ?? KINDS.get(kind.split(/[. ]/)[0])]);
  }
  words.push([text.slice(stream.pos), undefined]);
  return words;
}
