package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// modules opens the console of a hub, with its modules for what agents write as m. put shows elements at the top
// of the page, and returns how they are written.
func modules(t *testing.T) *tab {
	t.Helper()
	h := newTestHub(t, nil)
	p := newBrowser(t, h.url()).open("/#/waiting")
	p.shows(".state", "Nothing waits for you.")
	p.value(`(async () => { window.m = await import('/console/markdown.js'); window.box = document.createElement('section'); box.ariaLabel = 'What agents write'; document.querySelector('main').before(box);
		window.put = (...e) => { box.replaceChildren(...e); return box.innerHTML; }; return true; })()`)
	return p
}

// value returns the value of an expression in the page, as it is if it is a text, else as JSON.
func (p *tab) value(expression string) string {
	p.Helper()
	value, err := p.run(expression)
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	return text
}

// anchor is how a link is written that leads to an address.
func anchor(address, words string) string {
	return fmt.Sprintf(`<a href="%s" title="%s" target="_blank" rel="noopener noreferrer nofollow">%s</a>`, address, address, words)
}

func TestMarkdownIsRendered(t *testing.T) {
	t.Parallel()
	p := modules(t)
	const fence = `<div class="code"><div class="bar"><span>%s</span><button type="button" class="copy">Copy</button></div><pre tabindex="0" role="group" aria-label="%s"><code>%s</code></pre></div>`
	for _, c := range []struct{ name, text, want string }{
		{
			"a table", "| a | b |\n|---|--:|\n| 1 | *2* |",
			`<div class="scroll" tabindex="0" role="group" aria-label="Table"><table><thead><tr><th scope="col">a</th><th class="right" scope="col">b</th></tr></thead>` +
				`<tbody><tr><td>1</td><td class="right"><em>2</em></td></tr></tbody></table></div>`,
		},
		{"a fence", "```go\nreturn 1 // x\n```", fmt.Sprintf(fence, "go", "Code in go", `<span class="hl-word">return</span> <span class="hl-text">1</span> <span class="hl-quiet">// x</span>`)},
		{"a fence of no language", "~~~\na <b>\n~~~", fmt.Sprintf(fence, "", "Code", `a &lt;b&gt;`)},
		{"a fence of a language that is not known", "```__proto__ x\na\n```", fmt.Sprintf(fence, "__proto__", "Code in __proto__", `a`)},
		{"nested lists", "- a\n  1. b\n- c", `<ul><li>a<ol><li>b</li></ol></li><li>c</li></ul>`},
		{"a list that begins later", "3. a", `<ol start="3"><li>a</li></ol>`},
		{"tasks", "- [ ] a\n- [x] b", `<ul><li>☐ a</li><li>☑ b</li></ul>`},
		{"marks of words", "**a** ~~b~~ `c`\nd", "<p><strong>a</strong> <s>b</s> <code>c</code>\nd</p>"},
		{"headings", "# a\n\n##### b", `<h3>a</h3><h6>b</h6>`},
		{"a link", "[a](https://a.example/b)", `<p>` + anchor("https://a.example/b", "a") + `</p>`},
		{"a link by reference", "[a][b]\n\n[b]: https://a.example/b", `<p>` + anchor("https://a.example/b", "a") + `</p>`},
		{"an address", "https://a.example/b, and main.rs", `<p>` + anchor("https://a.example/b", "https://a.example/b") + `, and main.rs</p>`},
		{"a link that says another address", "[https://bank.example](https://a.example/b)", `<p>` + anchor("https://a.example/b", "https://bank.example (a.example)") + `</p>`},
		{"an address with another one in front", "<https://bank.example@a.example/>", `<p>` + anchor("https://bank.example@a.example/", "https://bank.example@a.example/ (a.example)") + `</p>`},
		{"a picture", "![a](https://a.example/b.png)", `<p>` + anchor("https://a.example/b.png", "Picture: a") + `</p>`},
		{"a link to elsewhere in the hub", "[a](/v1/hub)", `<p>[a](/v1/hub)</p>`},
		{"HTML", "<b>a</b>", `<p>&lt;b&gt;a&lt;/b&gt;</p>`},
		{"letters that hide", "a\u202eb&#x202e;c\r\nd", "<p>a⟨U+202E⟩b⟨U+202E⟩c\nd</p>"},
	} {
		if got := p.value(`put(m.rendered(` + string(plainJSON(c.text)) + `))`); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestCallsOfToolsAreShownAsWhatTheyDo(t *testing.T) {
	t.Parallel()
	p := modules(t)
	long := strings.Repeat("same\n", 20)
	for _, c := range []struct{ name, input, want string }{
		{"a command", `{"command":"ls -l\npwd","description":"look"}`, "bash Copy ls -l\npwd description look"},
		{"words of a command", `{"command":["bash","-lc","echo 'a b'"],"workdir":"/w"}`, `bash Copy bash -lc 'echo '\''a b'\''' workdir /w`},
		{"the command of Codex", `{"cmd":"ls","yield_time_ms":1.0}`, "bash Copy ls yield_time_ms 1.0"},
		{"an edit of Claude Code", `{"file_path":"/a","old_string":"x\nb\n","new_string":"x\nc\n","replace_all":true}`, "/a x -b +c replace_all true"},
		{"edits of pi", `{"path":"/a","edits":[{"oldText":"a\n","newText":"b\n"},{"oldText":"c\n","newText":"d\n","n":1}]}`, "/a -a +b /a -c +d n 1"},
		{"an edit of OpenCode", `{"filePath":"/a","oldString":"a\n","newString":"b\n"}`, "/a -a +b"},
		{"the end of a line", `{"path":"/a","oldText":"a","newText":"a\n"}`, "/a -a -\\ no line break at the end +a"},
		{"a new file", `{"file_path":"/a","content":"x\ny\n"}`, "/a +x +y"},
		{"a diff of the editor's protocol", `{"diff":"--- /a\n+++ /a\n@@ -1,2 +1,2 @@\n x\n--- b\n+c\n"}`, "--- /a +++ /a @@ -1,2 +1,2 @@ x --- b +c"},
		{"a patch of Codex", "*** Begin Patch\n*** Update File: a\n@@\n x\n-y\n+z\n*** End Patch", "*** Begin Patch *** Update File: a @@ x -y +z *** End Patch"},
		{"lines that stay", string(plainJSON(map[string]string{"path": "/a", "oldText": long + "a\n", "newText": long + "b\n"})), "/a same same same 14 unchanged lines" + strings.Repeat(" same", 17) + " -a +b"},
		{"another tool", `{"a":{"b":1.0}}`, "{ \"a\": { \"b\": 1.0 } }"},
		{"a name that comes twice", `{"command":"ls","command":"rm"}`, `{ "command": "ls", "command": "rm" }`},
		{"a command that is none", `{"command":{"a":1}}`, `{ "command": { "a": 1 } }`},
		{"edits, one of which is none", `{"path":"/a","edits":[{"oldText":"a","newText":"b"},{"line":1}]}`, `{ "path": "/a", "edits": [ { "oldText": "a", "newText": "b" }, { "line": 1 } ] }`},
		{"letters that hide", `{"command":"ls \u202e","__proto__":"x"}`, "bash Copy ls ⟨U+202E⟩ __proto__ x"},
		{"a text", "do it", "do it"},
	} {
		got := p.value(`(put(m.toolInput('t', ` + string(plainJSON(c.input)) + `)), box.textContent)`)
		if unspaced(got) != unspaced(c.want) {
			t.Errorf("%s: got %q, want %q", c.name, unspaced(got), unspaced(c.want))
		}
	}
	for _, c := range []struct{ name, output, want string }{
		{"a diff", "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n", `<del>-x\n</del><ins>+y\n</ins>`},
		{"a change", `{"type":"diff","path":"/a","oldText":null,"newText":"x\n"}`, `<ins>+x\n</ins>`},
		{"JSON", `{"a":[1]}`, `{\n  "a": [\n    1\n  ]\n}`},
		{"a text", "+ a\n- b", `aria-label="Result">+ a\n- b</pre>`},
	} {
		got := p.value(`put(m.toolOutput(` + string(plainJSON(c.output)) + `))`)
		if want := strings.ReplaceAll(c.want, `\n`, "\n"); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s in it", c.name, got, want)
		}
	}
	if got := p.value(`(() => { put(m.toolInput('t', JSON.stringify({path: '/a', content: 'line\n'.repeat(10000)}))); const n = box.textContent.length;
		box.querySelector('button[data-do=whole]').click(); return n < 30000 && box.querySelectorAll('ins').length === 2 && box.textContent.split('+line\n').length - 1; })()`); got != "10000" {
		t.Errorf("got %s lines once all are shown, want 10000", got)
	}
}

// unspaced returns a text without spaces.
func unspaced(text string) string { return strings.Join(strings.Fields(text), "") }

// The code that a reader copies is the code that was seen.
func TestCodeIsCopiedAsItIsSeen(t *testing.T) {
	t.Parallel()
	p := modules(t)
	p.value(`(put(m.code('ls\u202e -l', 'sh')), Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (t) => { window.copied = t; }}}), true)`)
	p.click(".copy")
	p.await(`window.copied === 'ls⟨U+202E⟩ -l' && document.querySelector('.copy').textContent === 'Copied'`)
}

func TestAMessageGrows(t *testing.T) {
	t.Parallel()
	p := modules(t)
	// A selection stays where it is while the message grows, and when it ends.
	if got := p.value(`(() => { const prose = new m.Prose(); put(prose.element); prose.update('first words\n\nsecond', false);
		getSelection().selectAllChildren(box.querySelector('p')); let text = 'first words\n\nsecond';
		for (let i = 0; i < 200; i++) prose.update(text += i % 20 ? ' word' : '\n\n- entry', false);
		prose.update(text + '\n\n[r]: https://a.example/', true); return getSelection().toString().trim(); })()`); got != "first words" {
		t.Errorf("got the selection %q, want %q", got, "first words")
	}
	// However it came, it ends as if it had come whole.
	text := "# a\n\n- x\n\n- y\n\n  z\n\n```js\nlet a\n\nlet b\n```\ntext [l][r]\n\n> q\n\n1. a\n2. b\n\n   ```\n   in\n\n   it\n   ```\n\n[r]: https://a.example/\n"
	if got := p.value(`(() => { const text = ` + string(plainJSON(text)) + `, prose = new m.Prose(); for (let i = 1; i <= text.length; i++) prose.update(text.slice(0, i), i === text.length);
		put(m.rendered(text)); const grown = [...prose.element.querySelectorAll(':scope > div')].map((e) => e.innerHTML).join('');
		return grown === box.innerHTML ? 'same' : grown + ' and ' + box.innerHTML; })()`); got != "same" {
		t.Errorf("got %s, want the same", got)
	}
	// A long paragraph is plain until it is complete; what is longer than 200,000 letters waits for a button.
	if got := p.value(`(() => { const prose = new m.Prose(); put(prose.element); let text = '*a* '.repeat(2100); prose.update(text, false);
		const before = box.querySelectorAll('em').length; prose.update(text + '\n\nb\n', false); return before + ' ' + box.querySelectorAll('em').length; })()`); got != "0 2100" {
		t.Errorf("got %s words of a paragraph rendered before and after its end, want 0 and 2100", got)
	}
	p.value(`(window.long = new m.Prose(), put(long.element), long.update('words '.repeat(100) + '\n\n' + ('words '.repeat(100) + '\n\n').repeat(700), true), true)`)
	p.shows(".prose > button", "more letters are not shown")
	p.await(`box.textContent.length > 190000`)
	p.await(`box.querySelector('.prose > button').click() || [...box.querySelectorAll('.prose > button')].every((b) => b.hidden)`)
	p.await(`box.querySelectorAll('.prose p').length === 701`)
}

// 200 KB come in pieces, as fast as frames do: no frame may wait for the page.
func TestAMessageThatGrowsHoldsUpNoFrame(t *testing.T) {
	t.Parallel()
	p := modules(t)
	for name, unit := range map[string]string{
		"prose":         "## Part\n\nSome **words** and `code`, a [link](https://a.example/), and\na second line.\n\n- one\n- two\n  - three\n\n```go\nfunc f(a int) error {\n\treturn nil // x\n}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n",
		"one paragraph": "word *a* ", "one fence": "x", "brackets": "[![", "a list": "- a\n\n  b\n\n",
	} {
		if name == "one fence" {
			unit = "let a = 'b'; // c\n"
		}
		got := p.value(fmt.Sprintf(`(async () => {
			const unit = %s, all = (%t ? '`+"```js\\n"+`' : '') + unit.repeat(Math.ceil(200000 / unit.length)).slice(0, 199000);
			const prose = new m.Prose(); put(prose.element); let at = 0, last = performance.now(); const frames = [], work = [];
			const frame = () => new Promise((next) => requestAnimationFrame(next));
			while (at < all.length) {
				await frame(); const now = performance.now(); frames.push(now - last); last = now;
				at += 700; prose.update(all.slice(0, at), at >= all.length); work.push(performance.now() - last);
			}
			for (let i = 0; i < 60; i++) { await frame(); const now = performance.now(); frames.push(now - last); last = now; }
			const longest = (all) => all.sort((a, b) => b - a).slice(0, 5).map(Math.round).join(', ') + ' ms of ' + all.length;
			return 'the longest frames took ' + longest(frames) + ', the longest updates ' + longest(work);
		})()`, plainJSON(unit), name == "one fence"))
		t.Logf("%s: %s", name, got)
		p.await(`box.querySelector('.prose').lastElementChild.previousElementSibling.childNodes.length === 0`)
	}
}

// In light and dark, and on a narrow screen, what agents write can be read by everybody, and makes no page wider.
func TestWhatAgentsWriteKeepsTheRulesOfAccessibility(t *testing.T) {
	t.Parallel()
	p := modules(t)
	rules := rulesOfAxe(t)
	text := "# A title\n\nSome `code` and [a link](https://a.example/" + strings.Repeat("long", 100) + ").\n\n> quoted\n\n- [x] done\n\n| " + strings.Repeat("column | ", 20) + "\n|" + strings.Repeat("---|", 20) + "\n| " + strings.Repeat("cell | ", 20) +
		"\n\n```go\nfunc f(a int) string { return \"x\" + `" + strings.Repeat("y", 300) + "` } // why\n```\n"
	p.value(`(() => { const prose = new m.Prose(); prose.update(` + string(plainJSON(text)) + `, true); put(prose.element, m.toolInput('t', '{"path":"/a","oldText":"' + 'same\\n'.repeat(20) + 'a","newText":"' + 'same\\n'.repeat(20) + 'b' + 'z'.repeat(300) + '","n":1}'),
		m.toolInput('t', '{"command":"ls","why":"x"}'), m.toolOutput('--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n'), m.toolOutput('{"a":1}')); box.querySelector('details').open = true; return true; })()`)
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		p.keepsRules(rules, scheme)
		p.picture("prose-" + scheme)
	}
	p.size(375, 800)
	if got := p.value(`document.documentElement.scrollWidth <= 375 ? 'no wider' : 'wider'`); got != "no wider" {
		t.Errorf("got a page %s than a screen of 375, want it no wider", got)
	}
	p.keepsRules(rules, "narrow")
	p.picture("prose-narrow")
}
