// What agents write, as Markdown. Its elements are made one by one out of what the parser has found:
// no text is ever read as HTML.

import { count, h, painter, patch } from './dom.js';
import { visible } from './letters.js';
import { code } from './code.js';
import { MarkdownIt } from './vendor.js';

export { code } from './code.js';
export { toolInput, toolOutput } from './calls.js';

const TOGETHER = 20000; // letters that are rendered in one go; a longer paragraph or list stays plain
const TAIL = 8000; // letters at the end of a growing text that are rendered at each change
const LIST = 4000; // letters of a growing list, after which its next entry begins anew
const LETTERS = 200000; // of a text, at once
const SLICE = 8; // ms of work at once

const md = new (/** @type {any} */ (MarkdownIt))({ html: false, linkify: true, maxNesting: 40 });
md.linkify.set({ fuzzyLink: false, fuzzyEmail: false }).add('ftp:', null).add('//', null); // main.rs is a file
md.validateLink = (/** @type {string} */ address) => /^(https?:\/\/|mailto:)/i.test(address) && URL.canParse(address);
md.normalizeLinkText = (/** @type {string} */ address) => address; // a decoded one looks like another

/** The elements that there are: those of the parser, by those of the page, whose outline is its own. */
const TAGS = /** @type {Object<string, string>} */ (Object.assign(Object.create(null), {
  h1: 'h3', h2: 'h4', h3: 'h5', h4: 'h6', h5: 'h6', h6: 'h6', p: 'p', blockquote: 'blockquote', ul: 'ul', ol: 'ol', li: 'li', hr: 'hr', br: 'br',
  table: 'table', thead: 'thead', tbody: 'tbody', tr: 'tr', th: 'th', td: 'td', em: 'em', strong: 'strong', s: 's',
}));

/**
 * Markdown as elements: those above, links to http, https and mailto, and code.
 * @param {string} text
 * @returns {DocumentFragment}
 */
export function rendered(text) {
  const into = document.createDocumentFragment();
  const pieces = new Pieces();
  let from = 0;
  if (text.length > TOGETHER) for (const at of pieces.read(text, text.length)) {
    into.append(piece(text.slice(from, at)));
    from = at;
  }
  into.append(piece(text.slice(from)));
  return into;
}

/** Whether a piece is too long to be rendered, which would hold up the page. @param {string} text */
function staysPlain(text) {
  return text.length > TOGETHER && !FENCE.test(text);
}

/** @param {string} text @returns {DocumentFragment} */
function piece(text) {
  const into = document.createDocumentFragment();
  if (staysPlain(text)) plain(into, text, false);
  else build(md.parse(visible(text.replaceAll('\r\n', '\n')), {}), into);
  return into;
}

/**
 * Adds a text as it is, in blocks that are laid out once.
 * @param {DocumentFragment|HTMLElement} into has such blocks, or nothing
 * @param {string} text
 * @param {boolean} isCode
 */
function plain(into, text, isCode) {
  for (let at = 0; at < text.length;) {
    let last = /** @type {Text|null|undefined} */ (into.lastChild?.firstChild);
    if (!last || last.length >= TAIL) {
      last = document.createTextNode('');
      into.append(h('div', { class: isCode ? 'words fence' : 'words' }, last));
    }
    let end = at + TAIL;
    if (/[\ud800-\udbff]/.test(text[end - 1] ?? '')) end++; // half a letter
    last.appendData(visible(text.slice(at, end)));
    at = end;
  }
}

