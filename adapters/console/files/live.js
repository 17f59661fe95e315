// Live: the events of all tasks as they come. The filters stand in the address.

import { clock, count, h, painter, say, taskLink } from './dom.js';
import { visible } from './letters.js';
import { Refusal, follow, get } from './api.js';
import { KINDS, summary } from './events.js';
import { List, ROW } from './list.js';

const KEPT = 20000; // events
const RUNNING = 5000; // tasks of which something is known

/** @typedef {{at: string, task: string, agent: string, kind: string, text: string}} Line */

/** @param {import('./app.js').Page} page */
export function show(page) {
  /** @type {Line[]} */
  let all = [], lines = /** @type {Line[]} */ ([]);
  let paused = false, refused = false, dropped = 0, unseen = 0, fewer = 0, cutAt = '';
  /** What is known of the latest tasks: the agent, and the cursor of the last event that was taken. @type {Map<string, {agent: string, cursor: string}>} */
  const known = new Map();

  const state = h('p', { class: 'state', role: 'status' }, 'Connecting…');
  /** @type {Object<string, HTMLInputElement|HTMLSelectElement>} */
  const fields = {
    agent: /** @type {HTMLInputElement} */ (h('input', { value: page.query.get('agent') ?? '', size: 14 })),
    task: /** @type {HTMLInputElement} */ (h('input', { value: page.query.get('task') ?? '', size: 14 })),
    kind: /** @type {HTMLSelectElement} */ (h('select', {}, h('option', { value: '' }, 'every kind'), KINDS.map((k) => h('option', { value: k }, k)))),
    text: /** @type {HTMLInputElement} */ (h('input', { type: 'search', value: page.query.get('text') ?? '', size: 18 })),
  };
  /** @type {HTMLSelectElement} */ (fields.kind).value = page.query.get('kind') ?? '';
  const button = h('button', { type: 'button', 'aria-pressed': 'false', click: () => toggle() }, 'Pause');
  const list = new List('Events', (/** @type {Line} */ l) => [
    h('span', { class: 'at' }, clock(l.at)), taskLink(l.task), h('span', { class: 'agent' }, l.agent),
    h('span', { class: 'kind ' + l.kind }, l.kind), h('span', { class: 'text' }, visible(l.text))]);
  page.signal.addEventListener('abort', () => list.close());
  page.root.append(h('h1', {}, 'Live'),
    h('form', { class: 'filters', role: 'search', 'aria-label': 'Filters', submit: (/** @type {Event} */ e) => e.preventDefault() },
      Object.entries(fields).map(([name, f]) => h('label', {}, name, ' ', f)), button),
    state, list.element);

  const filter = () => Object.fromEntries(Object.entries(fields).map(([k, f]) => [k, f.value.trim()]));
  let wanted = filter();
  /** @param {Line} l */
  const matches = (l) => (!wanted.agent || l.agent === wanted.agent) && (!wanted.kind || l.kind === wanted.kind) &&
    (!wanted.task || l.task.includes(wanted.task)) && (!wanted.text || l.text.toLowerCase().includes(wanted.text.toLowerCase()));

  const paint = painter(() => {
    if (page.signal.aborted || refused) return;
    const e = list.element;
    const atEnd = e.scrollTop + e.clientHeight >= e.scrollHeight - 40;
    if (!paused) {
      if (unseen) {
        unseen = 0;
        lines = all.filter(matches);
      }
      list.show(lines);
      if (fewer && !atEnd) { // what is read stays where it is
        e.scrollTop = Math.max(0, e.scrollTop - fewer * ROW);
        list.paint();
      }
      fewer = 0;
      if (atEnd && e.scrollTop + e.clientHeight < e.scrollHeight) {
        e.scrollTop = e.scrollHeight;
        list.paint();
      }
    }
    state.textContent = (paused ? 'Paused, ' + count(unseen) + ' more have come. ' : '') + count(lines.length) + ' of ' + count(all.length) + ' events shown.' +
      (dropped ? ' ' + count(dropped) + ' older ones are no longer kept here.' : '') + (cutAt ? ' ' + cutAt : '');
  });

  const toggle = () => {
    paused = !paused;
    button.textContent = paused ? 'Go on' : 'Pause';
    button.setAttribute('aria-pressed', String(paused));
    say(paused ? 'Paused' : 'Going on');
    if (paused) lines = lines.slice();
    paint();
  };
  const refilter = () => {
    wanted = filter();
    page.address(wanted);
    lines = all.filter(matches);
    unseen = 0;
    list.show(lines);
    paint();
  };
  for (const f of Object.values(fields)) f.addEventListener('input', refilter);

  /** @param {Line} l */
  const take = (l) => {
    all.push(l);
    if (all.length > KEPT * 1.1) {
      const gone = all.length - KEPT;
      all = all.slice(gone);
      dropped += gone;
      if (!paused) {
        const before = lines.length + (matches(l) ? 1 : 0);
        lines = all.filter(matches);
        fewer += before - lines.length;
      }
    } else if (!paused && matches(l)) lines.push(l);
    if (paused) unseen++;
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
        take({ at: new Date().toISOString(), task: d.task ?? '', agent: '', kind: 'gap', text: lost(d) });
      } else if (m.event === 'shutdown') {
        take({ at: new Date().toISOString(), task: '', agent: '', kind: 'shutdown', text: d.reason });
      } else {
        const task = known.get(d.task) ?? { agent: '', cursor: '' };
        if (!after(d.cursor, task.cursor)) return; // what a resumed stream repeats
        if (d.kind === 'assigned') task.agent = d.body.agent;
        task.cursor = d.cursor;
        known.delete(d.task);
        known.set(d.task, task);
        if (known.size > RUNNING) known.delete(/** @type {string} */ (known.keys().next().value));
        take({ at: d.at, task: d.task, agent: task.agent, kind: d.kind, text: summary(d) });
      }
      paint();
    },
  }).catch((e) => {
    if (!(e instanceof Refusal)) throw e;
    refused = true;
    state.replaceChildren((e.status === 403 ? '' : 'The events cannot be read (' + e.status + '): ') + e.message + '. ', h('a', { href: '#/tasks' }, 'See the tasks that you may read'));
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

/** What a gap of the stream says. @param {any} gap */
function lost(gap) {
  if (gap.after) return 'The hub does not know what came after task ' + gap.after + ': see the list of tasks.';
  return 'The events from ' + gap.from + (gap.to ? ' to ' + gap.to : ' to the end of the task') + ' are no longer kept.';
}
