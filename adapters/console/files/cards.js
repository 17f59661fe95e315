// Cards: what a person decides or answers, in the view of what waits and in its place in a conversation.

import { h, short, shortWho, span, taskLink, when } from './dom.js';
import { Refusal, post, segment, text } from './api.js';
import { inbox } from './inbox.js';
import { block, indent, textOf, visible } from './letters.js';
import { formOf } from './form.js';
import { whenSeen, whenStill } from './seen.js';
import { toolInput } from './markdown.js';

export const SENDING = 'Sending…';

/**
 * What is on a card, and how it is changed. What is usable again after a refusal is not what was never to be used.
 * @typedef {{item: import('./inbox.js').Item, element: HTMLElement, age: HTMLElement, note: HTMLElement, buttons: HTMLElement[], gone: boolean, goneAt?: number, usable: (b: HTMLElement) => boolean}} Card
 */

/**
 * The card of what waits. In its place in a conversation it does not say what stands around it.
 * @param {import('./inbox.js').Item} item
 * @param {boolean} [inPlace]
 * @returns {Card}
 */
export function cardOf(item, inPlace = false) {
  if (item.approval) return approvalCard(item, item.approval, inPlace);
  return questionCard(item, /** @type {import('./inbox.js').Question} */ (item.question), inPlace);
}

/** Says how long it has waited, and will. @param {Card} card */
export function tell(card) {
  if (!card.gone) card.age.textContent = 'for ' + span(Date.now() - Date.parse(card.item.since)) + ', ' + span(Date.parse(card.item.until) - Date.now()) + ' left';
}

/** Whether pointer or focus are on it: what they are on does not move and does not go. @param {HTMLElement} element */
export function held(element) {
  return element.matches(':hover') || element.contains(document.activeElement);
}

/**
 * The letters that go through the cards in an element, and decide.
 * @param {HTMLElement} root
 * @returns {Object<string, () => void>}
 */
export function cardKeys(root) {
  /** @param {number} by */
  const step = (by) => {
    const all = /** @type {HTMLElement[]} */ ([...root.querySelectorAll('.card:not(.gone)')]);
    const at = all.findIndex((c) => c.contains(document.activeElement));
    const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by))];
    next?.focus({ preventScroll: true });
    next?.scrollIntoView({ block: next.offsetHeight > innerHeight / 2 ? 'start' : 'nearest' });
  };
  /** @param {string} what */
  const press = (what) => /** @type {HTMLElement|null|undefined} */ (document.activeElement?.closest('.card')?.querySelector('button[data-do="' + what + '"]'))?.click();
  return { j: () => step(1), k: () => step(-1), a: () => press('approve'), d: () => press('deny'), n: () => press('later') };
}

/** It waits no longer: nothing can be done on it. @param {Card} card @param {string} why where the card does not say it itself */
export function retire(card, why) {
  card.gone = true;
  card.goneAt = Date.now();
  card.element.classList.add('gone');
  for (const b of card.buttons) b.setAttribute('disabled', '');
  if (!card.note.textContent || card.note.textContent === SENDING) card.note.textContent = why;
}

/**
 * @param {import('./inbox.js').Item} item
 * @param {import('./inbox.js').Approval} a
 * @param {boolean} inPlace
 * @returns {Card}
 */
function approvalCard(item, a, inPlace) {
  const age = h('span', {}), note = h('p', { class: 'note', role: 'status' });
  /** @type {Card|undefined} */
  let card;
  const reason = /** @type {HTMLInputElement} */ (h('input', { 'aria-label': 'Reason, if you want to give one', placeholder: 'reason (optional)' }));
  /** @param {boolean} approved */
  const decide = (approved) => card && act(card, async () => {
    await post('/v1/tasks/' + segment(a.task) + '/decisions', {
      id: a.id, approved, input_sha256: a.input_sha256, ...(reason.value ? { reason: reason.value } : {}),
    });
    return approved ? 'You approved it.' : 'You denied it.';
  });
  const approve = h('button', { type: 'button', class: 'yes', 'data-do': 'approve', disabled: true, title: 'First show the whole input on the screen', click: () => decide(true) }, 'Approve');
  const first = h('p', { class: 'hint unread' }, 'Scroll through all of the input to approve it.');
  const buttons = [approve, h('button', { type: 'button', class: 'no', 'data-do': 'deny', click: () => decide(false) }, 'Deny'), ...notNow(item, inPlace)];
  let seen = false;
  const whole = h('div', { class: 'whole-input' });
  // What is approved is on the screen letter by letter, whatever is made of it above.
  whole.append(block(indent(a.input), 'The whole input of ' + visible(a.name), () => whenSeen(whole, () => {
    // A card that has just come stands where another one may have been pressed.
    whenStill(approve, () => {
      seen = true;
      if (!card?.gone) approve.removeAttribute('disabled');
      approve.removeAttribute('title');
      first.remove();
    });
  })));
  const why = h('dd', {}, '…');
  const element = h('article', { class: 'card', tabindex: -1, 'aria-label': a.agent + ' wants to call ' + visible(a.name) },
    h('h2', {}, a.agent, ' wants to call ', h('code', {}, visible(a.name))),
    inPlace ? h('p', { class: 'hint' }, 'Waiting for you ', age) : h('dl', {},
      h('dt', {}, 'Asked by'), h('dd', {}, shortWho(a.from?.id)),
      h('dt', {}, 'Task'), h('dd', {}, taskLink(a.task)),
      h('dt', {}, 'Why'), why,
      h('dt', {}, 'Since'), h('dd', {}, when(a.since), ' until ', when(a.until), ' (', age, ')')),
    readable(a), whole, first, h('div', { class: 'act' }, ...buttons, reason), note);
  card = { item, element, age, note, buttons: [...buttons, reason], gone: false, usable: (b) => b !== approve || seen };
  if (!inPlace) tellWhy(a, why);
  return card;
}

