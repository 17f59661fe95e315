// Waiting: what a person must decide or answer, of all agents, decided in place.

import { count, h, say } from './dom.js';
import { cardKeys, cardOf, held, retire, SENDING, tell } from './cards.js';
import { History } from './history.js';
import { inbox } from './inbox.js';
import { offer } from './notices.js';

/** @typedef {import('./cards.js').Card} Card */

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
  page.root.append(h('h1', {}, 'Waiting'), state, h('div', { class: 'act' }, offer()), empty, cards, back, history.element);
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
      const card = cardOf(item);
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
    const decided = card.note.textContent && card.note.textContent !== SENDING;
    retire(card, 'It no longer waits: it was decided elsewhere, or its time is over.');
    if (inbox.later.has(card.item.key)) {
      card.note.textContent = 'Put off until it changes.';
      card.goneAt = 0;
    } else if (decided) history.read();
    else history.find(card.item).then((found) => { if (found) card.note.textContent = 'Decided elsewhere: ' + found; });
  };
  /** @param {Card} card */
  const away = (card) => {
    card.element.remove();
    shown.delete(card.item.key);
  };

  const tick = () => {
    // No card moves under a hand: what has gone is taken away while hand and focus are elsewhere.
    if (!held(cards)) {
      for (const card of shown.values()) if (card.gone && Date.now() - (card.goneAt ?? 0) > 15000) away(card);
    }
    for (const card of shown.values()) tell(card);
  };
  const clock = setInterval(tick, 1000);
  page.signal.addEventListener('abort', () => clearInterval(clock));
  inbox.subscribe(() => { update(); tick(); }, page.signal);
  update();
  tick();

  page.keys = cardKeys(cards);
}

/** How many of each wait. @param {import('./inbox.js').Item[]} due */
function waitingNow(due) {
  /** @param {number} n @param {string} what */
  const some = (n, what) => (n ? count(n) + ' ' + what + (n === 1 ? '' : 's') : '');
  const approvals = due.filter((i) => i.approval).length;
  return [some(approvals, 'approval'), some(due.length - approvals, 'question')].filter(Boolean).join(' and ') + ' waiting.';
}
