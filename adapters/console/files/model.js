// A task, put together from its events.

import { ENDS, summary } from './events.js';
import { textOf } from './letters.js';

const BODIES = 16 << 20; // letters of JSON of whole events that are kept
const LINES = 200000; // events that are listed

/**
 * A part of the conversation. Text that follows on text is one part.
 * @typedef {{kind: string, at: string, end: string, who: string, text: string, body?: any, data?: string, tool?: Tool, answer?: any}} Part data is JSON as it was written, answer what became of a question
 */

/**
 * @typedef {Object} Tool
 * @property {string} id
 * @property {string} name
 * @property {string} input
 * @property {string} parent the call that it is a part of, where an agent below the agent made it; '' for none
 * @property {string} at
 * @property {string} [end]
 * @property {string} state
 * @property {string} output
 * @property {boolean} failed
 * @property {Approval[]} approvals what a person was asked to decide, in order
 */

/** What is decided is the name and the input of the request, whatever the call said. @typedef {{name: string, input: string, sha: string|undefined, at: string, decision?: any, decidedAt?: string}} Approval */

/** A line of the list of events, with the text of the whole event as long as there is room. @typedef {{at: string, seq: number, kind: string, text: string, whole: string|undefined}} Line */

export class Model {
  /** @param {boolean} [listed] whether its events are listed, each with what it said */
  constructor(listed = true) {
    this.listed = listed;
    /** When its first event was. */
    this.firstAt = '';
  }

  /** @type {any} */
  opened = undefined;
  state = 'queued';
  agent = '';
  /** @type {any} */
  end = undefined;
  endAt = '';
  lastAt = '';
  /** @type {{agent: string, at: string, end?: string, fault?: any}[]} */
  attempts = [];
  /** @type {Part[]} */
  parts = [];
  /** @type {Map<string, Tool>} */
  tools = new Map();
  /** What people were asked, by id. @type {Map<string, Part>} */
  questions = new Map();
  /** How often a person was asked for something. */
  asked = 0;
  /** @type {Line[]} */
  lines = [];
  usage = { input: 0, output: 0, nanos: 0, currency: '' };
  kept = 0;
  /** Events of which only a line is kept. */
  cut = 0;
  /** Events that are not even listed. */
  unlisted = 0;
  version = 0;

