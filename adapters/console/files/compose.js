// The box to write in: a question to an agent, in a conversation or as the first of a new one, or to several agents.

import { h, short } from './dom.js';
import { Refusal, post, segment } from './api.js';
import { visible } from './letters.js';
import { optionFields } from './options.js';

const SEVERAL = 4; // agents that are asked at once
const FILES = 16 << 20; // bytes together, as the hub takes them
const OTHER = '\u0000';
const LAST = 'dragoman.to'; // the agent that was asked last
const DRAFT = 'dragoman.draft ';

/**
 * What is asked where: thread is the conversation, without it a new one begins; branch the task after which a new one
 * goes on in its place; first whether several agents may be asked; running what can be told more, or stopped.
 * @typedef {{thread?: string, branch?: () => string|undefined, to?: string, first?: boolean, running?: () => import('./turn.js').Turn|undefined, sent: (asked: {id: string, thread: string, to: string}[]) => void}} Place
 */

export class Compose {
  /** @param {Place} o */
  constructor(o) {
    this.o = o;
    /** What was shown last of the agents, the one whose settings are offered, and which. */
    this.known = '';
    this.names = '';
    this.told = '';
    this.sending = false;
    /** @type {any} */
    this.offered = undefined;
    this.set = '';
    /** @type {any[]} */
    this.agents = [];
    this.wanted = o.to ?? '';
    /** Whether somebody picked the agent. */
    this.byHand = false;
    this.note = h('p', { class: 'note', role: 'status' });
    const key = o.thread ?? ['branch', o.branch?.() ?? ''].join(' ');
    this.words = /** @type {HTMLTextAreaElement} */ (h('textarea', {
      id: 'words', rows: 2, required: true, 'aria-label': 'What to ask', placeholder: 'Ask something. Enter sends, Shift+Enter begins a line.',
      input: () => {
        this.note.textContent = '';
        this.draft(this.words.value);
      },
      keydown: (/** @type {KeyboardEvent} */ e) => {
        if (e.key !== 'Enter' || e.shiftKey || e.isComposing || matchMedia('(pointer: coarse)').matches) return;
        e.preventDefault();
        this.form.requestSubmit();
      },
    }));
    this.key = key;
    this.words.value = sessionStorage.getItem(DRAFT + key) ?? '';
    this.pick = /** @type {HTMLSelectElement} */ (h('select', { id: 'to', change: () => { this.wanted = this.pick.value; this.byHand = true; this.offer(); } }));
    this.address = /** @type {HTMLInputElement} */ (h('input', { id: 'address', 'aria-label': 'Address', autocomplete: 'off', placeholder: 'claude,codex or capability:review or *', hidden: true }));
    this.boxes = h('div', { class: 'several' });
    this.several = h('details', { class: 'ask-several', hidden: !o.first, toggle: () => this.offer() }, h('summary', {}, 'Ask several'), h('fieldset', {}, h('legend', {}, 'Up to ' + SEVERAL + ', whose answers stand side by side'), this.boxes));
    this.attached = h('button', { type: 'button', class: 'link', title: 'Take the files out again', click: () => {
      this.files.value = '';
      this.attached.textContent = '';
    } });
    this.files = /** @type {HTMLInputElement} */ (h('input', { type: 'file', multiple: true, class: 'unseen', change: () => {
      this.attached.textContent = [...(this.files.files ?? [])].map((f) => visible(f.name)).join(', ') + ' ✕';
    } }));
    this.options = h('details', { class: 'options', hidden: true }, h('summary', {}, 'Settings for this question'));
    this.chosen = optionFields(undefined).chosen;
    this.send = h('button', { type: 'submit', class: 'yes' }, 'Send');
    this.tell = h('button', { type: 'button', hidden: true, 'data-do': 'tell', title: 'The agent gets it while it works', click: () => this.steer() }, 'Tell it now');
    this.stop = h('button', { type: 'button', class: 'no', hidden: true, 'data-do': 'cancel', click: () => this.cancel() }, 'Stop');
    this.hint = h('span', { class: 'hint' });
    this.form = /** @type {HTMLFormElement} */ (h('form', { class: 'compose', 'aria-label': 'Ask', submit: (/** @type {Event} */ e) => { e.preventDefault(); this.ask(); } },
      this.words,
      h('div', { class: 'act' }, h('label', { for: 'to' }, 'To'), this.pick, this.address, this.send, this.tell, this.stop, h('label', { class: 'attach button' }, 'Attach files', this.files), this.attached, this.hint),
      this.options, this.several, this.note));
    this.element = this.form;
  }

