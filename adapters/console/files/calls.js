// What agents give to tools and get from them: commands as lines, edits as what changes.

import { h } from './dom.js';
import { block, indent, values, visible } from './letters.js';
import { code } from './code.js';
import { changed, difference, isDiff, run, unified } from './diff.js';

const STRUCTURED = 200000; // letters; longer inputs are shown as they are written

const PATHS = ['file_path', 'filePath', 'filepath', 'path', 'notebook_path'];
const PAIRS = [['old_string', 'new_string'], ['oldString', 'newString'], ['oldText', 'newText'], ['old_str', 'new_str']];
const DIFFS = ['diff', 'patch', 'patchText', 'unified_diff', 'input'];

/** The members of an object that are not shown yet: their JSON by name. @typedef {Map<string, string>} Members */

/**
 * The input of a call as people read it: a command as lines of a shell, an edit as a diff, and
 * below by name whatever else it has; what is neither is JSON with an indentation. Folded lines
 * are in closed details, and long texts behind buttons (data-do=whole).
 * @param {string} name of the tool
 * @param {string} input is JSON as the agent has written it, or a text
 * @returns {HTMLElement}
 */
export function toolInput(name, input) {
  return call(input) ?? written(input, 'Input of ' + visible(name));
}

/**
 * What a tool has answered: a diff as such, JSON with an indentation, else its lines.
 * @param {string} text
 * @returns {HTMLElement}
 */
export function toolOutput(text) {
  const m = members(text);
  const parts = m ? changes(m) : [];
  return m && parts.length ? h('div', { class: 'call' }, parts, others(m)) : written(text, 'Result');
}

/** @param {string} text @param {string} label */
function written(text, label) {
  return text.length <= STRUCTURED && isDiff(text) && !members(text) ? difference('', unified(text)) : block(indent(text), label);
}

/** @param {string} input @returns {HTMLElement|undefined} */
function call(input) {
  const m = members(input);
  if (!m) return;
  const parts = [...commands(m), ...changes(m)];
  return parts.length ? h('div', { class: 'call' }, parts, others(m)) : undefined;
}

/**
 * The members of an object in JSON. Undefined if it is none, or has a name twice: what is seen
 * must be all there is.
 * @param {string} text
 * @returns {Members|undefined}
 */
function members(text) {
  if (text.length > STRUCTURED || !/^[ \t\r\n]*\{/.test(text)) return;
  try {
    JSON.parse(text);
  } catch {
    return;
  }
  const m = /** @type {Members} */ (values(text));
  const again = '{' + [...m].map(([name, value]) => JSON.stringify(name) + ':' + value).join(',') + '}';
  return indent(again) === indent(text) ? m : undefined;
}

/** A member that is a text. @param {Members} m @param {string} name @returns {string|undefined} */
function string(m, name) {
  const v = m.get(name);
  return v?.startsWith('"') ? JSON.parse(v) : undefined;
}

/** @param {Members} m @returns {HTMLElement[]} */
function commands(m) {
  const parts = [];
  for (const name of ['command', 'cmd']) {
    const v = m.get(name) ?? '';
    if (!/^["[]/.test(v)) continue;
    const words = JSON.parse(v);
    if (typeof words !== 'string' && !words.every((/** @type {any} */ w) => typeof w === 'string')) continue;
    m.delete(name);
    parts.push(code(typeof words === 'string' ? words : words.map(quoted).join(' '), 'bash'));
  }
  return parts;
}

/** A word as a shell takes it. @param {string} word */
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";
}

/** @param {Members} m @returns {HTMLElement[]} */
function changes(m) {
  const at = PATHS.find((name) => string(m, name) !== undefined) ?? '';
  const path = string(m, at) ?? '';
  const parts = edit(m, path);
  const content = string(m, 'content');
  if (content !== undefined && path) {
    m.delete('content');
    parts.push(difference(path, [run('+', content)]));
  }
  for (const name of DIFFS) {
    const text = string(m, name);
    if (text === undefined || !isDiff(text)) continue;
    m.delete(name);
    parts.push(difference(path, unified(text)));
  }
  parts.push(...edits(m, path));
  if (parts.length) m.delete(at);
  return parts;
}

/** @param {Members} m @param {string} path @returns {HTMLElement[]} */
function edit(m, path) {
  for (const [old = '', fresh = ''] of PAIRS) {
    const after = string(m, fresh), before = string(m, old);
    const isNew = m.get(old) === 'null' || !m.has(old) && fresh === 'newText';
    if (after === undefined || before === undefined && !isNew) continue;
    m.delete(old);
    m.delete(fresh);
    return [difference(path, changed(before ?? '', after))];
  }
  return [];
}

/** Several edits, each of which has to be one. @param {Members} m @param {string} path @returns {HTMLElement[]} */
function edits(m, path) {
  const text = m.get('edits') ?? '';
  if (!text.startsWith('[')) return [];
  const parts = [];
  for (const one of values(text).values()) {
    const its = members(one);
    const change = its ? edit(its, path) : [];
    if (!its || !change.length) return [];
    parts.push(...change, others(its));
  }
  m.delete('edits');
  return parts;
}

/** What is shown in no other way. @param {Members} m */
function others(m) {
  if (!m.size) return h('div', {});
  return h('dl', {}, [...m].flatMap(([name, value]) => [h('dt', {}, visible(name)),
    h('dd', {}, /^[{["]/.test(value) ? block(string(m, name) ?? indent(value), visible(name)) : visible(value))]));
}
