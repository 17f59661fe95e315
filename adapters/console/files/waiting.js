// Waiting: what a person must decide or answer, of all agents, decided in place.

import { count, h, say, short, shortWho, span, taskLink, time } from './dom.js';
import { History } from './history.js';
import { Refusal, post, segment, text } from './api.js';
import { inbox } from './inbox.js';
import { offer } from './notices.js';
import { block, indent, textOf, visible } from './letters.js';
import { enable } from './conversation.js';
import { formOf } from './form.js';

const SENDING = 'Sending…';

/**
 * What is on a card, and how it is changed.
 * @typedef {{item: import('./inbox.js').Item, element: HTMLElement, age: HTMLElement, note: HTMLElement, buttons: HTMLElement[], gone: boolean, goneAt?: number, usable: (b: HTMLElement) => boolean}} Card
 */

/** @param {import('./app.js').Page} page */
export function show(page) {
  const cards = h('div', { class: 'cards' });
  const state = h('p', { class: 'state' }, 'Reading what waits…');
  const back = h('button', { type: 'button', hidden: true, click: () => { for (const i of inbox.items) inbox.putOff(i.key, false); } });
  const history = new History(page.signal);
  const empty = h('p', { class: 'empty', hidden: true }, 'When an agent wants to call a tool that needs your approval, or asks you something, that comes here, with all that it wants to do. You decide it in place. ',
    h('a', { href: '#/new' }, 'Ask an agent'), ' meanwhile, or see ', h('a', { href: '#/live' }, 'what happens now'), '.');
  /** What a notification was about. */
  let wanted = page.query.get('item') ?? '';
  page.root.append(h('h1', {}, 'Waiting'), state, offer(), empty, cards, back, history.element);
  /** @type {Map<string, Card>} */
  const shown = new Map();

  const update = () => {
    const waits = new Set(inbox.due.map((i) => i.key));
    for (const card of shown.values()) {
      if (card.gone && waits.has(card.item.key)) away(card); // it was put off, and is no more
      else if (!waits.has(card.item.key) && !card.gone) leave(card);
    }
    for (const item of inbox.due) {
      if (shown.has(item.key)) continue;
      const card = item.approval ? approvalCard(item, item.approval) : questionCard(item, /** @type {any} */ (item.question));
      shown.set(item.key, card);
      cards.append(card.element);
      if (inbox.read) say(card.element.getAttribute('aria-label') ?? '');
    }
    const n = inbox.due.length, off = inbox.items.length - n;
    back.hidden = off === 0;
    back.textContent = count(off) + ' put off: show ' + (off === 1 ? 'it' : 'them') + ' again';
    empty.hidden = !inbox.read || n > 0 || off > 0 || inbox.refused !== '';
    if (inbox.refused) state.textContent = 'You may not see what waits: ' + inbox.refused;
    else if (inbox.read) state.textContent = n ? waitingNow(inbox.due) : off ? 'Nothing else waits for you.' : 'Nothing waits for you.';
    const card = shown.get(wanted);
    if (card) {
      wanted = '';
      queueMicrotask(() => { // once the page is shown, which takes the focus
        card.element.scrollIntoView({ block: 'nearest' });
        card.element.focus();
        page.address({});
      });
    }
  };

  /** A card stays where it is, so that none moves under a hand. @param {Card} card */
  const leave = (card) => {
    card.gone = true;
    card.goneAt = Date.now();
    card.element.classList.add('gone');
    for (const b of card.buttons) b.setAttribute('disabled', '');
    if (inbox.later.has(card.item.key)) {
      card.note.textContent = 'Put off until it changes.';
      card.goneAt = 0;
    } else if (!card.note.textContent || card.note.textContent === SENDING) {
      card.note.textContent = 'It no longer waits: it was decided elsewhere, or its time is over.';
      history.find(card.item).then((found) => { if (found) card.note.textContent = 'Decided elsewhere: ' + found; });
    } else history.read();
  };
  /** @param {Card} card */
  const away = (card) => {
    card.element.remove();
    shown.delete(card.item.key);
  };

  const tick = () => {
    // No card moves under a hand: what has gone is taken away while hand and focus are elsewhere.
    if (!cards.matches(':hover') && !cards.contains(document.activeElement)) {
      for (const card of shown.values()) if (card.gone && Date.now() - (card.goneAt ?? 0) > 15000) away(card);
    }
    for (const { item, age, gone } of shown.values()) {
      if (!gone) age.textContent = 'for ' + span(Date.now() - Date.parse(item.since)) + ', ' + span(Date.parse(item.until) - Date.now()) + ' left';
    }
  };
  const clock = setInterval(tick, 1000);
  page.signal.addEventListener('abort', () => clearInterval(clock));
  inbox.subscribe(() => { update(); tick(); }, page.signal);
  update();
  tick();

  /** @param {number} by */
  const step = (by) => {
    const all = /** @type {HTMLElement[]} */ ([...cards.querySelectorAll('.card:not(.gone)')]);
    const at = all.findIndex((c) => c.contains(document.activeElement));
    all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by))]?.focus();
  };
  /** @param {string} what */
  const press = (what) => {
    const card = document.activeElement?.closest('.card');
    /** @type {HTMLElement|null|undefined} */ (card?.querySelector('button[data-do="' + what + '"]'))?.click();
  };
  page.keys = { j: () => step(1), k: () => step(-1), a: () => press('approve'), d: () => press('deny'), n: () => press('later') };
}