  /** The agents that are here, as they are now. @param {any[]} agents */
  know(agents) {
    this.agents = agents.filter((a) => !a.child || a.child.state !== 'failed');
    const ids = JSON.stringify(this.agents.map((a) => [a.id, !!a.load?.active]));
    if (ids === this.known) return this.offer();
    this.known = ids;
    const all = [...new Set([...this.agents.map((a) => a.id), ...(this.wanted && this.wanted !== OTHER ? [this.wanted] : [])])];
    if (document.activeElement !== this.pick) {
      this.pick.replaceChildren(...all.map((id) => {
        const a = this.agents.find((x) => x.id === id);
        return h('option', { value: id }, visible(id) + (a?.load?.active ? ' (busy)' : a || id === '*' ? '' : ' (not here)'));
      }), ...(all.includes('*') ? [] : [h('option', { value: '*' }, 'any that is free')]), h('option', { value: OTHER }, 'another address…'));
      if (!this.wanted && this.agents.length) this.wanted = this.agents.find((a) => a.id === localStorage.getItem(LAST))?.id ?? this.agents[0].id;
      this.pick.value = this.wanted || '*';
    }
    const checked = new Set(this.picked()), names = this.agents.map((a) => a.id).join();
    if (names !== this.names) this.boxes.replaceChildren(...this.agents.map((a) => h('label', { class: 'option' }, h('input', { type: 'checkbox', value: a.id, checked: checked.has(a.id), change: () => this.offer() }), ' ', visible(a.id))));
    this.names = names;
    this.offer();
  }

  /** @returns {string[]} the agents that are ticked */
  picked() {
    return [...this.boxes.querySelectorAll('input')].filter((b) => b.checked).map((b) => b.value);
  }

  /** @returns {string[]} whom it goes to */
  to() {
    const several = this.several.hasAttribute('open') ? this.picked() : [];
    if (several.length) return several;
    return [this.wanted === OTHER ? this.address.value.trim() : this.wanted || this.pick.value].filter(Boolean);
  }

  /** Shows what fits the agent that is chosen, and what runs. */
  offer() {
    this.address.hidden = this.wanted !== OTHER;
    const several = this.several.hasAttribute('open') ? this.picked() : [];
    for (const b of this.boxes.querySelectorAll('input')) b.disabled = !b.checked && several.length >= SEVERAL;
    this.pick.disabled = several.length > 0;
    const chosen = several.length ? undefined : this.agents.find((a) => a.id === this.wanted);
    if (chosen !== this.offered) this.settings(chosen);
    const turn = this.o.running?.();
    if (this.told && turn?.id !== this.told) this.note.textContent = this.told = ''; // what was said of a turn that has ended
    const agent = this.agents.find((a) => a.id === turn?.model.agent);
    this.stop.hidden = !turn;
    this.tell.hidden = !turn || !(agent?.features ?? []).includes('injection');
    const last = this.o.to ?? '';
    this.send.textContent = several.length > 1 ? 'Ask ' + several.length : 'Send';
    this.hint.textContent = this.o.thread && last && this.wanted && this.wanted !== last && this.wanted !== OTHER ? visible(this.wanted) + ' goes on with the conversation so far.' :
      turn && !this.stop.hidden ? 'What you send now comes after this turn.' : '';
  }

  /** Offers what an agent can be set to; what is chosen stays as long as it can. @param {any} agent */
  settings(agent) {
    const { fields, chosen } = optionFields(agent?.metadata);
    const were = [agent?.id, ...fields.map((f) => f.id || f.getAttribute('for'))].join();
    this.offered = agent;
    if (were === this.set) return;
    this.set = were;
    this.chosen = chosen;
    this.options.hidden = !fields.length;
    this.options.replaceChildren(h('summary', {}, 'Settings for this question'), ...fields);
  }

  /** The agent of the conversation, unless another one was picked. @param {string} agent */
  last(agent) {
    if (!agent || agent === this.o.to || document.activeElement === this.pick) return;
    if (!this.byHand) this.wanted = agent;
    this.o.to = agent;
    this.known = '';
    this.know(this.agents);
  }

  /** Keeps what is written until it is sent, or this tab is closed. @param {string} words */
  draft(words) {
    if (words) sessionStorage.setItem(DRAFT + this.key, words.slice(0, 100000));
    else sessionStorage.removeItem(DRAFT + this.key);
  }

