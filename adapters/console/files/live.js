// Live: the events of all tasks as they come. The filters stand in the address.

import { clock, count, h, painter, say, taskLink } from './dom.js';
import { visible } from './letters.js';
import { Refusal, follow, get, refusal } from './api.js';
import { KINDS, summary } from './events.js';
import { filters } from './filters.js';
import { List } from './list.js';

const KEPT = 20000; // rows
const RUNNING = 5000; // tasks of which something is known
const WORDS = 1000; // letters of a row that grows: the latest

/**
 * A row: an event, or n of them that are the words of a task one after the other.
 * @typedef {{at: string, task: string, agent: string, kind: string, text: string, n: number}} Line
 */

/** @param {string} kind */
const grows = (kind) => kind === 'text' || kind === 'thinking';

/** How a kind of event is called on the screen. @param {string} kind */
const called = (kind) => kind.replaceAll('_', ' ');

/** @param {Line[]} lines */
const eventsIn = (lines) => lines.reduce((n, l) => n + l.n, 0);

/** @param {import('./app.js').Page} page */
export function show(page) {
  /** @type {Line[]} */
  let all = [], lines = /** @type {Line[]} */ ([]);
  let paused = false, refused = false, dropped = 0, unseen = 0, fewer = 0, cutAt = '', again = false;
  /** What is known of the latest tasks: the agent, the cursor of the last event that was taken, and the row that grows. @type {Map<string, {agent: string, cursor: string, line?: Line}>} */
  const known = new Map();

  const state = h('p', { class: 'state', role: 'status' }, 'Connecting…');
  const next = h('p', { class: 'empty', hidden: true }, 'What happens from now on comes here. ', h('a', { href: '#/new' }, 'Ask an agent'), ', or see ', h('a', { href: '#/tasks' }, 'the tasks until now'), '.');
  const button = h('button', { type: 'button', 'aria-pressed': 'false', click: () => toggle() }, 'Pause');
  const list = new List('Events', (/** @type {Line} */ l) => [
    h('span', { class: 'at' }, clock(l.at)), taskLink(l.task), h('span', { class: 'agent' }, l.agent),
    h('span', { class: 'kind ' + l.kind }, called(l.kind)), h('span', { class: 'text' + (l.n > 1 ? ' grows' : '') }, h('span', {}, visible(l.text)))]);
  page.signal.addEventListener('abort', () => list.close());
  const filter = filters(page, [
    { name: 'agent', label: 'Agent' }, { name: 'task', label: 'Task' },
    { name: 'kind', label: 'Event', options: [['', 'every event'], ...KINDS.map((k) => /** @type {[string, string]} */ ([k, called(k)]))] },
    { name: 'text', label: 'Find', size: 18 },
  ], () => refilter(), button);
  page.root.append(h('h1', {}, 'Live'), filter.element, state, next, list.element);

  let wanted = filter.values();
  /** @param {Line} l */
  const matches = (l) => (!wanted['agent'] || l.agent === wanted['agent']) && (!wanted['kind'] || l.kind === wanted['kind']) &&
    (!wanted['task'] || l.task.includes(wanted['task'])) && (!wanted['text'] || l.text.toLowerCase().includes(wanted['text'].toLowerCase()));

  const paint = painter(() => {
    if (page.signal.aborted || refused) return;
    const e = list.element;
    const atEnd = e.scrollTop + e.clientHeight >= e.scrollHeight - 40;
    if (!paused) {
      if (unseen || again) {
        unseen = 0;
        again = false;
        lines = all.filter(matches);
      }
      list.show(lines);
      if (fewer && !atEnd) { // what is read stays where it is
        e.scrollTop = Math.max(0, e.scrollTop - fewer * list.row);
        list.paint();
      }
      fewer = 0;
      if (atEnd && e.scrollTop + e.clientHeight < e.scrollHeight) {
        e.scrollTop = e.scrollHeight;
        list.paint();
      }
    }
    next.hidden = all.length > 0;
    state.textContent = (paused ? 'Paused, ' + count(unseen) + ' more have come. ' : '') + count(eventsIn(lines)) + ' of ' + count(eventsIn(all)) + ' events shown.' +
      (dropped ? ' ' + count(dropped) + ' older ones are no longer kept here.' : '') + (cutAt ? ' ' + cutAt : '');
  });

  const toggle = () => {
    paused = !paused;
    button.textContent = paused ? 'Go on' : 'Pause';
    button.setAttribute('aria-pressed', String(paused));
    say(paused ? 'Paused' : 'Going on');
    if (paused) seal();
    paint();
  };
  /** What is shown stays as it is: other words come into other rows. */
  const seal = () => {
    lines = lines.slice();
    for (const task of known.values()) task.line = undefined;
  };
  const refilter = () => {
    wanted = filter.values();
    lines = all.filter(matches);
    if (paused) seal();
    unseen = 0;
    again = false;
    list.show(lines);
    paint();
  };

  /** @param {Line} l */
  const take = (l) => {
    if (paused) unseen++;
    all.push(l);
    if (all.length > KEPT * 1.1) {
      const gone = all.length - KEPT;
      for (const old of all.slice(0, gone)) {
        dropped += old.n;
        const task = known.get(old.task);
        if (task?.line === old) task.line = undefined;
      }
      all = all.slice(gone);
      if (!paused) {
        const before = lines.length + (matches(l) ? 1 : 0);
        lines = all.filter(matches);
        fewer += before - lines.length;
      }
    } else if (!paused && matches(l)) lines.push(l);
  };
  /** Adds words to the row that the last ones of the task are in. @param {Line} l @param {string} words */
  const grow = (l, words) => {
    const fits = matches(l);
    l.text = latest(l.text + words);
    l.n++;
    if (paused) unseen++;
    else if (!fits && matches(l)) again = true;
    list.changed(l);
  };

  /** The agents of what runs already: events of it do not say whose they are. */
  const agents = async () => {
    try {
      for (let before = ''; known.size < RUNNING;) {
        const r = await get('/v1/tasks?state=running&limit=500' + before, page.signal);
        const of = new Map(r.tasks.filter((/** @type {any} */ t) => t.agent).map((/** @type {any} */ t) => [t.id, t.agent]));
        for (const [id, agent] of of) {
          const task = known.get(id);
          if (!task) known.set(id, { agent, cursor: '' });
          else task.agent ||= agent;
        }
        for (const l of all) l.agent ||= of.get(l.task) ?? '';
        if (!r.before) break;
        before = '&before=' + encodeURIComponent(r.before);
      }
      if (!paused) lines = all.filter(matches);
      paint();
    } catch (e) {
      if (!(e instanceof Refusal) && !page.signal.aborted) throw e;
    }
  };

  follow('/v1/events', {
    signal: page.signal,
    open(resumed, exact) {
      if (resumed) cutAt = exact ? '' : 'Events from before ' + clock(new Date()) + ' may be missing.';
      agents();
      paint();
    },
    cut() {
      cutAt = 'The connection was lost at ' + clock(new Date()) + '.';
      paint();
    },
    event(m) {
      const d = m.data;
      if (m.event === 'gap') {
        take({ at: new Date().toISOString(), task: d.task ?? '', agent: '', kind: 'gap', text: lost(d), n: 1 });
        if (d.task && known.has(d.task)) /** @type {any} */ (known.get(d.task)).line = undefined;
      } else if (m.event === 'shutdown') {
        take({ at: new Date().toISOString(), task: '', agent: '', kind: 'shutdown', text: d.reason, n: 1 });
      } else {
        const task = known.get(d.task) ?? { agent: '', cursor: '' };
        if (!after(d.cursor, task.cursor)) return; // what a resumed stream repeats
        if (d.kind === 'assigned') task.agent = d.body.agent;
        task.cursor = d.cursor;
        known.delete(d.task);
        known.set(d.task, task);
        if (known.size > RUNNING) known.delete(/** @type {string} */ (known.keys().next().value));
        const words = grows(d.kind) ? latest(String(d.body.text ?? '')) : '';
        if (task.line && task.line.kind === d.kind) grow(task.line, words);
        else {
          const line = { at: d.at, task: d.task, agent: task.agent, kind: d.kind, text: grows(d.kind) ? words : summary(d), n: 1 };
          task.line = grows(d.kind) ? line : undefined;
          take(line);
        }
      }
      paint();
    },
  }).catch((e) => {
    if (!(e instanceof Refusal)) throw e;
    refused = true;
    state.replaceChildren((e.status === 403 ? '' : 'The events cannot be read (' + e.status + '): ') + refusal(e) + ' ', h('a', { href: '#/tasks' }, 'See the tasks that you may read'));
    next.remove();
    list.element.remove();
  });
  page.keys = { p: toggle };
}

/** Whether a cursor, such as 1.4, comes after another of the same task. @param {string} cursor @param {string} last */
function after(cursor, last) {
  const [epoch = 0, seq = 0] = cursor.split('.').map(Number);
  const [lastEpoch = 0, lastSeq = 0] = last.split('.').map(Number);
  return epoch > lastEpoch || epoch === lastEpoch && seq > lastSeq;
}

/** The latest letters of words, in one line. @param {string} words */
function latest(words) {
  return words.length > WORDS ? '…' + words.slice(1 - WORDS).replace(/^[\udc00-\udfff]/, '').replace(/\s+/g, ' ') : words.replace(/\s+/g, ' ');
}

/** What a gap of the stream says. @param {any} gap */
function lost(gap) {
  if (gap.after) return 'The hub does not know what came after task ' + gap.after + ': see the list of tasks.';
  return 'The events from ' + gap.from + (gap.to ? ' to ' + gap.to : ' to the end of the task') + ' are no longer kept.';
}