/** How many of each wait. @param {import('./inbox.js').Item[]} due */
function waitingNow(due) {
  /** @param {number} n @param {string} what */
  const some = (n, what) => (n ? count(n) + ' ' + what + (n === 1 ? '' : 's') : '');
  const approvals = due.filter((i) => i.approval).length;
  return [some(approvals, 'approval'), some(due.length - approvals, 'question')].filter(Boolean).join(' and ') + ' waiting.';
}

/** Why a tool is called: what its agent was asked. @param {import('./inbox.js').Approval} a @param {HTMLElement} at */
async function tellWhy(a, at) {
  try {
    const answer = await text('/v1/tasks/' + segment(a.task));
    at.textContent = visible(short(JSON.parse(answer).content || textOf(answer, 'data') || '', 2000));
  } catch (e) {
    at.textContent = e instanceof Refusal && (e.status === 403 || e.status === 404) ? 'you may not read the task' : 'unknown';
  }
}

/** Puts it off, for this page alone: the agent is not told, and waits on. @param {import('./inbox.js').Item} item */
function notNow(item) {
  return h('button', { type: 'button', 'data-do': 'later', title: 'Hide it until it changes. It is no denial: the agent waits on.', click: () => inbox.putOff(item.key, true) }, 'Not now');
}

/**
 * @param {import('./inbox.js').Item} item
 * @param {import('./inbox.js').Approval} a
 * @returns {Card}
 */
function approvalCard(item, a) {
  const age = h('span', {}), note = h('p', { class: 'note', role: 'status' });
  /** @type {Card|undefined} */
  let card;
  const why = h('dd', {}, '…');
  const reason = /** @type {HTMLInputElement} */ (h('input', { 'aria-label': 'Reason, if you want to give one', placeholder: 'reason (optional)' }));
  /** @param {boolean} approved */
  const decide = (approved) => card && act(card, async () => {
    await post('/v1/tasks/' + segment(a.task) + '/decisions', {
      id: a.id, approved, input_sha256: a.input_sha256, ...(reason.value ? { reason: reason.value } : {}),
    });
    return approved ? 'You approved it.' : 'You denied it.';
  });
  const buttons = [
    h('button', { type: 'button', class: 'yes', 'data-do': 'approve', disabled: true, title: 'Show the whole input first', click: () => decide(true) }, 'Approve'),
    h('button', { type: 'button', class: 'no', 'data-do': 'deny', click: () => decide(false) }, 'Deny'),
    notNow(item),
  ];
  let seen = false; // all of it, by whoever approves
  const element = h('article', { class: 'card', tabindex: -1, 'aria-label': a.agent + ' wants to call ' + visible(a.name) },
    h('h2', {}, a.agent, ' wants to call ', h('code', {}, visible(a.name))),
    h('dl', {},
      h('dt', {}, 'Asked by'), h('dd', {}, shortWho(a.from?.id)),
      h('dt', {}, 'Task'), h('dd', {}, taskLink(a.task)),
      h('dt', {}, 'Why'), why,
      h('dt', {}, 'Since'), h('dd', {}, time(a.since), ' until ', time(a.until), ' (', age, ')')),
    block(indent(a.input), 'The whole input of ' + visible(a.name), () => {
      seen = true;
      if (!card?.gone) enable(/** @type {HTMLElement} */ (buttons[0]));
    }),
    h('div', { class: 'act' }, ...buttons, reason), note);
  card = { item, element, age, note, buttons: [...buttons, reason], gone: false, usable: (b) => b !== buttons[0] || seen };
  tellWhy(a, why);
  return card;
}

