// What changes in a file: lines that go, come and stay.

import { count, h } from './dom.js';
import { visible } from './letters.js';
import { diffLines } from './vendor.js';

const NEAR = 3; // unchanged lines that are shown beside what changes
const FOLDED = 10; // unchanged lines, from which on those between are folded
const WHOLE = 20000; // letters that are shown at once

/**
 * Lines of one kind: '+' comes, '-' goes, ' ' stays, '@' is said about them.
 * @typedef {{mark: string, lines: string[]}} Run
 */

/** Whether a text has a diff in the unified format, or a patch as Codex writes it. @param {string} text */
export function isDiff(text) {
  return /^(?:--- .*\n\+\+\+ .*\n@@ |@@ -\d+(?:,\d+)? \+\d|\*\*\* Begin Patch\s*$)/m.test(text);
}

/**
 * What has changed between two texts.
 * @param {string} before
 * @param {string} after
 * @returns {Run[]}
 */
export function changed(before, after) {
  const parts = diffLines(before, after, { maxEditLength: 2000, timeout: 30 });
  if (!parts) return [run('-', before), run('+', after)];
  return parts.map((/** @type {any} */ p) => run(p.added ? '+' : p.removed ? '-' : ' ', p.value));
}

/** @param {string} mark @param {string} text @returns {Run} */
export function run(mark, text) {
  if (text === '') return { mark, lines: [] };
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  else lines.push('\\ no line break at the end');
  return { mark, lines };
}

/**
 * The lines of a diff in the unified format, or of a patch as Codex writes it.
 * @param {string} text
 * @returns {Run[]}
 */
export function unified(text) {
  /** @type {Run[]} */
  const runs = [];
  let goes = 0, comes = 0; // lines that are to come in this hunk
  for (const line of text.replace(/\n$/, '').split('\n')) {
    let mark = '@';
    if (goes === Infinity ? /^(@@|\*\*\* |diff )/.test(line) : goes <= 0 && comes <= 0) [goes, comes] = announced(line);
    else if (line[0] !== '\\') {
      mark = line[0] === '+' || line[0] === '-' ? line[0] : ' ';
      if (mark !== '+') goes--;
      if (mark !== '-') comes--;
    }
    const rest = mark !== '@' && line.startsWith(mark) ? line.slice(1) : line;
    const last = runs.at(-1);
    if (last?.mark === mark) last.lines.push(rest);
    else runs.push({ mark, lines: [rest] });
  }
  return runs;
}

/** How many lines of a hunk go and come after a line about it; Codex does not say. @param {string} line @returns {[number, number]} */
function announced(line) {
  const head = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
  if (head) return [Number(head[1] ?? 1), Number(head[2] ?? 1)];
  return /^(@@|\*\*\* (Add|Update) File)/.test(line) ? [Infinity, Infinity] : [0, 0];
}

/**
 * Shows what changes: lines that come have a + and those that go a -, long runs that stay are folded
 * (details), and what is longer than some 20,000 letters ends with a button for the rest (data-do=whole).
 * @param {string} name of the file, or ''
 * @param {Run[]} runs
 * @returns {HTMLElement}
 */
export function difference(name, runs) {
  const of = name ? 'Changes of ' + visible(name) : 'Changes';
  const pre = h('div', { class: 'lines', tabindex: 0, role: 'group', 'aria-label': of });
  const { begin, rest } = cut(runs);
  pre.append(...begin.map(shown));
  const more = rest.length > 0 && h('button', { type: 'button', 'data-do': 'whole', click: () => {
    pre.append(...rest.map(shown));
    /** @type {HTMLElement} */ (more).remove();
  } }, count(rest.reduce((n, r) => n + r.lines.length, 0)) + ' more lines: show all');
  return h('div', { class: 'diff' }, name && h('div', { class: 'bar' }, h('span', {}, visible(name))), pre, more);
}

/** What is shown at once, and the rest. @param {Run[]} runs */
function cut(runs) {
  /** @type {Run[]} */
  const begin = [], rest = [];
  let letters = 0;
  for (const r of runs) {
    let n = 0;
    while (n < r.lines.length && letters < WHOLE) letters += (r.lines[n++] ?? '').length + 1;
    if (n > 0) begin.push({ mark: r.mark, lines: r.lines.slice(0, n) });
    if (n < r.lines.length) rest.push({ mark: r.mark, lines: r.lines.slice(n) });
  }
  return { begin, rest };
}

const TAGS = /** @type {Object<string, string>} */ ({ '+': 'ins', '-': 'del', ' ': 'div', '@': 'div' });

/** @param {Run} r */
function shown(r) {
  if (r.mark === ' ' && r.lines.length > FOLDED) {
    const between = r.lines.slice(NEAR, -NEAR);
    return h('div', {}, lines(' ', r.lines.slice(0, NEAR)),
      h('details', {}, h('summary', {}, count(between.length) + ' unchanged lines'), lines(' ', between)), lines(' ', r.lines.slice(-NEAR)));
  }
  return lines(r.mark, r.lines);
}

/** @param {string} mark @param {string[]} all */
function lines(mark, all) {
  const before = mark === '@' ? '' : mark;
  return h(TAGS[mark] ?? 'div', { class: mark === '@' && 'about' }, visible(all.map((l) => before + l + '\n').join('')));
}
