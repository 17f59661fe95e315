//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// snippet is a fenced block of a page. What follows the language says what a test does with it;
// CONTRIBUTING.md has the table of these marks.
type snippet struct {
	at         string // page:line
	lang, text string
	marks      map[string]string
}

// has reports whether the snippet has a mark.
func (s snippet) has(mark string) bool { _, ok := s.marks[mark]; return ok }

var fenced = regexp.MustCompile("(?ms)^( *)```([a-z]+)([^\n]*)\n(.*?)^ *```$")

// snippetsOf returns the snippets of a page.
func snippetsOf(t *testing.T, path string) []snippet {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []snippet
	for _, m := range fenced.FindAllSubmatchIndex(b, -1) {
		part := func(n int) string { return string(b[m[2*n]:m[2*n+1]]) }
		s := snippet{at: fmt.Sprintf("%s:%d", filepath.Base(path), bytes.Count(b[:m[0]], []byte("\n"))+1), lang: part(2), marks: map[string]string{}}
		for line := range strings.Lines(part(4)) {
			s.text += strings.TrimPrefix(line, part(1)) // in a list it is indented
		}
		for _, mark := range strings.Fields(part(3)) {
			key, value, _ := strings.Cut(mark, "=")
			s.marks[key] = value
		}
		all = append(all, s)
	}
	return all
}

// localPort matches an address of this machine.
var localPort = regexp.MustCompile(`\b(127\.0\.0\.1|localhost):([0-9]+)\b`)

// listeners are the addresses at which a hub listens if nothing is set.
var listeners = map[string]string{"GRPC": "50051", "HTTP": "8080", "PI": "3141"}

// moved returns the snippets with a free port for each port of this machine in them, and the
// variables by which hubs and commands know those that are usual.
func moved(t *testing.T, snippets []snippet) (elsewhere []snippet, env []string) {
	t.Helper()
	ports := map[string]string{}
	own := false // the files of the page say where hubs listen
	for _, s := range snippets {
		for _, m := range localPort.FindAllStringSubmatch(s.text, -1) {
			ports[m[2]] = ""
		}
		own = own || s.has("file") && strings.Contains(s.text, "http_addr")
	}
	for _, port := range listeners {
		ports[port] = ""
	}
	free := int(fixedPorts(t, uint32(len(ports))))
	for i, port := range slices.Sorted(maps.Keys(ports)) {
		ports[port] = strconv.Itoa(free + i)
	}
	for name, port := range listeners {
		if !own {
			env = append(env, "DRAGOMAN_"+name+"_ADDR=127.0.0.1:"+ports[port])
		}
	}
	for _, s := range snippets {
		s.text = localPort.ReplaceAllStringFunc(s.text, func(address string) string {
			host, port, _ := strings.Cut(address, ":")
			return host + ":" + ports[port]
		})
		elsewhere = append(elsewhere, s)
	}
	return elsewhere, append(env, "DRAGOMAN_HUB=http://127.0.0.1:"+ports[listeners["HTTP"]])
}

