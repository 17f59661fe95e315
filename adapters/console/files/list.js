// A list of any length in which only the rows that are seen exist.

import { h, patch } from './dom.js';

const BEYOND = 8; // rows above and below
const narrow = matchMedia('(max-width: 640px)');

export class List {
  /**
   * @param {string} label
   * @param {(item: any) => Node[]} cells makes the cells of a row
   * @param {() => void} [atEnd] is called when the end is in sight
   */
  constructor(label, cells, atEnd = () => {}) {
    this.cells = cells;
    this.atEnd = atEnd;
    /** @type {any[]} */
    this.items = [];
    /** How many are shown: who makes the list may add to it meanwhile. */
    this.n = 0;
    /** @type {Map<any, HTMLElement>} */
    this.rows = new Map();
    /** Items whose row is no longer as they are. @type {Set<any>} */
    this.stale = new Set();
    this.inner = h('div', { class: 'rows', role: 'list', 'aria-label': label });
    this.element = h('div', { class: 'list', tabindex: 0, role: 'region', 'aria-label': label, scroll: () => this.paint() }, this.inner);
    this.resized = new ResizeObserver(() => this.paint());
    this.resized.observe(this.element);
  }

  /** The height of a row in pixels, as in style.css: on a narrow screen it has two lines. */
  get row() {
    return narrow.matches ? 52 : 30;
  }

  close() {
    this.resized.disconnect();
  }

  /** Has the row of an item that has changed written anew with the next paint. @param {any} item */
  changed(item) {
    if (this.rows.has(item)) this.stale.add(item);
  }

  /** @param {any[]} items */
  show(items) {
    this.items = items;
    this.n = items.length;
    this.paint();
  }

  /** @param {any} item */
  rowOf(item) {
    return h('div', { class: 'row', role: 'listitem' }, ...this.cells(item));
  }

  paint() {
    const n = this.n, high = this.row;
    const height = this.element.clientHeight || 600;
    const first = Math.max(0, Math.floor(this.element.scrollTop / high) - BEYOND);
    const end = Math.min(n, Math.ceil((this.element.scrollTop + height) / high) + BEYOND);
    this.inner.style.height = n * high + 'px';
    const before = this.rows;
    this.rows = new Map();
    for (let i = first; i < end; i++) {
      const item = this.items[i];
      let row = before.get(item);
      if (row) {
        before.delete(item);
        if (this.stale.has(item)) patch(row, this.rowOf(item));
      } else this.inner.append(row = this.rowOf(item));
      row.style.transform = `translateY(${i * high}px)`;
      row.setAttribute('aria-posinset', String(i + 1));
      row.setAttribute('aria-setsize', String(n));
      this.rows.set(item, row);
    }
    this.stale.clear();
    for (const row of before.values()) row.remove();
    if (end >= n && n > 0) this.atEnd();
  }
}
