// What can be taken away from a task: its events, its frames, and its request as a command.

import { h } from './dom.js';
import { Refusal, file, hasToken, segment } from './api.js';

/** @param {import('./model.js').Model} m @param {string} id */
export function exports(m, id) {
  const note = h('span', { class: 'hint', role: 'status' });
  /** @param {string} label @param {() => Promise<string>} what */
  const button = (label, what) => h('button', { type: 'button', class: 'link', click: async () => {
    note.textContent = '…';
    try {
      note.textContent = await what();
    } catch (e) {
      if (!(e instanceof Refusal)) throw e;
      note.textContent = e.message;
    }
  } }, label);
  return h('p', { class: 'exports' },
    button('Save the events', () => save('/v1/tasks/' + segment(id) + '/events?follow=false', 'application/x-ndjson', id + '.jsonl')),
    button('Save the frames', () => save('/v1/tasks/' + segment(id) + '/frames', 'application/json', id + '-frames.json')),
    button('Copy the request as curl', async () => {
      if (!m.opened) return 'The request is not known.';
      await navigator.clipboard.writeText(curl(m.opened.request ?? {}));
      return 'Copied.' + (hasToken() ? ' It takes your token from DRAGOMAN_TOKEN.' : '');
    }), note);
}

/**
 * Saves an answer as a file.
 * @param {string} path
 * @param {string} accept
 * @param {string} name
 */
async function save(path, accept, name) {
  const url = URL.createObjectURL(await file(path, accept));
  h('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
  return 'Saved as ' + name + '.';
}

/** What is the same in the interface of the hub, whatever dialect it came in. */
const MEMBERS = ['to', 'intent', 'content', 'data', 'attachments', 'context', 'thread', 'domain', 'priority', 'max_tokens', 'options', 'report_back'];

const NOTICE = ['to', 'topic', 'data', 'importance'];

/** @param {any} request */
function curl(request) {
  const notice = request.intent === 'notify';
  const from = notice ? { to: request.to, ...request.notice } : request;
  const body = Object.fromEntries((notice ? NOTICE : MEMBERS).filter((k) => from[k] !== undefined && from[k] !== null && from[k] !== '').map((k) => [k, from[k]]));
  return 'curl ' + (hasToken() ? '-H "Authorization: Bearer $DRAGOMAN_TOKEN" ' : '') + '--json ' + quote(JSON.stringify(body)) + ' ' + quote(location.origin + (notice ? '/v1/notices' : '/v1/tasks?wait=true'));
}

/** A word of a shell, whatever is in it. @param {string} text */
function quote(text) {
  return "'" + text.replaceAll("'", "'\\''") + "'";
}
