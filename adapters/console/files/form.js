// The form of a question: a control for each field of its schema, a flat object.

import { h } from './dom.js';
import { visible } from './letters.js';

/**
 * A field of the schema, as far as the page shows it.
 * @typedef {Object} Field
 * @property {string} [type]
 * @property {string} [title]
 * @property {string} [description]
 * @property {string} [format]
 * @property {any} [default]
 * @property {string[]} [enum]
 * @property {string[]} [enumNames]
 * @property {{const: string, title?: string}[]} [oneOf]
 * @property {{const: string, title?: string}[]} [anyOf]
 * @property {Field} [items]
 * @property {number} [minimum]
 * @property {number} [maximum]
 * @property {number} [minLength]
 * @property {number} [maxLength]
 */

/** @typedef {{type?: string, properties?: Object<string, Field>, required?: string[]}} Schema */

/**
 * A form that is shown. content is what is filled in, without what is left empty.
 * @typedef {{elements: HTMLElement[], controls: HTMLElement[], content: () => Object<string, any>}} Form
 */

const INPUTS = new Map([['email', 'email'], ['uri', 'url'], ['date', 'date']]);

/**
 * Shows a form; null for a schema that is none, as an agent may send any object.
 * @param {Schema} schema
 * @returns {Form|null}
 */
export function formOf(schema) {
  try {
    return shown(schema);
  } catch (e) {
    if (!(e instanceof TypeError)) throw e;
    return null;
  }
}

/** @param {Schema} schema @returns {Form} */
function shown(schema) {
  /** @type {HTMLElement[]} */
  const elements = [], controls = [];
  /** @type {Map<string, () => any>} */
  const values = new Map();
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const made = control(field, (schema.required ?? []).includes(name));
    const words = [visible(field.title ?? name), field.description ? h('span', { class: 'hint' }, ' ' + visible(field.description)) : null];
    elements.push(made.several ? h('fieldset', {}, h('legend', {}, words), made.element) : h('label', { class: 'option' }, words, ' ', made.element));
    controls.push(...made.controls);
    values.set(name, made.value);
  }
  return {
    elements, controls,
    content: () => Object.fromEntries([...values].map(([name, value]) => [name, value()]).filter(([, value]) => value !== undefined)),
  };
}

/**
 * @param {Field} field @param {boolean} required
 * @returns {{element: HTMLElement[], controls: HTMLElement[], several?: boolean, value: () => any}}
 */
function control(field, required) {
  if (field.type === 'array') {
    const boxes = choices(field.items ?? {}).map(([value, label]) => ({ value, label, box: checkbox((field.default ?? []).includes(value)) }));
    return {
      several: true, controls: boxes.map((b) => b.box), element: boxes.map((b) => h('label', { class: 'option' }, b.box, ' ', visible(b.label))),
      value: () => { const all = boxes.filter((b) => b.box.checked).map((b) => b.value); return all.length || required ? all : undefined; },
    };
  }
  if (field.type === 'boolean') {
    const box = checkbox(field.default === true);
    return { controls: [box], element: [box], value: () => box.checked };
  }
  const among = choices(field);
  if (among.length) {
    const chosen = /** @type {HTMLSelectElement} */ (h('select', { required }, h('option', { value: '' }),
      among.map(([value, label]) => h('option', { value, selected: value === field.default }, visible(label)))));
    return { controls: [chosen], element: [chosen], value: () => chosen.value || undefined };
  }
  const number = field.type === 'number' || field.type === 'integer';
  const input = /** @type {HTMLInputElement} */ (h('input', {
    required, type: number ? 'number' : INPUTS.get(field.format ?? '') ?? 'text', value: field.default,
    ...(number ? { step: field.type === 'integer' ? 1 : 'any', min: field.minimum, max: field.maximum } : { minlength: field.minLength, maxlength: field.maxLength }),
  }));
  return { controls: [input], element: [input], value: () => (input.value === '' ? undefined : number ? Number(input.value) : input.value) };
}

/** @param {boolean} checked @returns {HTMLInputElement} */
function checkbox(checked) {
  return /** @type {HTMLInputElement} */ (h('input', { type: 'checkbox', checked }));
}

/** @param {Field} field @returns {[string, string][]} the values that are allowed, and what they are called */
function choices(field) {
  const titled = [...(field.oneOf ?? []), ...(field.anyOf ?? [])].map((o) => /** @type {[string, string]} */ ([o.const, o.title ?? o.const]));
  return [...titled, ...(field.enum ?? []).map((value, i) => /** @type {[string, string]} */ ([value, field.enumNames?.[i] ?? value]))];
}