  async attachments() {
    const all = [...(this.files.files ?? [])];
    if (all.reduce((n, f) => n + f.size, 0) > FILES * 3 / 4) throw new Refusal(413, 'too_large', 'the files have more than 12 MiB together');
    return Promise.all(all.map(async (f) => ({ name: f.name, ...(f.type ? { media_type: f.type } : {}), data: await base64(f) })));
  }

  async ask() {
    const to = this.to();
    if (this.sending) return;
    if (!to.length) {
      this.note.textContent = 'No agent is here to ask: name one, or add one (see Agents).';
      return;
    }
    this.sending = true;
    this.send.setAttribute('disabled', '');
    this.note.textContent = 'Sending…';
    const words = this.words.value;
    try {
      const files = await this.attachments(), branch = this.o.branch?.();
      const body = { content: words, ...(files.length ? { attachments: files } : {}), ...(branch ? { branch } : this.o.thread ? { thread: this.o.thread } : {}) };
      this.words.value = ''; // one may write on
      const all = await Promise.allSettled(to.map(async (one) => ({ ...await post('/v1/tasks', { ...body, to: one, ...(to.length === 1 ? { options: this.chosen() } : {}) }, { 'Dragoman-Asks': 'again' }), to: one })));
      const asked = all.flatMap((r) => (r.status === 'fulfilled' ? [r.value] : []));
      const refused = all.flatMap((r, i) => (r.status === 'rejected' ? [(to.length > 1 ? to[i] + ': ' : '') + reason(r.reason)] : []));
      this.note.textContent = refused.join('; ');
      if (!asked.length) {
        this.words.value = words + (this.words.value ? '\n' + this.words.value : '');
        return;
      }
      this.files.value = '';
      this.attached.textContent = '';
      this.byHand = false;
      this.draft(this.words.value);
      if (to.length === 1) localStorage.setItem(LAST, to[0] ?? '');
      this.words.focus();
      if (refused.length) this.note.append(' ', h('a', { href: '#/several/' + asked.map((a) => segment(a.id)).join('/') }, 'See the answers of the others'));
      else this.o.sent(asked);
    } catch (e) {
      this.note.textContent = reason(e);
    } finally {
      this.sending = false;
      this.send.removeAttribute('disabled');
    }
  }

  /** Puts words into the box, where it is empty, for another agent than one. @param {string} words @param {string} than */
  elsewhere(words, than) {
    if (!this.words.value) this.words.value = words;
    const other = this.agents.find((a) => a.id !== than);
    if (other) {
      this.pick.value = this.wanted = other.id;
      this.byHand = true;
    }
    this.pick.focus();
    this.offer();
  }

  /** Tells the agent what is written, while it works. */
  async steer() {
    const turn = this.o.running?.();
    if (!turn || !this.words.value) return;
    await this.act(async () => {
      const r = await post('/v1/tasks/' + segment(turn.id) + '/inject?wait=true', { content: this.words.value });
      if (r.accepted === false) return 'The agent refused it' + (r.reason ? ': ' + visible(short(r.reason, 300)) : '.');
      this.words.value = '';
      this.draft('');
      return r.accepted ? 'The agent took it.' : 'The turn ended first.';
    });
  }

  async cancel() {
    const turn = this.o.running?.();
    if (turn) {
      await this.act(async () => {
        await post('/v1/tasks/' + segment(turn.id) + '/cancel', {});
        this.told = turn.id;
        return 'The agent was told to stop.';
      });
    }
  }

  /** @param {() => Promise<string>} what */
  async act(what) {
    this.note.textContent = 'Sending…';
    try {
      this.note.textContent = await what();
    } catch (e) {
      this.note.textContent = reason(e);
    }
    this.words.focus();
  }
}

/** @param {File} f @returns {Promise<string>} */
function base64(f) {
  return new Promise((done, failed) => {
    const r = new FileReader();
    r.addEventListener('load', () => done(String(r.result).replace(/^[^,]*,/, '')));
    r.addEventListener('error', () => failed(new Refusal(0, 'unreadable', 'the file ' + f.name + ' cannot be read')));
    r.readAsDataURL(f);
  });
}

/** What a refusal says; another error is one of the page. @param {unknown} e */
function reason(e) {
  if (!(e instanceof Refusal)) throw e;
  return (e.status ? 'Refused: ' : 'Not sent: ') + e.message;
}