/**
 * @param {import('./inbox.js').Item} item
 * @param {import('./inbox.js').Question} q
 * @returns {Card}
 */
function questionCard(item, q) {
  const age = h('span', {}), note = h('p', { class: 'note', role: 'status' });
  const form = q.form && formOf(q.form.schema);
  if (q.form && form) return formCard(item, q, q.form, form, age, note);
  const boxes = (q.options ?? []).map((o) => /** @type {HTMLInputElement} */ (
    h('input', { type: q.multi_select ? 'checkbox' : 'radio', name: item.key, value: o.label })));
  const own = /** @type {HTMLInputElement} */ (h('input', { 'aria-label': 'Your own words', placeholder: 'your own words' }));
  const answer = () => act(card, () => {
    const selected = boxes.filter((b) => b.checked).map((b) => b.value);
    return give(q, { ...(selected.length ? { selected } : {}), ...(own.value ? { custom_text: own.value } : {}) });
  });
  const dismiss = () => act(card, () => give(q, { dismissed: true }));
  const buttons = questionButtons(item, dismiss);
  const element = questionElement(q, q.question, age, note, answer, [
    boxes.map((b, i) => h('label', { class: 'option' }, b, ' ', visible(b.value),
      q.options?.[i]?.description ? h('span', { class: 'hint' }, ' ' + visible(q.options[i]?.description ?? '')) : null)),
    own].flat(), buttons);
  /** @type {Card} */
  const card = { item, element, age, note, buttons: [...buttons, ...boxes, own], gone: false, usable: () => true };
  return card;
}

/**
 * @param {import('./inbox.js').Item} item
 * @param {import('./inbox.js').Question} q
 * @param {{message: string, decline?: string}} asked
 * @param {import('./form.js').Form} form
 * @param {HTMLElement} age
 * @param {HTMLElement} note
 * @returns {Card}
 */
function formCard(item, q, asked, form, age, note) {
  const answer = () => act(card, () => give(q, { content: form.content() }));
  const decline = () => act(card, () => give(q, asked.decline ? { selected: [asked.decline] } : { dismissed: true }, true));
  const buttons = questionButtons(item, decline);
  const element = questionElement(q, asked.message, age, note, answer, form.elements, buttons);
  /** @type {Card} */
  const card = { item, element, age, note, buttons: [...buttons, ...form.controls], gone: false, usable: () => true };
  return card;
}

/**
 * Answers a question, and returns what was done.
 * @param {import('./inbox.js').Question} q
 * @param {Object<string, any>} answer
 * @param {boolean} [declines]
 */
async function give(q, answer, declines = Boolean(answer['dismissed'])) {
  await post('/v1/questions/' + segment(q.id) + '/answer', answer);
  return declines ? 'You declined to answer.' : 'You answered it.';
}

/** @param {import('./inbox.js').Item} item @param {() => void} decline */
function questionButtons(item, decline) {
  return [
    h('button', { type: 'submit', class: 'yes', 'data-do': 'approve' }, 'Answer'),
    h('button', { type: 'button', class: 'no', 'data-do': 'deny', click: decline }, 'Decline to answer'),
    notNow(item),
  ];
}

/**
 * @param {import('./inbox.js').Question} q
 * @param {string} words
 * @param {HTMLElement} age
 * @param {HTMLElement} note
 * @param {() => void} answer
 * @param {HTMLElement[]} fields
 * @param {HTMLElement[]} buttons
 */
function questionElement(q, words, age, note, answer, fields, buttons) {
  const who = q.agent || 'a tool'; // that somebody called outside of a task
  return h('article', { class: 'card', tabindex: -1, 'aria-label': who + ' asks: ' + visible(short(words, 200)) },
    h('h2', {}, who, ' asks', q.header ? ': ' + visible(q.header) : ''),
    h('dl', {},
      q.tasks?.length ? [h('dt', {}, 'Task'), h('dd', {}, q.tasks.map((id) => [taskLink(id), ' ']).flat())] : null,
      h('dt', {}, 'Since'), h('dd', {}, time(q.since), ' until ', time(q.until), ' (', age, ')')),
    h('form', { submit: (/** @type {Event} */ e) => { e.preventDefault(); answer(); } },
      h('fieldset', {}, h('legend', {}, visible(words)), fields),
      h('div', { class: 'act' }, ...buttons)), note);
}

/**
 * Does what a button says, and tells what became of it.
 * @param {Card} card
 * @param {() => Promise<string>} what
 */
async function act(card, what) {
  if (card.gone) return;
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
