package e2e

import (
	"encoding/json"
	"testing"
)

// modules opens the console of a hub, with its modules for what agents write as m, and a place for it as box.
func modules(t *testing.T) *tab {
	t.Helper()
	h := newTestHub(t, nil)
	p := newBrowser(t, h.url()).open("/")
	p.shows(".state", "Nothing waits for you.")
	p.value(`(async () => { window.m = await import('/console/markdown.js'); const main = document.querySelector('main'); const box = document.createElement('div');
		box.id = 'box'; main.before(box); window.box = box; window.put = (...e) => { box.replaceChildren(...e); return box; }; return true; })()`)
	return p
}

// value returns the value of an expression in the page, as text if it is one, else as JSON.
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

func TestMarkdownIsRendered(t *testing.T) {
	t.Parallel()
	p := modules(t)
	for _, c := range []struct{ name, text, want string }{
		{"a table", "| a | b |\n|---|--:|\n| 1 | *2* |", `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table><thead><tr><th scope="col">a</th><th class="right" scope="col">b</th></tr></thead><tbody><tr><td>1</td><td class="right"><em>2</em></td></tr></tbody></table></div>`},
	} {
		if got := p.value(`put(m.rendered(` + string(plainJSON(c.text)) + `)).innerHTML`); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