  /** @param {import('./events.js').Event} e @param {string} text its JSON */
  add(e, text) {
    const size = text.length;
    this.version++;
    const b = e.body ?? {};
    this.lastAt = e.at;
    this.firstAt ||= e.at;
    if (this.listed) this.list(e, text, size);
    switch (e.kind) {
      case 'opened':
        this.opened = b;
        this.part(e, b.from?.id ?? '', b.request?.content || (b.request?.notice?.topic ?? ''), b,
          b.request?.notice?.data !== undefined ? textOf(text, 'body', 'request', 'notice', 'data') : b.request?.data !== undefined ? textOf(text, 'body', 'request', 'data') : undefined);
        break;
      case 'assigned':
        this.state = 'running';
        this.agent = b.agent;
        this.attempts.push({ agent: b.agent, at: e.at });
        if (b.handover) this.parts.push({ kind: 'handover', at: e.at, end: e.at, who: b.agent, text: handed(b.handover), body: b });
        break;
      case 'text': case 'thinking': {
        const last = this.parts[this.parts.length - 1];
        if (last?.kind === e.kind && last.who === this.agent) {
          last.text += b.text;
          last.end = e.at;
        } else this.part(e, this.agent, b.text);
        break;
      }
      case 'tool_call': {
        if (this.tools.get(b.id)?.end) this.tools.delete(b.id); // another call with the id of one that has ended
        const tool = this.tool(b.id, e);
        tool.name = b.name;
        tool.input = b.input;
        tool.parent = b.parent ?? '';
        break;
      }
      case 'tool_state': {
        const tool = this.tool(b.id, e);
        tool.state = b.state;
        if (['completed', 'failed', 'denied', 'timeout', 'cancelled'].includes(b.state)) tool.end ??= e.at;
        if (b.state === 'failed' || b.state === 'timeout') tool.failed = true;
        break;
      }
      case 'tool_result': {
        const tool = this.tool(b.id, e);
        tool.output = b.output;
        tool.failed = b.is_error === true;
        tool.state = tool.failed ? 'failed' : 'completed';
        tool.end = e.at;
        break;
      }
      case 'approval_requested': {
        const tool = this.tool(b.id, e);
        tool.name ||= b.name;
        tool.input ||= b.input;
        tool.approvals.push({ name: b.name, input: b.input, sha: b.input_sha256, at: e.at });
        tool.state = 'awaiting_approval';
        this.asked++;
        break;
      }
      case 'approval_decided': {
        const tool = this.tools.get(b.id), asked = tool?.approvals[tool.approvals.length - 1];
        if (tool && asked && !asked.decision) {
          asked.decision = b;
          asked.decidedAt = e.at;
          tool.state = b.approved ? 'running' : 'denied';
        } else this.part(e, b.by, summary(e), b);
        break;
      }
      case 'question_asked':
        this.part(e, this.agent, b.question, b);
        this.asked++;
        this.questions.set(b.id, /** @type {Part} */ (this.parts[this.parts.length - 1]));
        break;
      case 'question_answered': {
        const asked = this.questions.get(b.id);
        if (asked) Object.assign(asked, { answer: b, end: e.at });
        else this.part(e, b.answered ? b.by : this.agent, summary(e), b);
        break;
      }
      case 'usage':
        this.usage.input += b.input ?? 0;
        this.usage.output += b.output ?? 0;
        if (b.cost && (!this.usage.currency || this.usage.currency === b.cost.currency)) {
          this.usage.currency = b.cost.currency;
          this.usage.nanos += b.cost.nanos ?? 0;
        }
        break;
      case 'retrying': {
        const last = this.attempts[this.attempts.length - 1];
        if (last) {
          last.end = e.at;
          last.fault = b.fault;
        }
        this.part(e, 'hub', summary(e), b);
        break;
      }
      case 'accepted': case 'session_started': case 'foreign':
        break;
      default:
        if (ENDS.has(e.kind)) {
          this.state = e.kind;
          this.end = b;
          for (const tool of this.tools.values()) tool.end ??= e.at;
          this.endAt = e.at;
        }
        this.part(e, this.agent, e.kind === 'done' ? b.text ?? '' : summary(e), b, b.data === undefined || e.kind === 'file' ? undefined : textOf(text, 'body', 'data'));
    }
  }

  /** @param {import('./events.js').Event} e @param {string} text @param {number} size */
  list(e, text, size) {
    const keep = this.kept + size <= BODIES;
    if (keep) this.kept += size;
    else this.cut++;
    if (this.lines.length < LINES || ENDS.has(e.kind)) this.lines.push({ at: e.at, seq: e.seq, kind: e.kind, text: summary(e), whole: keep ? text : undefined });
    else this.unlisted++;
  }

  /** @param {any} gap */
  gap(gap) {
    this.version++;
    const text = 'events ' + gap.from + (gap.to ? ' to ' + gap.to : ' and later ones') + ' are no longer kept';
    if (this.listed) this.lines.push({ at: this.lastAt, seq: gap.from, kind: 'gap', text, whole: undefined });
    this.parts.push({ kind: 'gap', at: this.lastAt, end: this.lastAt, who: 'hub', text });
  }

  /** @param {import('./events.js').Event} e @param {string} who @param {string} text @param {any} [body] @param {string} [data] */
  part(e, who, text, body, data) {
    this.parts.push({ kind: e.kind, at: e.at, end: e.at, who, text, body, data });
  }

  /** The tool call with an id, begun by this event if it is the first of it. @param {string} id @param {import('./events.js').Event} e */
  tool(id, e) {
    let tool = this.tools.get(id);
    if (!tool) {
      tool = { id, name: '', input: '', parent: '', at: e.at, state: 'pending', output: '', failed: false, approvals: [] };
      this.tools.set(id, tool);
      this.parts.push({ kind: 'tool', at: e.at, end: e.at, who: this.agent, text: '', tool });
    }
    return tool;
  }
}

/** What an agent was given of what another one had. @param {any} h */
function handed(h) {
  /** @param {number} n @param {string} what */
  const of = (n, what) => n + ' ' + what + (n === 1 ? '' : 's');
  return 'handed over from ' + h.from + ' with ' + of(h.turns, 'turn') + (h.files ? ' and ' + of(h.files, 'file') : '') + (h.left_out ? ', ' + h.left_out + ' left out' : '');
}