/** @param {any[]} tokens @param {DocumentFragment|HTMLElement} into */
function build(tokens, into) {
  /** @type {(DocumentFragment|HTMLElement)[]} */
  const open = [into];
  for (const t of tokens) {
    const at = /** @type {HTMLElement} */ (open.at(-1));
    if (t.hidden) continue;
    if (t.nesting > 0) {
      const e = element(t);
      at.append(t.tag === 'table' ? h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Table' }, e) : e);
      open.push(e);
    } else if (t.nesting < 0) {
      if (at instanceof HTMLAnchorElement) honest(at);
      open.pop();
    } else if (t.type === 'inline') inline(t, at);
    else at.append(leaf(t));
  }
}

/** @param {any} t @returns {HTMLElement} */
function element(t) {
  if (t.tag === 'a') return link(t.attrGet('href') ?? '');
  const side = /^text-align:(right|center)$/.exec(t.attrGet('style') ?? '')?.[1];
  const start = Number(t.attrGet('start') ?? 1);
  return h(TAGS[t.tag] ?? 'span', { class: side, start: start !== 1 && start, scope: t.tag === 'th' && 'col' });
}

/** The words of a paragraph; those of an entry in a list of tasks begin with a box. @param {any} t @param {HTMLElement} into */
function inline(t, into) {
  const box = /^\[([ xX])\] /.exec(t.content);
  if (box && t.children[0]?.type === 'text' && into.matches?.('li:empty, li > p:first-child:empty')) t.children[0].content = (box[1] === ' ' ? '☐' : '☑') + t.children[0].content.slice(3);
  build(t.children, into);
}

/** What has no elements inside. An entity may stand for a letter that hides. @param {any} t @returns {Node} */
function leaf(t) {
  switch (t.type) {
    case 'fence': case 'code_block': return code(visible(t.content.replace(/\n$/, '')), visible(t.info));
    case 'code_inline': return h('code', {}, visible(t.content));
    case 'image': return picture(t);
    case 'softbreak': return document.createTextNode('\n');
    case 'hr': case 'hardbreak': return h(TAGS[t.tag] ?? 'br');
    default: return document.createTextNode(visible(t.content));
  }
}

/** @param {string} href @returns {HTMLElement} */
function link(href) {
  if (!md.validateLink(href)) return h('span');
  return h('a', { href, title: visible(href), target: '_blank', rel: 'noopener noreferrer nofollow' });
}

/** A picture would be fetched, and tell its server who reads: there is a link to it. @param {any} t */
function picture(t) {
  const a = link(t.attrGet('src') ?? '');
  a.append(visible('Picture: ' + (t.content || t.attrGet('src'))));
  if (a instanceof HTMLAnchorElement) honest(a);
  return a;
}

/** Where a link leads is said behind it, if its words are another address. @param {HTMLAnchorElement} a */
function honest(a) {
  const to = a.protocol === 'mailto:' ? a.pathname : a.host;
  const said = (a.textContent ?? '').replace(/^(https?:\/\/|mailto:|Picture: )*/i, '').toLowerCase();
  const same = said.startsWith(to) && !/^[\w.@-]/.test(said.slice(to.length));
  if (/\S[.@]\S/.test(said) && !same) a.append(' (' + visible(to) + ')');
}

const FENCE = /^(`{3,}|~{3,})/;

/**
 * Finds where a growing text can be cut into pieces that are rendered alone: at blank lines, and
 * around fences; within a list only when it is long.
 */
class Pieces {
  from = 0; // where the last piece begins
  line = 0; // where the first line begins that was not read yet
  #fence = '';
  #cut = false; // whether a piece may begin with the next line
  #list = false;

  /**
   * Reads whole lines up to an end, and yields where each piece ends.
   * @param {string} text
   * @param {number} end
   * @returns {Generator<number>}
   */
  *read(text, end) {
    for (;;) {
      const next = text.indexOf('\n', this.line) + 1;
      if (next === 0 || next > end) return;
      const at = this.line;
      this.line = next;
      if (this.#begins(text.slice(at, Math.min(next, at + 200)), at) && at > this.from) {
        this.from = at;
        yield at;
      }
    }
  }

  /** Whether a piece begins with a line. @param {string} line @param {number} at */
  #begins(line, at) {
    const bare = line.replace(/^[\s>]*(?:(?:[-*+]|\d+[.)])\s+)*/, '').trimEnd();
    const mark = FENCE.exec(bare)?.[0] ?? '';
    const cut = this.#cut;
    if (this.#fence) {
      if (bare !== mark || !mark.startsWith(this.#fence)) return false;
      this.#fence = '';
      this.#cut = line.startsWith(mark);
      return false;
    }
    this.#cut = cut && bare === '' || line.trim() === '';
    if (line.trim() === '') return false;
    if (mark && !(mark[0] === '`' && bare.slice(mark.length).includes('`'))) this.#fence = mark;
    const entry = /^(?:[-*+]|\d+[.)])\s/.test(line);
    const inside = /^\s/.test(line) || entry && this.#list && at - this.from < LIST;
    if (this.#fence && line.startsWith(mark)) {
      this.#list = false;
      return true;
    }
    if (!cut || inside) {
      this.#list ||= entry && at === this.from;
      return false;
    }
    this.#list = entry;
    return true;
  }
}

/**
 * A message that grows. What is complete is rendered once and stays; what is not is rendered again
 * as it changes, or is plain if it is long. The end of a message renders one of up to 20,000 letters
 * as a whole. Beyond 200,000 letters there is a button for more.
 */
export class Prose {
  #tail = h('div'); // of the pieces before it each has an element, too
  #more = h('button', { type: 'button', hidden: true, click: () => { this.#limit += LETTERS; this.#paint(); } });
  element = h('div', { class: 'prose', dir: 'auto' }, this.#tail, this.#more);
  #text = '';
  #ended = false;
  #limit = LETTERS;
  #pieces = new Pieces();
  #from = 0; // where the tail begins
  #shown = ''; // what of the tail is there
  #isPlain = false;
  #later = painter(() => this.#paint());

  /**
   * Takes the whole text so far, which only ever grows. At most once in a frame.
   * @param {string} text
   * @param {boolean} ended
   */
  update(text, ended) {
    if (text.length === this.#text.length && ended === this.#ended) return;
    this.#text = text;
    this.#ended = ended;
    this.#paint();
  }

  #paint() {
    const text = this.#text;
    let end = Math.min(text.length, this.#limit);
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1] ?? '')) end--; // half a letter
    const left = text.length - end;
    this.#more.hidden = left === 0;
    this.#more.textContent = count(left) + ' more letters are not shown: show the next ' + count(Math.min(left, LETTERS));
    if (this.#ended && text.length <= TOGETHER) return this.#all();
    const until = performance.now() + SLICE;
    for (const at of this.#pieces.read(text, end)) {
      this.#finish(at);
      if (performance.now() < until) continue;
      this.#later();
      return this.#showPlain(text.slice(at, Math.min(end, at + TAIL)));
    }
    if (this.#ended && left === 0) this.#finish(end);
    else this.#showTail(text.slice(this.#from, end));
  }

  /** Renders a piece for good, in the place of the tail. @param {number} end */
  #finish(end) {
    const text = this.#text.slice(this.#from, end);
    if (this.#isPlain && staysPlain(text)) this.#showPlain(text);
    else this.#fill(piece(text));
    this.#from = end;
    this.#shown = '';
    this.#isPlain = false;
    this.#tail = h('div');
    this.#more.before(this.#tail);
  }

  /** Gives the tail new elements; those that are the same stay. @param {DocumentFragment} fresh */
  #fill(fresh) {
    if (this.#isPlain) this.#tail.replaceChildren(fresh);
    else patch(this.#tail, h('div', {}, fresh));
    this.#isPlain = false;
  }

  /** @param {string} tail */
  #showTail(tail) {
    if (tail.length > TAIL) this.#showPlain(tail);
    else if (tail !== this.#shown) {
      this.#fill(piece(tail));
      this.#shown = tail;
    }
  }

  /** @param {string} tail */
  #showPlain(tail) {
    if (!this.#isPlain) {
      this.#tail.replaceChildren();
      this.#isPlain = true;
      this.#shown = '';
    }
    plain(this.#tail, tail.slice(this.#shown.length), FENCE.test(tail));
    this.#shown = tail;
  }

  /** Renders all of it, so that lists and references are right. Pieces that are right stay as they are. */
  #all() {
    const fresh = [...rendered(this.#text).childNodes];
    for (const e of [...this.element.children]) {
      if (e === this.#more) break;
      const old = [...e.childNodes];
      if (e === this.#tail || !old.every((n, i) => fresh[i]?.isEqualNode(n))) patch(e, h('div', {}, fresh.splice(0)));
      else fresh.splice(0, old.length);
    }
  }
}
