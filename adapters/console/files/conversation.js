// The conversation of a task: what was said, in order, and what its tools did.

import { count, h, short, shortWho, span, time } from './dom.js';
import { post, segment, Refusal } from './api.js';
import { block, indent, visible } from './letters.js';

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
  retrying: 'tries again', cancel_requested: 'is told to stop', approval_decided: 'decides', question_asked: 'asks people', question_answered: 'answers', session_lost: 'lost its session',
  done: 'is done', failed: 'failed', cancelled: 'was cancelled', gap: 'no longer has all events',
});

/** @param {import('./model.js').Part} part */
function textPart(part) {
  const text = document.createTextNode('');
  const pre = h('div', { class: 'words', dir: 'auto' }, text);
  let limit = LETTERS;
  const more = h('button', { type: 'button', click: () => { limit += LETTERS; update(); } });
  const extra = [];
  const r = part.kind === 'opened' ? part.body?.request ?? {} : part.body ?? {};
  if (part.data !== undefined && part.data !== 'null') extra.push(block(indent(part.data), 'Data'));
  for (const f of r.attachments ?? []) extra.push(h('p', { class: 'file' }, 'File ', h('b', {}, visible(f.name)), ' ', f.media_type ?? ''));
  if (part.kind === 'file') extra.push(h('p', { class: 'hint' }, part.body?.media_type ?? ''));
  const said = h('div', {}, pre, more, extra);
  const element = h('li', { class: 'part ' + part.kind },
    h('p', { class: 'who' }, h('b', {}, shortWho(part.who) || 'hub'), ' ', r.intent === 'notify' ? 'notifies' : r.answered === false ? 'got no answer' : WORDS[part.kind] ?? part.kind.replaceAll('_', ' '), ' ', time(part.at)),
    r.answered === false && r.reason === 'task_ended' ? h('p', { class: 'hint' }, 'The task ended before anybody answered: Ask again is below.') : [],
    part.kind === 'thinking' ? h('details', {}, h('summary', {}, 'thinking'), said) : said);
  let at = 0; // how much of it is shown
  const update = () => {
    let want = Math.min(part.text.length, limit);
    if (/[\ud800-\udbff]/.test(part.text[want - 1] ?? '')) want--; // half a letter
    if (want > at) text.appendData(visible(part.text.slice(at, want)));
    at = Math.max(at, want);
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
  const head = h('p', { class: 'who' }), input = h('div', {}), asked = h('div', {}), output = h('div', {});
  const element = h('li', { class: 'part tool' }, head, input, asked, output);
  let before = '', inputBefore = '', outputBefore = '';
  /** What was asked of a person, as it is shown: one that was decided changes no more. @type {{a: import('./model.js').Approval, decided: boolean, element: HTMLElement}[]} */
  const shown = [];
  const update = () => {
    const now = [tool.name, tool.state, tool.end].join(' ');
    if (now !== before) {
      before = now;
      element.classList.toggle('bad', tool.failed);
      head.replaceChildren(h('b', {}, shortWho(part.who)), ' calls ', h('code', {}, visible(tool.name || tool.id)), ' ', h('span', { class: 'is ' + tool.state }, tool.state.replaceAll('_', ' ')), ' ',
        tool.end ? span(Date.parse(tool.end) - Date.parse(tool.at)) : '', ' ', time(tool.at));
    }
    if (tool.input !== inputBefore || !input.firstChild) {
      inputBefore = tool.input;
      input.replaceChildren(h('details', {}, h('summary', {}, short(visible(tool.input || 'no input'), 120)), block(indent(tool.input), 'Input')));
    }
    tool.approvals.forEach((a, i) => {
      const decided = !!a.decision || !!tool.end || i < tool.approvals.length - 1;
      const old = shown[i];
      if (old?.decided === decided) return;
      const fresh = { a, decided, element: decided ? decisionOn(a) : decide(a, tool, id) };
      if (old) old.element.replaceWith(fresh.element);
      else asked.append(fresh.element);
      shown[i] = fresh;
    });
    if (tool.output !== outputBefore) {
      outputBefore = tool.output;
      output.replaceChildren(h('details', { open: tool.failed }, h('summary', {}, (tool.failed ? 'error: ' : 'result: ') + short(visible(tool.output), 120)), block(indent(tool.output), 'Result')));
    }
  };
  update();
  return { element, update };
}

/** A decision, with the input that it was on. @param {import('./model.js').Approval} a */
function decisionOn(a) {
  const d = a.decision;
  return h('details', { class: 'decided' }, h('summary', {}, d ? (d.approved ? 'Approved' : 'Denied') + ' by ' + shortWho(d.by) + (d.reason ? ': ' + visible(d.reason) : '') : 'Nobody decided on',
    ' ', h('code', {}, visible(a.name)), ' ', short(visible(a.input), 80), ' ', time(a.decidedAt ?? a.at)), block(indent(a.input), 'The input that was decided on'));
}

/** @param {import('./model.js').Approval} a @param {import('./model.js').Tool} tool @param {string} id */
function decide(a, tool, id) {
  const note = h('p', { class: 'note', role: 'status' });
  /** @param {boolean} approved */
  const send = async (approved) => {
    note.textContent = 'Sending…';
    try {
      await post('/v1/tasks/' + segment(id) + '/decisions', {
        id: tool.id, approved, ...(a.sha ? { input_sha256: a.sha } : {}),
      });
      note.textContent = '';
    } catch (e) {
      if (!(e instanceof Refusal)) throw e;
      note.textContent = (e.status === 409 ? 'Decided elsewhere: ' : 'Refused: ') + e.message;
    }
  };
  const approve = h('button', { type: 'button', class: 'yes', 'data-do': 'approve', disabled: true, title: 'Show the whole input first', click: () => send(true) }, 'Approve');
  return h('div', { class: 'ask-person' },
    h('p', {}, 'Waiting for a decision on ', h('code', {}, visible(a.name)), ' with this input:'),
    block(indent(a.input), 'The whole input of ' + visible(a.name), () => enable(approve)),
    h('div', { class: 'act' }, approve, h('button', { type: 'button', class: 'no', 'data-do': 'deny', click: () => send(false) }, 'Deny'), note));
}

/** What is approved must be seen whole. @param {HTMLElement} approve */
export function enable(approve) {
  approve.removeAttribute('disabled');
  approve.removeAttribute('title');
}
