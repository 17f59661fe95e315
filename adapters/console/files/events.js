// What an event says in one line.

import { short } from './dom.js';

/**
 * An event of a task, as the hub writes it.
 * @typedef {{task?: string, cursor?: string, seq: number, epoch: number, at: string, kind: string, body: any, foreign?: any}} Event
 */

/** Every kind of event, in the order in which they tend to happen. */
export const KINDS = ['opened', 'assigned', 'accepted', 'session_started', 'session_lost', 'thinking', 'text', 'tool_call', 'tool_state',
  'tool_result', 'approval_requested', 'approval_decided', 'question_asked', 'question_answered', 'injected', 'injection_answered', 'file', 'usage', 'retrying',
  'cancel_requested', 'foreign', 'done', 'failed', 'cancelled'];

export const ENDS = new Set(['done', 'failed', 'cancelled']);

/**
 * At most some 300 letters.
 * @param {Event} e
 * @returns {string}
 */
export function summary(e) {
  const b = e.body ?? {};
  /** @param {any} text */
  const s = (text) => short(String(text ?? '').slice(0, 300).replace(/\s+/g, ' '), 200);
  switch (e.kind) {
    case 'opened': return (b.from?.id ?? '') + ' ' + (b.request?.intent ?? 'ask') + ' ' + (b.request?.to ?? '') + ': ' + s(b.request?.content || noticeOf(b.request?.notice) || dataOf(b.request?.data));
    case 'assigned': return 'to ' + s(b.agent) + (b.attempt > 1 ? ', attempt ' + b.attempt : '');
    case 'accepted': return b.estimate_ns ? 'estimated ' + Math.round(b.estimate_ns / 1e6) + ' ms' : '';
    case 'session_started': return s(b.session);
    case 'session_lost': case 'cancelled': return s(b.reason);
    case 'thinking': case 'text': return s(b.text);
    case 'tool_call': return s(b.name) + ' ' + s(b.input);
    case 'tool_state': return s(b.id) + ' ' + s(b.state) + ' ' + s(b.detail);
    case 'tool_result': return (b.is_error ? 'error: ' : '') + s(b.output);
    case 'approval_requested': return s(b.name) + ' ' + s(b.input);
    case 'approval_decided': return (b.approved ? 'approved' : 'denied') + ' by ' + s(b.by) + (b.reason ? ': ' + s(b.reason) : '');
    case 'question_asked': return s(b.question) + s((b.options ?? []).map((/** @type {any} */ o) => ' [' + o.label + ']').join(''));
    case 'question_answered': return s([...(b.selected ?? []), b.content && dataOf(b.content), b.custom_text, b.reason].filter(Boolean).join(', ')) + (b.by ? ' by ' + s(b.by) : '');
    case 'injected': return s(b.content);
    case 'injection_answered': return (b.accepted ? 'accepted' : 'refused') + ' ' + s(b.reason);
    case 'file': return s(b.name);
    case 'usage': return (b.input ?? 0) + ' in, ' + (b.output ?? 0) + ' out';
    case 'retrying': return 'attempt ' + b.attempt + ' at ' + s(b.agent) + ': ' + s(b.fault?.message);
    case 'cancel_requested': return 'by ' + s(b.by) + ' ' + s(b.reason);
    case 'foreign': return s(b.dialect) + ' ' + s(b.name);
    case 'done': return b.truncated ? 'truncated' : s(dataOf(b.data));
    case 'failed': return s(b.fault?.code) + ': ' + s(b.fault?.message);
    default: return s(JSON.stringify(b));
  }
}

/** The topic and the data of a notice; '' for none. @param {any} notice */
function noticeOf(notice) {
  return notice ? notice.topic + ' ' + dataOf(notice.data) : '';
}

/** @param {any} data */
function dataOf(data) {
  return data === undefined || data === null ? '' : JSON.stringify(data)?.slice(0, 300);
}