// read does what a page says, from top to bottom. Commands run one after the other in one shell;
// those with the mark terminal in one of their own, until the end of the page.
func read(t *testing.T, path, dir, tools string) {
	t.Helper()
	snippets, env := moved(t, snippetsOf(t, path))
	env = append(env, "HOME="+t.TempDir(), "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "DRAGOMAN_LOG_FORMAT=human", "TERM=dumb", "PATH="+filepath.Join(dir, "bin")+":"+tools+":"+os.Getenv("PATH"))
	main := newMainTerminal(t, dir, env)
	var others []*terminal
	named := map[string]*terminal{}
	last, ran := "", 0 // what the last command printed, if it is not in a terminal of its own
	var of *terminal   // else its terminal
	for _, s := range snippets {
		switch {
		case s.has("file"):
			name := filepath.Join(dir, s.marks["file"])
			if err := os.WriteFile(name, []byte(s.text), 0o600); err != nil {
				t.Fatalf("%s: %v", s.at, err)
			}
		case s.lang == "sh" && s.has("terminal"):
			name := s.marks["terminal"]
			if before := named[name]; name != "" && before != nil { // the reader presses Ctrl-C first
				before.stop(t)
				others = slices.DeleteFunc(others, func(o *terminal) bool { return o == before })
			}
			in := noStdin
			if typesInto(snippets, name) {
				in = aPerson
			}
			of = startTerminal(t, dir, s.text, env, in)
			others = append(others, of)
			named[name] = of
			ran++
		case s.lang == "sh" && !s.has("check"):
			last, of = main.run(t, s), nil
			ran++
		case s.has("typed"):
			of = named[s.marks["typed"]]
			if _, err := io.WriteString(of.stdin, s.text); err != nil {
				t.Fatalf("%s: %v", s.at, err)
			}
		case s.has("output"):
			if name := s.marks["output"]; name != "" {
				if of = named[name]; of == nil {
					t.Fatalf("%s: got the name %q, want that of a terminal above", s.at, name)
				}
			}
			if of != nil {
				of.await(t, s)
			} else if why := differs(s.text, last); why != "" {
				t.Errorf("%s: %s\ngot\n%swant\n%s", s.at, why, last, s.text)
			}
		}
	}
	if ran == 0 {
		t.Errorf("%s: got no command that runs, want some", path)
	}
	main.end(t)
	for _, other := range slices.Backward(others) {
		other.stop(t)
	}
}

// typesInto reports whether something is typed into a terminal.
func typesInto(snippets []snippet, name string) bool {
	return name != "" && slices.ContainsFunc(snippets, func(s snippet) bool { return s.has("typed") && s.marks["typed"] == name })
}

// differs says how an output differs from what a page shows of it, or nothing. Runs of spaces are
// equal; an ellipsis stands for anything within a line, and as a line for any lines.
func differs(shown, got string) string {
	pattern := strings.Builder{}
	for line := range strings.Lines(shown) {
		if line = strings.Join(strings.Fields(line), " "); line == "…" {
			pattern.WriteString(`(?:[^\n]*\n)*?`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", `[^\n]*`) + `\n`)
	}
	if !regexp.MustCompile(`\A` + pattern.String() + `\z`).MatchString(squeezed(got)) {
		return "the output is not the one that is shown"
	}
	return ""
}

// shows reports whether the lines that a page shows are in an output, in this order.
func shows(shown, got string) bool {
	lines := strings.Split(squeezed(got), "\n")
	for line := range strings.Lines(shown) {
		line = strings.Join(strings.Fields(line), " ")
		want := regexp.MustCompile(`\A` + strings.ReplaceAll(regexp.QuoteMeta(line), "…", `.*`) + `\z`)
		i := slices.IndexFunc(lines, want.MatchString)
		if i < 0 {
			return false
		}
		lines = lines[i+1:]
	}
	return true
}

// squeezed returns the lines of a text with one space for each run of them.
func squeezed(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return out.String()
}

func TestAnOutputIsComparedWithWhatAPageShows(t *testing.T) {
	for _, c := range []struct {
		shown, got string
		same       bool
	}{
		{"HELLO\n", "HELLO\n", true},
		{"HELLO\n", "HELLO\nand more\n", false},
		{"HELLO\n", "", false},
		{"A  B\n1  …\n", "A    B\n1    2\n", true},
		{"A\n…\nZ\n", "A\nb\nc\nZ\n", true},
		{"A\n…\nZ\n", "A\nb\nc\n", false},
		{"a.c\n", "abc\n", false},
	} {
		if got := differs(c.shown, c.got) == ""; got != c.same {
			t.Errorf("%q beside %q: got %t, want %t", c.shown, c.got, got, c.same)
		}
	}
	if !shows("b\nd\n", "a\nb\nc\nd\n") || shows("d\nb\n", "a\nb\nc\nd\n") {
		t.Error("got lines found in another order, want them in theirs")
	}
}
