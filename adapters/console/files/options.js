// What an agent of the editor's protocol can be set to for one task, as its card has it: its modes, models and options.

import { h } from './dom.js';
import { visible } from './letters.js';

/** @typedef {{id: string, name: string, is: string, values: {value: string, name: string}[]}} Option */

/** The options in the metadata of an agent. @param {any} metadata @returns {Option[]} */
function offered(metadata) {
  /** @type {Option[]} */
  const all = [];
  /** @param {string} id @param {string} name @param {any} is @param {any[]} values */
  const put = (id, name, is, values) => {
    const named = values.flatMap((v) => v?.options ?? [v]).filter((v) => typeof v?.value === 'string').map((v) => ({ value: v.value, name: String(v.name ?? v.value) }));
    if (typeof id === 'string' && named.length && !all.some((o) => o.id === id)) all.push({ id, name, is: String(is ?? ''), values: named });
  };
  const list = (/** @type {any} */ v) => Array.isArray(v) ? v : [];
  for (const o of list(metadata?.configOptions)) {
    put(o?.id, String(o?.name ?? o?.id), o?.currentValue, o?.type === 'boolean' ? [{ value: 'true', name: 'yes' }, { value: 'false', name: 'no' }] : list(o?.options));
  }
  put('mode', 'Mode', metadata?.modes?.currentModeId, list(metadata?.modes?.availableModes).map((m) => ({ value: m?.id, name: m?.name })));
  put('model', 'Model', metadata?.models?.currentModelId, list(metadata?.models?.availableModels).map((m) => ({ value: m?.modelId, name: m?.name })));
  return all;
}

/**
 * The fields for what an agent can be set to, and what they say.
 * @param {any} metadata of the agent
 * @returns {{fields: HTMLElement[], chosen: () => Object<string, string>}}
 */
export function optionFields(metadata) {
  const all = offered(metadata).map((o) => {
    const field = /** @type {HTMLSelectElement} */ (h('select', { id: 'option-' + o.id }, h('option', { value: '' }, 'as it is' + (o.is ? ': ' + visible(o.is) : '')),
      o.values.map((v) => h('option', { value: v.value }, visible(v.name)))));
    return { id: o.id, field, label: h('label', { for: 'option-' + o.id }, visible(o.name)) };
  });
  return {
    fields: all.flatMap((o) => [o.label, o.field]),
    chosen: () => Object.fromEntries(all.filter((o) => o.field.value).map((o) => [o.id, o.field.value])),
  };
}
