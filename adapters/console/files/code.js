// Code: its words coloured, and a button that copies it.

import { h, short } from './dom.js';
import { block, visible } from './letters.js';
import { hljs } from './vendor.js';

const COLOURED = 50000; // letters; longer code stays plain

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
async function copied(text, element) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection()?.selectAllChildren(element);
    return false;
  }
}

/** @param {string} text @param {string} language @returns {Node[]} */
function coloured(text, language) {
  const plain = [document.createTextNode(text)];
  if (text.length > COLOURED || !hljs.getLanguage(language)) return plain;
  const found = hljs.highlight(text, { language, ignoreIllegals: true });
  // The tree of words, not the HTML that is made of it: nothing here becomes markup.
  return found._emitter ? found._emitter.rootNode.children.map(node) : plain;
}

/** @param {any} n a text, or an object with children @returns {Node} */
function node(n) {
  if (typeof n === 'string') return document.createTextNode(n);
  return h('span', { class: n.scope && 'hl-' + n.scope.split('.')[0] }, n.children.map(node));
}
