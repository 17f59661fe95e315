// The site of docs/. Pages, their order and their kinds come from docs/README.md, and so does the sidebar.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const docs = join(root, 'docs');
const host = 'https://github.com/dragoman-hub/dragoman';
const isIndex = /(^|\/)README\.md(?=#|$)/; // what a code host shows for a directory

// sidebar returns a group for each heading of the index, with its links.
function sidebar() {
  const groups = [];
  for (const line of readFileSync(join(docs, 'README.md'), 'utf8').split('\n')) {
    const [, heading] = line.match(/^## (.+)/) ?? [];
    if (heading) groups.push({ text: heading, items: [] });
    const [, text, to] = line.match(/^- \[(.+?)\]\((.+?)\)/) ?? [];
    if (to) groups.at(-1).items.push({ text, link: '/' + to.replace(isIndex, '$1').replace(/\.md$/, '') });
  }
  return groups;
}

// slugify makes the anchors that a code host makes.
const slugify = (heading) => heading.toLowerCase().replace(/[^a-z0-9 _-]/g, '').replaceAll(' ', '-');

// href returns where a link of a page goes on the site: what is no page is on the code host.
function href(link, page) {
  if (/^([a-z]+:|#|\/\/)/.test(link)) return link;
  const [path, anchor] = link.split('#');
  const file = resolve(dirname(page), decodeURI(path));
  if (!existsSync(file)) throw new Error(`${relative(root, page)}: the link ${link} is broken`);
  if (file.endsWith('.md') && file.startsWith(docs)) return link.replace(isIndex, '$1index.md');
  const kind = statSync(file).isDirectory() ? 'tree' : 'blob';
  return `${host}/${kind}/main/${relative(root, file)}${anchor ? '#' + anchor : ''}`;
}

// vue is found beside this file: the pages, which import it, are elsewhere.
const vue = {
  name: 'vue',
  enforce: 'pre',
  resolveId(id, importer, options) {
    if (/^vue(\/|$)/.test(id) && importer?.startsWith(docs)) {
      return this.resolve(id, fileURLToPath(import.meta.url), { ...options, skipSelf: true });
    }
  },
};

export default {
  title: 'Dragoman',
  description: 'A hub that interprets between AI agents',
  srcDir: docs,
  outDir: join(root, 'dist/site'),
  cacheDir: join(root, 'dist/.site'),
  vite: { plugins: [vue] },
  rewrites: (page) => page.replace(isIndex, '$1index.md'),
  themeConfig: {
    sidebar: sidebar(),
    outline: [2, 3],
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: host }],
  },
  markdown: {
    anchor: { slugify },
    toc: { slugify },
    config: (md) =>
      md.core.ruler.push('links', ({ tokens, env }) => {
        for (const token of tokens.flatMap((t) => t.children ?? []).filter((t) => t.type === 'link_open')) {
          token.attrSet('href', href(token.attrGet('href'), env.realPath ?? env.path));
        }
      }),
  },
};
