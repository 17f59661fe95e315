// The conversation of a task: what was said, in order, and what its tools did.

import { count, h, pretty, short, shortWho, span, time } from './dom.js';
import { post, segment, Refusal } from './api.js';
import { block, visible } from './letters.js';

const PARTS = 2000; // of the conversation
const LETTERS = 200000; // of one text, at once

/**
 * @param {import('./model.js').Model} m
 * @param {string} id
 * @returns {import('./task.js').Tab}
 */
export function conversation(m, id) {
  const more = h('p', { class: 'state' });
  const list = h('ol', { class: 'talk' });
  const element = h('section', { 'aria-label': 'Conversation' }, list, more);
  /** @type {{update: () => void}[]} */
  const shown = [];
  let painted = 0;
  return {
    element,
    paint() {
      // Only a part that is open can have changed: the last one, and tools.
      for (let i = 0; i < shown.length; i++) {
        if (i >= painted - 1 || m.parts[i]?.tool) shown[i]?.update();
      }
      for (let i = shown.length; i < Math.min(m.parts.length, PARTS); i++) {
        const part = m.parts[i];
        if (!part) break;
        const one = part.tool ? toolPart(part, id) : textPart(part);
        shown.push(one);
        list.append(one.element);
      }
      painted = shown.length;
      const rest = m.parts.length - shown.length;
      more.textContent = rest > 0 ? count(rest) + ' later parts are not shown here; the events have them all.' : m.lines.length ? '' : 'Nothing was said yet.';
    },
  };
}

/** How each kind is introduced. */
const WORDS = /** @type {Object<string, string>} */ ({
  opened: 'asks', text: 'says', thinking: 'thinks', injected: 'is told', injection_answered: 'answers what it was told', file: 'sends a file',
  retrying: 'tries again', cancel_requested: 'is told to stop', approval_decided: 'decides', session_lost: 'lost its session',
  done: 'is done', failed: 'failed', cancelled: 'was cancelled', gap: 'does not have all',
});

/** @param {import('./model.js').Part} part */
function textPart(part) {
  const text = document.createTextNode('');
  const pre = h('div', { class: 'words', dir: 'auto' }, text);
  let limit = LETTERS;
  const more = h('button', { type: 'button', click: () => { limit += LETTERS; update(); } });
  const extra = [];
  const r = part.kind === 'opened' ? part.body?.request ?? {} : part.body ?? {};
  if (r.data !== undefined && r.data !== null) extra.push(block(pretty(r.data), 'Data'));
  for (const f of r.attachments ?? []) extra.push(h('p', { class: 'file' }, 'File ', h('b', {}, visible(f.name)), ' ', f.media_type ?? ''));
  if (part.kind === 'file') extra.push(h('p', { class: 'hint' }, part.body?.media_type ?? ''));
  const said = h('div', {}, pre, more, extra);
  const element = h('li', { class: 'part ' + part.kind },
    h('p', { class: 'who' }, h('b', {}, shortWho(part.who) || 'hub'), ' ', WORDS[part.kind] ?? part.kind.replaceAll('_', ' '), ' ', time(part.at)),
    part.kind === 'thinking' ? h('details', {}, h('summary', {}, 'thinking'), said) : said);
  const update = () => {
    const want = Math.min(part.text.length, limit);
    if (want > text.length) text.appendData(part.text.slice(text.length, want));
    const left = part.text.length - want;
    more.hidden = left <= 0;
    if (left > 0) more.textContent = count(left) + ' more letters are not shown: show the next ' + count(Math.min(left, LETTERS));
  };
  update();
  return { element, update };
}

/** @param {import('./model.js').Part} part @param {string} id */
function toolPart(part, id) {
  const tool = /** @type {import('./model.js').Tool} */ (part.tool);
  const element = h('li', { class: 'part tool' });
  let before = '';
  const update = () => {
    const now = [tool.name, tool.state, tool.input.length, tool.output?.length, tool.decision !== undefined, tool.approval?.input_sha256].join(' ');
    if (now === before) return;
    before = now;
    const took = tool.end ? span(Date.parse(tool.end) - Date.parse(tool.at)) : '';
    element.classList.toggle('bad', tool.failed);
    element.replaceChildren(
      h('p', { class: 'who' }, h('b', {}, part.who), ' calls ', h('code', {}, visible(tool.name || tool.id)), ' ', h('span', { class: 'is ' + tool.state }, tool.state.replaceAll('_', ' ')), ' ', took, ' ', time(tool.at)),
      h('details', { open: tool.approval && !tool.decision && !tool.end ? true : false }, h('summary', {}, short(visible(tool.input || 'no input'), 120)), block(pretty(tool.input ?? ''), 'Input')));
    if (tool.decision) element.append(h('p', {}, (tool.decision.approved ? 'Approved' : 'Denied') + ' by ' + tool.decision.by + (tool.decision.reason ? ': ' + visible(tool.decision.reason) : ''), ' ', time(tool.decidedAt)));
    else if (tool.approval && !tool.end) element.append(decision(tool, id));
    if (tool.output) element.append(h('details', { open: tool.failed }, h('summary', {}, (tool.failed ? 'error: ' : 'result: ') + short(visible(tool.output), 120)), block(pretty(tool.output), 'Result')));
  };
  update();
  return { element, update };
}

/** @param {import('./model.js').Tool} tool @param {string} id */
function decision(tool, id) {
  const note = h('p', { class: 'note', role: 'status' });
  /** @param {boolean} approved */
  const decide = async (approved) => {
    note.textContent = 'Sending…';
    try {
      await post('/v1/tasks/' + segment(id) + '/decisions', {
        id: tool.id, approved, ...(tool.approval.input_sha256 ? { input_sha256: tool.approval.input_sha256 } : {}),
      });
    } catch (e) {
      if (!(e instanceof Refusal)) throw e;
      note.textContent = (e.status === 409 ? 'Decided elsewhere: ' : 'Refused: ') + e.message;
    }
  };
  return h('div', { class: 'act' }, h('span', {}, 'It waits for a decision. '),
    h('button', { type: 'button', class: 'yes', 'data-do': 'approve', click: () => decide(true) }, 'Approve'),
    h('button', { type: 'button', class: 'no', 'data-do': 'deny', click: () => decide(false) }, 'Deny'), note);
}
