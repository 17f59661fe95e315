// Filters of a list, which stand in the address.

import { h } from './dom.js';

/**
 * A filter: a choice if it has options, of which the first is the one that an address without it means.
 * @typedef {{name: string, label: string, options?: [value: string, label: string][], size?: number}} Filter
 */

/**
 * @param {import('./app.js').Page} page
 * @param {Filter[]} all
 * @param {() => void} changed is called for each letter, once the address has it
 * @param {...HTMLElement} buttons stand behind them
 * @returns {{element: HTMLElement, values: () => Object<string, string>}}
 */
export function filters(page, all, changed, ...buttons) {
  /** @type {Map<string, HTMLInputElement|HTMLSelectElement>} */
  const fields = new Map();
  for (const f of all) {
    const now = page.query.get(f.name) ?? '';
    const field = /** @type {HTMLInputElement|HTMLSelectElement} */ (f.options ?
      h('select', {}, f.options.map(([value, label]) => h('option', { value, selected: value === now }, label))) :
      h('input', { type: 'search', value: now, size: f.size ?? 14 }));
    field.addEventListener('input', () => {
      page.address(values());
      changed();
    });
    fields.set(f.name, field);
  }
  const values = () => Object.fromEntries([...fields].map(([name, f]) => [name, f.value.trim()]));
  return {
    element: h('form', { class: 'filters', role: 'search', 'aria-label': 'Filters', submit: (/** @type {Event} */ e) => e.preventDefault() },
      all.map((f) => h('label', {}, f.label, ' ', fields.get(f.name))), buttons),
    values,
  };
}
