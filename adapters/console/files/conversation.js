// One conversation: its latest turns, those before them as one reads up, and what comes, as it comes.

import { count, h, painter, short, visibleId } from './dom.js';
import { Refusal, get, poll, post } from './api.js';
import { cardKeys } from './cards.js';
import { copied } from './code.js';
import { Compose } from './compose.js';
import { inbox } from './inbox.js';
import { visible } from './letters.js';
import { Reader } from './reader.js';
import { Turn, cancel } from './turn.js';

const FIRST = 8; // turns that are read at first
const PAGE = 20; // turns that are read at once
const MOST = 1000; // turns that are shown
const NEAR = 60; // pixels from the end that count as the end
const PATIENCE = 1000; // ms after which turns are shown with what was read of them

/**
 * @param {import('./conversations.js').Pane} pane
 * @param {string} id
 * @param {string} at the turn to show first; '' for the last one
 */
export function conversation(pane, id, at) {
  const { signal } = pane;
  const title = h('h1', {}, visibleId(id));
  const state = h('p', { class: 'state', role: 'status' }, 'Reading…');
  const list = h('ol', { class: 'turns', 'aria-label': 'Turns' });
  const scroll = h('div', { class: 'talk', tabindex: 0, role: 'region', 'aria-label': 'Conversation', scroll: () => scrolled() }, state, list);
  const down = h('button', { type: 'button', class: 'to-end', hidden: true, click: () => toEnd() }, 'To the end ↓');
  /** In order. @type {Turn[]} */
  const turns = [];
  /** @type {Map<string, Turn>} */
  const known = new Map();
  let before = '', older = true, pinned = true, reading = false, listed = false, top = 0, why = '';

  /** The task after which this conversation goes on from another one, as long as no turn of its own is done. */
  const branched = () => {
    if (!listed || older || turns.some((t) => t.model.state === 'done')) return;
    return turns[0]?.model.opened?.request?.branch;
  };
  const running = () => turns.findLast((t) => t.runs && t.model.agent) ?? turns.findLast((t) => t.runs);
  const compose = new Compose({
    thread: id, running,
    branch: () => branched(),
    sent: (asked) => {
      pane.asked();
      const [a] = asked;
      if (!a) return;
      if (a.thread !== id) { // it branched anew
        if (!signal.aborted) location.hash = '#/conversations/' + encodeURIComponent(a.thread);
        return;
      }
      pinned = true;
      take([{ id: a.id, state: 'queued' }]);
    },
  });
  pane.root.replaceChildren(h('div', { class: 'top' }, pane.back(), title, pane.actions(id)), scroll, down, compose.element);
  pane.agents((all) => compose.know(all));

  /** @type {Set<Turn>} */
  const changed = new Set();
  const paint = painter(() => {
    if (signal.aborted) return;
    trim();
    for (const t of changed) t.paint();
    changed.clear();
    compose.offer();
    const last = turns.findLast((x) => x.model.agent);
    if (last) compose.last(last.model.agent);
    const now = reader.lost || why || (!listed ? 'Reading…' : !turns.length ? 'Nothing was said here yet that you may read. Ask below.' :
      turns.length >= MOST ? count(turns.length) + ' turns are shown; older ones are among its tasks.' : !older && turns.length > PAGE ? 'The beginning. ' + count(turns.length) + ' turns.' : '');
    if (state.textContent !== now) state.textContent = now;
    keepEnd();
  });
  const reader = new Reader(signal, (turn) => {
    if (!turn.element.isConnected) return;
    changed.add(turn);
    if (turn.runs && turn.model.asked > turn.told) {
      turn.told = turn.model.asked;
      inbox.now();
    }
    paint();
  });
  /** @param {any} task of the list that is not known yet @returns {Turn} */
  const add = (task) => {
    const turn = new Turn(task.id, task.state, { foot, stop: cancel });
    known.set(task.id, turn);
    turns.push(turn);
    turns.sort((x, y) => (x.id < y.id ? -1 : 1));
    return turn;
  };
  /** Reads turns, and shows them where they belong. @param {Turn[]} fresh */
  const show = async (fresh) => {
    const all = Promise.all(fresh.map((t) => reader.read(t)));
    await Promise.race([all, new Promise((done) => setTimeout(done, PATIENCE))]);
    if (signal.aborted) return;
    for (const t of fresh) t.paint();
    const height = scroll.scrollHeight, from = scroll.scrollTop;
    let grown = 0;
    for (const t of fresh.toReversed()) {
      const item = h('li', {}, t.element), next = turns[turns.indexOf(t) + 1]?.element.parentElement;
      if (next?.isConnected) {
        list.insertBefore(item, next);
        grown = 1;
      } else list.append(item);
    }
    place();
    if (grown && !pinned) scroll.scrollTop = from + scroll.scrollHeight - height; // what is read stays where it is
    keepEnd();
    paint();
  };
  /** What can be done with a turn that has ended. @param {Turn} t */
  const foot = (t) => [
    h('button', { type: 'button', class: 'link', 'data-do': 'copy', click: (/** @type {Event} */ e) => copy(t, /** @type {HTMLElement} */ (e.target)) }, 'Copy the answer'),
    h('button', { type: 'button', class: 'link', 'data-do': 'again', click: () => again(t) }, 'Ask again'),
    h('a', { href: '#/new?branch=' + encodeURIComponent(t.id) + '&to=' + encodeURIComponent(t.model.agent) }, 'Branch from here'),
    ...(t.model.state === 'failed' ? [h('button', { type: 'button', class: 'link', 'data-do': 'elsewhere', click: () => compose.elsewhere(t.model.opened?.request?.content ?? '', t.model.agent) }, 'Ask another agent')] : []),
  ];
  /** @param {Turn} t */
  const again = async (t) => {
    try {
      const r = await post('/v1/tasks', { again: t.id });
      pinned = true;
      take([{ id: r.id, state: 'queued' }]);
    } catch (e) {
      if (!(e instanceof Refusal)) throw e;
      compose.note.textContent = 'Refused: ' + e.message;
    }
  };

  const place = () => { for (const t of turns) t.place(inbox.items); };
  inbox.subscribe(() => {
    place();
    keepEnd();
  }, signal);

  /** At the end, what is far above it is let go of; it is read again as one reads up. */
  const trim = () => {
    if (!pinned || reading || turns.length <= 4 * PAGE) return;
    const running = turns.findIndex((t) => t.runs); // which is followed
    for (const t of turns.splice(0, Math.min(turns.length - 2 * PAGE, running < 0 ? Infinity : running))) {
      known.delete(t.id);
      t.element.parentElement?.remove();
    }
    before = turns[0]?.id ?? '';
    older = true;
  };
  // The end stays in view as long as it is.
  const keepEnd = () => {
    const held = list.querySelector('.card:hover') ?? (document.activeElement?.closest('.card') && list.contains(document.activeElement));
    if (pinned && !held) scroll.scrollTop = scroll.scrollHeight; // no card moves under a hand
    down.hidden = pinned;
  };
  const toEnd = () => {
    pinned = true;
    keepEnd();
    compose.words.focus();
  };
  const scrolled = () => {
    // Turns that come into view may be longer than they were taken for: only a reader who goes up leaves the end.
    if (scroll.scrollTop + scroll.clientHeight >= scroll.scrollHeight - NEAR) pinned = true;
    else if (scroll.scrollTop < top - 2) pinned = false;
    top = scroll.scrollTop;
    down.hidden = pinned;
    if (older && scroll.scrollTop < 2 * scroll.clientHeight) more();
  };
  const resized = new ResizeObserver(() => keepEnd());
  resized.observe(scroll);
  resized.observe(list);
  signal.addEventListener('abort', () => resized.disconnect());

  /** @param {number} limit @param {string} [from] @returns {Promise<any>} */
  const page = async (limit, from) => {
    const q = new URLSearchParams({ thread: id, limit: String(limit), ...(from ? { before: from } : {}) });
    return get('/v1/tasks?' + q, signal);
  };
  /** Takes the tasks of a list that are not known yet. @param {any[]} tasks the newest first */
  const take = async (tasks) => {
    const fresh = tasks.filter((t) => t.intent !== 'notify' && !known.has(t.id)).reverse();
    if (fresh.length) await show(fresh.map(add));
  };
  /** Takes what was asked since the last one that is known. */
  const newer = async () => {
    for (let from = ''; ;) {
      const r = await page(PAGE, from);
      const met = r.tasks.some((/** @type {any} */ t) => known.has(t.id));
      await take(turns.length ? r.tasks.filter((/** @type {any} */ t) => t.id > (turns[0]?.id ?? '')) : r.tasks);
      from = r.before ?? '';
      if (met || !from || signal.aborted) return;
    }
  };
  /** Reads the turns before those that are shown. */
  const more = async () => {
    if (reading || !older || turns.length >= MOST) return;
    reading = true;
    try {
      const r = await page(turns.length ? PAGE : FIRST, before);
      before = r.before ?? '';
      older = before !== '';
      await take(r.tasks);
      why = '';
    } catch (e) {
      if (signal.aborted) return;
      if (!(e instanceof Refusal)) throw e;
      older = e.status === 0 || e.status >= 500; // it is read once one goes on
      why = e.message;
    } finally {
      reading = false;
      paint();
    }
    if (listed && !why) setTimeout(scrolled); // what was read may be less than what there is room for
  };
  const start = async () => {
    await more();
    listed = true;
    while (at && !known.has(at) && older && !why && turns.length < MOST && !signal.aborted) await more();
    const wanted = known.get(at)?.element;
    if (wanted) {
      pinned = false;
      wanted.scrollIntoView({ block: 'start' });
      wanted.focus({ preventScroll: true });
    }
    paint();
    scrolled();
    const first = turns[0]?.model.opened?.request?.content;
    if (first && !older && !pane.titleOf(id)) name(first);
    if (!document.activeElement || document.activeElement === document.body || !document.activeElement.isConnected) (pane.fresh ? compose.words : scroll).focus({ preventScroll: true });
    poll(1500, signal, async () => {
      if (why) await more();
      await newer();
      why = '';
      paint();
    }, () => {});
  };
  /** @param {string} words */
  const name = (words) => {
    title.textContent = visible(short(words, 80));
    title.title = id;
    pane.title(title.textContent);
  };
  pane.named((words) => name(words), id);
  const clock = setInterval(() => { for (const t of turns) if (t.runs || t.cards.size) t.tick(); }, 1000);
  signal.addEventListener('abort', () => clearInterval(clock));
  start();

  return { ...cardKeys(list), e: toEnd };
}

/** @param {Turn} t @param {HTMLElement} button */
async function copy(t, button) {
  button.textContent = await copied(t.answer(), t.element) ? 'Copied' : 'Selected';
}