/** A command or a change to a file as people read it, above the input as it is. @param {import('./inbox.js').Approval} a */
function readable(a) {
  const element = toolInput(a.name, a.input);
  return !element.matches('.call') ? null : h('div', { class: 'readable' }, element, h('p', { class: 'hint' }, 'Exactly:'));
}

/** @param {import('./inbox.js').Approval} a @param {HTMLElement} at */
async function tellWhy(a, at) {
  try {
    const answer = await text('/v1/tasks/' + segment(a.task));
    at.textContent = visible(short(JSON.parse(answer).content || textOf(answer, 'data') || '', 2000));
  } catch (e) {
    at.textContent = e instanceof Refusal && (e.status === 403 || e.status === 404) ? 'you may not read the task' : 'unknown';
  }
}

/** Puts it off, for this page alone: the agent is not told, and waits on. @param {import('./inbox.js').Item} item @param {boolean} inPlace */
function notNow(item, inPlace) {
  return inPlace ? [] : [h('button', { type: 'button', 'data-do': 'later', title: 'Hide it until it changes. It is no denial: the agent waits on.', click: () => inbox.putOff(item.key, true) }, 'Not now')];
}

/**
 * @param {import('./inbox.js').Item} item
 * @param {import('./inbox.js').Question} q
 * @param {boolean} inPlace
 * @returns {Card}
 */
function questionCard(item, q, inPlace) {
  const form = q.form && formOf(q.form.schema), asked = q.form;
  const { words, fields, controls, answer, decline } = asked && form ? {
    words: asked.message, fields: form.elements, controls: form.controls,
    answer: () => ({ content: form.content() }), decline: asked.decline ? { selected: [asked.decline] } : { dismissed: true },
  } : choices(item, q);
  const age = h('span', {}), note = h('p', { class: 'note', role: 'status' });
  /** @param {Object<string, any>} what @param {string} done */
  const give = (what, done) => act(card, async () => {
    await post('/v1/questions/' + segment(q.id) + '/answer', what);
    return done;
  });
  const buttons = [
    h('button', { type: 'submit', class: 'yes', 'data-do': 'approve' }, 'Answer'),
    h('button', { type: 'button', class: 'no', 'data-do': 'deny', click: () => give(decline, 'You declined to answer.') }, 'Decline to answer'),
    ...notNow(item, inPlace),
  ];
  const who = q.agent || 'a tool'; // that somebody called outside of a task
  const element = h('article', { class: 'card', tabindex: -1, 'aria-label': who + ' asks: ' + visible(short(words, 200)) },
    h('h2', {}, who, ' asks', q.header ? ': ' + visible(q.header) : ''),
    inPlace ? h('p', { class: 'hint' }, 'Waiting for you ', age) : h('dl', {},
      q.tasks?.length ? [h('dt', {}, 'Task'), h('dd', {}, q.tasks.map((id) => [taskLink(id), ' ']).flat())] : null,
      h('dt', {}, 'Since'), h('dd', {}, when(q.since), ' until ', when(q.until), ' (', age, ')')),
    h('form', { submit: (/** @type {Event} */ e) => { e.preventDefault(); give(answer(), 'You answered it.'); } },
      h('fieldset', {}, h('legend', {}, visible(words)), fields),
      h('div', { class: 'act' }, ...buttons)), note);
  /** @type {Card} */
  const card = { item, element, age, note, buttons: [...buttons, ...controls], gone: false, usable: () => true };
  return card;
}

/** The choices of a question without a form. @param {import('./inbox.js').Item} item @param {import('./inbox.js').Question} q */
function choices(item, q) {
  const boxes = (q.options ?? []).map((o) => /** @type {HTMLInputElement} */ (
    h('input', { type: q.multi_select ? 'checkbox' : 'radio', name: item.key, value: o.label })));
  const own = /** @type {HTMLInputElement} */ (h('input', { 'aria-label': 'Your own words', placeholder: 'your own words' }));
  const fields = [...boxes.map((b, i) => h('label', { class: 'option' }, b, ' ', visible(b.value),
    q.options?.[i]?.description ? h('span', { class: 'hint' }, ' ' + visible(q.options[i]?.description ?? '')) : null)), own];
  return {
    words: q.question, fields, controls: [...boxes, own], decline: { dismissed: true },
    answer: () => {
      const selected = boxes.filter((b) => b.checked).map((b) => b.value);
      return { ...(selected.length ? { selected } : {}), ...(own.value ? { custom_text: own.value } : {}) };
    },
  };
}

/**
 * Does what a button says, and tells what became of it.
 * @param {Card} card
 * @param {() => Promise<string>} what
 */
async function act(card, what) {
  if (card.gone) return;
  if (card.element.contains(document.activeElement)) card.element.focus(); // what is off has no focus
  for (const b of card.buttons) b.setAttribute('disabled', '');
  card.note.textContent = SENDING;
  try {
    card.note.textContent = await what();
    inbox.now();
  } catch (e) {
    if (!(e instanceof Refusal)) throw e;
    // Whoever decided first, the hub says who and what.
    card.note.textContent = (e.status === 409 ? 'Decided elsewhere: ' : 'Refused: ') + e.message;
    if (e.status === 409 || e.status === 404) inbox.now();
    else for (const b of card.buttons.filter(card.usable)) b.removeAttribute('disabled');
  }
}
