// The REST interface of the hub: requests with the token of this tab, problems as errors, and
// streams of server-sent events, which resume where they were cut.

const KEY = 'dragoman.token';

/** The answer to a request that was refused, or that did not reach the hub (status 0). */
export class Refusal extends Error {
  /** @param {number} status @param {string} code @param {string} detail */
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/** Why a view for operators is refused, with the right that is missing. @param {Error} e */
export const refusal = (e) => e.message + (e instanceof Refusal && e.status === 403 ? '. Your credential lacks the right operate' : '') + '.';

/** Where the page listens: what happens to the connection and to the credential. */
export const listeners = {
  /** @type {(why: string) => void} */
  unauthenticated: () => {},
  /** @type {(reached: boolean) => void} */
  connection: () => {},
  /** @type {(path: string, hubs: string[]) => void} */
  missing: () => {},
};

export const hasToken = () => sessionStorage.getItem(KEY) !== null;
/** @param {string} token */
export const keepToken = (token) => sessionStorage.setItem(KEY, token);
export const forgetToken = () => sessionStorage.removeItem(KEY);

/**
 * Sends a request and returns the response, if it is a success.
 * @param {string} method
 * @param {string} path
 * @param {{body?: any, accept?: string, headers?: Object<string, string>, signal?: AbortSignal}} [o]
 * @returns {Promise<Response>}
 */
async function send(method, path, o = {}) {
  /** @type {Object<string, string>} */
  const headers = { Accept: o.accept ?? 'application/json', ...o.headers };
  const token = sessionStorage.getItem(KEY);
  if (token) headers.Authorization = 'Bearer ' + token;
  if (o.body !== undefined) headers['Content-Type'] = 'application/json';
  let r;
  try {
    r = await fetch(path, {
      method, headers, body: o.body === undefined ? undefined : JSON.stringify(o.body),
      signal: o.signal, cache: 'no-store', credentials: 'same-origin', redirect: 'error',
    });
  } catch (e) {
    if (o.signal?.aborted) throw e;
    listeners.connection(false);
    throw new Refusal(0, 'unreachable', 'the hub does not answer');
  }
  listeners.connection(true);
  if (r.ok) return r;
  const problem = await r.json().catch(() => ({}));
  const detail = String(problem.detail ?? r.status + ' ' + r.statusText);
  // A late answer to an earlier credential says nothing of the one that was given since.
  if (r.status === 401 && !o.signal?.aborted && token === sessionStorage.getItem(KEY)) listeners.unauthenticated(token ? detail : '');
  throw new Refusal(r.status, String(problem.code ?? ''), detail);
}

/**
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function get(path, signal) {
  const answer = await body(await send('GET', path, { signal }), 'json', signal);
  listeners.missing(path.replace(/\?.*/s, ''), answer?.missing ?? []);
  return answer;
}

/**
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<string>}
 */
export async function text(path, signal) {
  return body(await send('GET', path, { signal }), 'text', signal);
}

/**
 * Reads a body. A hub that goes away in the middle of it does not answer.
 * @param {Response} r
 * @param {'json'|'text'|'blob'} as
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
function body(r, as, signal) {
  return whole(r[as](), signal);
}

/**
 * @param {string} path
 * @param {any} what
 * @param {Object<string, string>} [headers]
 * @returns {Promise<any>}
 */
export async function post(path, what, headers) {
  return body(await send('POST', path, { body: what, headers }), 'json');
}

/**
 * The lines of JSON of an answer, one after the other, until take returns true for one or most bytes were read.
 * @param {string} path
 * @param {(line: any) => boolean|void} take
 * @param {AbortSignal} signal
 * @param {number} [most]
 * @returns {Promise<boolean>} whether that was before most bytes
 */
export async function lines(path, take, signal, most = Infinity) {
  const r = await send('GET', path, { accept: 'application/x-ndjson', signal });
  const reader = r.body?.getReader(), decoder = new TextDecoder();
  let rest = '', bytes = 0;
  for (;;) {
    const { done, value } = reader ? await whole(reader.read(), signal) : { done: true, value: undefined };
    rest += done ? '\n' : decoder.decode(value, { stream: true });
    const all = rest.split('\n');
    rest = all.pop() ?? '';
    const found = all.some((line) => line !== '' && take(JSON.parse(line)) === true);
    if (done) return true;
    bytes += value?.length ?? 0;
    if (!found && bytes <= most) continue;
    await reader?.cancel();
    return found;
  }
}

/**
 * What is read of a body, which may be cut off.
 * @template T
 * @param {Promise<T>} read
 * @param {AbortSignal} [signal]
 */
async function whole(read, signal) {
  try {
    return await read;
  } catch (e) {
    if (signal?.aborted) throw e;
    listeners.connection(false);
    throw new Refusal(0, 'unreachable', 'the answer of the hub was cut off');
  }
}

/**
 * An answer as a file.
 * @param {string} path
 * @param {string} accept
 * @returns {Promise<Blob>}
 */
export async function file(path, accept) {
  return body(await send('GET', path, { accept }), 'blob');
}

/** @param {string} id */
export const segment = (id) => encodeURIComponent(id);

