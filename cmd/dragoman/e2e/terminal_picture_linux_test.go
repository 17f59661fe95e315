package e2e

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// The screen of the picture that moves, in characters.
const (
	pictureColumns, pictureRows = 104, 12
	longestPause                = 1500 * time.Millisecond
	lastPause                   = 5 * time.Second
)

// picturedFrame is what is on the screen for a while.
type picturedFrame struct {
	screen string
	lasts  time.Duration
}

// TestThePictureThatMoves records how somebody adds an agent and asks it, as a picture of the README. Its agent is a
// stand-in for Claude Code.
func TestThePictureThatMoves(t *testing.T) {
	if *pictures == "" {
		t.Skip("-console.pictures names no directory")
	}
	dir, tools := t.TempDir(), t.TempDir()
	clone(t, "../../../", dir, tools)
	standingIn("editoragent.py", "claude-agent-acp")(t, dir, tools)
	path := strings.Join([]string{tools, filepath.Join(dir, "bin"), os.Getenv("PATH")}, string(filepath.ListSeparator))
	settings := filepath.Join(dir, config.FileName)
	if err := os.WriteFile(settings, []byte("agents: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := startHubOf(t, dir, []string{"PATH=" + path, "HOME=" + dir}, "--data-dir", t.TempDir(), "--config", settings)
	env := []string{"PATH=" + path, "PS1=$ ", "TERM=xterm", "DRAGOMAN_HUB=http://" + h.http}
	term := newTerminal(t, dir, env, aPerson, "-i")
	if err := unix.IoctlSetWinsize(int(term.stdin.(*os.File).Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: pictureRows, Col: pictureColumns}); err != nil {
		t.Fatal(err)
	}
	term.until(t, "the terminal", "a prompt", func(text string) bool { return strings.HasSuffix(text, "$ ") })
	greeting, _ := term.output() // of the shell
	var frames []picturedFrame
	record := func(ends *regexp.Regexp) {
		t.Helper()
		for began := time.Now(); ; {
			text, more := term.output()
			text = "$ " + text[len(greeting):]
			if last := screenOf(text); len(frames) == 0 || frames[len(frames)-1].screen != last {
				frames = append(frames, picturedFrame{screen: last})
			}
			if frames[len(frames)-1].lasts = longestPause; ends.MatchString(text) {
				return
			}
			select {
			case <-more:
				frames[len(frames)-1].lasts = min(time.Since(began), longestPause)
				began = time.Now()
			case <-time.After(readerPatience):
				t.Fatalf("the terminal shows\n%s\nwant %s", text, ends)
			}
		}
	}
	record(regexp.MustCompile(`\$ $`))
	for _, line := range []struct{ typed, ends string }{
		{"dragoman add claude", `(?s)next:.*\$ $`},
		{`dragoman ask claude "Write hello.txt"`, `\[n\]o: $`},
		{"y", `Written\.\r\n\$ $`},
		{"cat hello.txt", `hello\r\n\$ $`},
	} {
		for i := range strings.SplitAfter(line.typed, " ") {
			words := strings.SplitAfter(line.typed, " ")
			if _, err := term.stdin.Write([]byte(words[i])); err != nil {
				t.Fatal(err)
			}
			record(regexp.MustCompile(regexp.QuoteMeta(strings.TrimSpace(words[i])) + ` ?$`))
			frames[len(frames)-1].lasts = 250 * time.Millisecond
		}
		if _, err := term.stdin.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		record(regexp.MustCompile(line.ends))
	}
	frames[len(frames)-1].lasts = lastPause
	if err := os.WriteFile(filepath.Join(*pictures, "terminal.svg"), moving(frames), 0o600); err != nil {
		t.Fatal(err)
	}
}

// escapes are the sequences that move the cursor or clear, and those that do not matter here.
var escapes = regexp.MustCompile(`^\x1b\[[0-9;?]*[A-Za-z]`)

// screenOf returns the last rows of a terminal to which a text was printed. It knows what the program prints there.
func screenOf(text string) string {
	rows, column := [][]rune{nil}, 0
	for len(text) > 0 {
		row := &rows[len(rows)-1]
		if escape := escapes.FindString(text); escape != "" {
			if strings.HasSuffix(escape, "K") {
				*row = (*row)[:min(column, len(*row))]
			}
			text = text[len(escape):]
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\n':
			rows = append(rows, nil)
		case '\r':
			column = 0
		case '\b':
			column = max(0, column-1)
		default:
			for len(*row) <= column {
				*row = append(*row, ' ')
			}
			(*row)[column] = r
			if column++; column == pictureColumns {
				rows, column = append(rows, nil), 0
			}
		}
	}
	var lines []string
	for _, row := range rows[max(0, len(rows)-pictureRows):] {
		lines = append(lines, strings.TrimRight(string(row), " "))
	}
	return strings.Join(lines, "\n")
}

// moving returns frames as a picture that moves; the last one alone where somebody wants no movement.
func moving(frames []picturedFrame) []byte {
	const rowHeight, margin = 18, 12
	var all time.Duration
	for _, f := range frames {
		all += f.lasts
	}
	width, height := pictureColumns*84/10+2*margin, pictureRows*rowHeight+2*margin
	var style, screens bytes.Buffer
	var at time.Duration
	for i, f := range frames {
		from := float64(at) / float64(all) * 100
		at += f.lasts
		fmt.Fprintf(&style, "@keyframes f%d{0%%{opacity:0}%.2f%%{opacity:1}%.2f%%{opacity:0}}#f%[1]d{animation:f%[1]d %.1fs step-end infinite}\n", i, from, min(float64(at)/float64(all)*100, 100), all.Seconds())
		fmt.Fprintf(&screens, `<g id="f%d">`, i)
		for n, line := range strings.Split(f.screen, "\n") {
			if line != "" {
				fmt.Fprintf(&screens, `<text x="%d" y="%d">%s</text>`, margin, margin+(n+1)*rowHeight-5, html.EscapeString(line))
			}
		}
		screens.WriteString("</g>\n")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img">
<title>An agent is added and asked at a terminal, and what it wants to do is allowed there</title>
<style>
rect{fill:#fff;stroke:#d0d7de}text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#1f2328;white-space:pre}g{opacity:0}
@media(prefers-color-scheme:dark){rect{fill:#0d1117;stroke:#30363d}text{fill:#e6edf3}}
%s@media(prefers-reduced-motion:reduce){g{animation:none!important}#f%d{opacity:1}}
</style>
<rect x=".5" y=".5" width="%d" height="%d" rx="6"/>
%s</svg>
`, width, height, style.String(), len(frames)-1, width-1, height-1, screens.String())
	return b.Bytes()
}
