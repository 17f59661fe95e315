// A list of any length in which only the rows that are seen exist.

import { h } from './dom.js';

export const ROW = 30; // pixels, as in style.css
const BEYOND = 8; // rows above and below

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
    this.inner = h('div', { class: 'rows', role: 'list', 'aria-label': label });
    this.element = h('div', { class: 'list', tabindex: 0, role: 'region', 'aria-label': label, scroll: () => this.paint() }, this.inner);
    this.resized = new ResizeObserver(() => this.paint());
    this.resized.observe(this.element);
  }

  close() {
    this.resized.disconnect();
  }

  /** @param {any[]} items */
  show(items) {
    this.items = items;
    this.n = items.length;
    this.paint();
  }

  paint() {
    const n = this.n;
    const height = this.element.clientHeight || 600;
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW) - BEYOND);
    const end = Math.min(n, Math.ceil((this.element.scrollTop + height) / ROW) + BEYOND);
    this.inner.style.height = n * ROW + 'px';
    const before = this.rows;
    this.rows = new Map();
    for (let i = first; i < end; i++) {
      const item = this.items[i];
      let row = before.get(item);
      if (row) before.delete(item);
      else {
        row = h('div', { class: 'row', role: 'listitem' }, ...this.cells(item));
        this.inner.append(row);
      }
      row.style.transform = `translateY(${i * ROW}px)`;
      row.setAttribute('aria-posinset', String(i + 1));
      row.setAttribute('aria-setsize', String(n));
      this.rows.set(item, row);
    }
    for (const row of before.values()) row.remove();
    if (end >= n && n > 0) this.atEnd();
  }
}