/**
 * One event of a stream.
 * @typedef {{id: string, event: string, data: any, text: string}} Message text is its data as it was written
 */

/**
 * Reads server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html
 * @param {ReadableStream<Uint8Array>} body
 * @param {(m: Message) => void} take
 * @param {(id: string) => void} at is told of each position, also of one without an event
 */
async function readEvents(body, take, at) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '', id = '', event = '', /** @type {string[]} */ data = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const text = decoder.decode(value, { stream: true });
    // A long line comes in many pieces: only what is new is searched for its end.
    let from = rest.length;
    rest += text;
    let start = 0;
    for (let end; (end = rest.indexOf('\n', Math.max(from, start))) >= 0;) {
      const line = rest.slice(start, end).replace(/\r$/, '');
      start = end + 1;
      if (line === '') {
        if (data.length) take(message(id, event, data.join('\n')));
        event = '', data = [];
        continue;
      }
      const colon = line.indexOf(':');
      if (colon === 0) continue;
      const name = colon < 0 ? line : line.slice(0, colon);
      const content = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (name === 'id') at(id = content);
      else if (name === 'event') event = content;
      else if (name === 'data') data.push(content);
    }
    rest = rest.slice(start);
  }
}

/** @param {string} id @param {string} event @param {string} data @returns {Message} */
function message(id, event, data) {
  return { id, event: event || 'message', data: JSON.parse(data), text: data };
}

/**
 * Follows a stream until it has ended, was refused or is aborted. A stream that is cut is
 * resumed after the last event, by its id. A page that nobody sees lets go of it until it is seen again: all pages of a
 * hub together have six connections.
 * @param {string} path
 * @param {{
 *   signal: AbortSignal,
 *   event: (m: Message) => boolean|void,
 *   open?: (resumed: boolean, exact: boolean) => void,
 *   cut?: () => void,
 *   ended?: () => void,
 * }} o event returns true for the last one. open tells whether this is not the first connection,
 *   and whether it begins where the last ended.
 * @returns {Promise<void>}
 */
export async function follow(path, o) {
  let last = '', opened = false, lost = false;
  for (let wait = 250; !o.signal.aborted;) {
    let done = false;
    const unseen = new AbortController(), signal = AbortSignal.any([o.signal, unseen.signal]);
    const settled = whileSeen(unseen);
    try {
      const r = await send('GET', path, {
        accept: 'text/event-stream', signal, headers: last ? { 'Last-Event-ID': last } : {},
      });
      if (r.status === 204 || !r.body) return o.ended?.();
      o.open?.(opened, last !== '');
      opened = true;
      lost = false;
      wait = 250;
      await readEvents(r.body, (m) => {
        if (m.event === 'error') { // why the hub ends the stream; without a credential the next request is refused
          if (m.data.status !== 401) throw new Refusal(m.data.status, String(m.data.code), String(m.data.detail));
          return;
        }
        if (m.id) last = m.id;
        done = o.event(m) === true || done;
      }, (id) => { last = last || id; });
    } catch (e) {
      if (o.signal.aborted) return;
      if (unseen.signal.aborted) {
        await seenAgain(o.signal);
        continue;
      }
      if (e instanceof Refusal && e.status !== 0 && e.status < 500 && e.status !== 429) throw e;
      if (!(e instanceof Refusal)) listeners.connection(false);
    } finally {
      settled();
    }
    if (done) return o.ended?.();
    if (opened && !lost) o.cut?.(); // once for each loss
    lost = true;
    await pause(wait, o.signal);
    wait = Math.min(wait * 2, 4000);
  }
}

const UNSEEN = 10000; // ms after which a page that nobody sees lets go of its streams

/** Aborts once the page was hidden for long; what it returns ends that. @param {AbortController} unseen */
function whileSeen(unseen) {
  /** @type {any} */
  let timer;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(() => unseen.abort(), UNSEEN);
  };
  look();
  document.addEventListener('visibilitychange', look);
  return () => {
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', look);
  };
}

/** @param {AbortSignal} signal @returns {Promise<void>} */
function seenAgain(signal) {
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener('visibilitychange', look);
      signal.removeEventListener('abort', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    signal.addEventListener('abort', look);
    look();
  });
}

/**
 * Waits, or returns early when it is aborted.
 * @param {number} ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export function pause(ms, signal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
  });
}

/**
 * Reads something again and again until it is aborted, less often in the background. What is
 * refused is given to failed, and tried again, since rights change, unless there is no credential.
 * @param {number} every
 * @param {AbortSignal} signal
 * @param {() => Promise<void>} read
 * @param {(why: Refusal) => void} failed
 */
export async function poll(every, signal, read, failed) {
  while (!signal.aborted) {
    let wait = every;
    try {
      await read();
    } catch (e) {
      if (signal.aborted) return;
      if (!(e instanceof Refusal)) throw e;
      failed(e);
      if (e.status === 401) return; // after the login it reads again
      if (e.status >= 400 && e.status < 500) wait = Math.max(every, 5000);
    }
    await pause(document.hidden ? wait * 3 : wait, signal);
  }
}
