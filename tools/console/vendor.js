// What the console uses of other people's libraries. `make gen` makes one module of it,
// adapters/console/files/vendor.js.

import { c, cpp, csharp, java, kotlin } from '@codemirror/legacy-modes/mode/clike';
import { css } from '@codemirror/legacy-modes/mode/css';
import { diff } from '@codemirror/legacy-modes/mode/diff';
import { dockerFile } from '@codemirror/legacy-modes/mode/dockerfile';
import { go } from '@codemirror/legacy-modes/mode/go';
import { javascript, json, typescript } from '@codemirror/legacy-modes/mode/javascript';
import { python } from '@codemirror/legacy-modes/mode/python';
import { ruby } from '@codemirror/legacy-modes/mode/ruby';
import { rust } from '@codemirror/legacy-modes/mode/rust';
import { shell } from '@codemirror/legacy-modes/mode/shell';
import { standardSQL } from '@codemirror/legacy-modes/mode/sql';
import { toml } from '@codemirror/legacy-modes/mode/toml';
import { html, xml } from '@codemirror/legacy-modes/mode/xml';
import { yaml } from '@codemirror/legacy-modes/mode/yaml';

/** The tokenizer of each language, by the names that fences give it. */
export const languages = new Map(Object.entries({
  bash: shell, c, 'c#': csharp, 'c++': cpp, console: shell, cpp, cs: csharp, csharp, css, diff, docker: dockerFile, dockerfile: dockerFile, go, golang: go, h: c, hpp: cpp, html,
  java, javascript, js: javascript, json, json5: json, jsonc: json, jsx: javascript, kotlin, kt: kotlin, mjs: javascript, patch: diff, py: python, python, rb: ruby, rs: rust,
  ruby, rust, sh: shell, shell, sql: standardSQL, svg: xml, toml, ts: typescript, tsx: typescript, typescript, xml, yaml, yml: yaml, zsh: shell,
}));

export { StringStream } from '@codemirror/streamparser';
export { default as MarkdownIt } from 'markdown-it';
export { diffLines } from 'diff';
