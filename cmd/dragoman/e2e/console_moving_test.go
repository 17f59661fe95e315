package e2e

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/gif"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

// movie is a picture of the page that moves.
type movie struct {
	*tab
	all  gif.GIF
	last image.Image
}

// take adds what the page shows now, for so many hundredths of a second.
func (m *movie) take(hundredths int) {
	m.Helper()
	m.settle()
	page := m.screenshot()
	m.all.Image = append(m.all.Image, reduced(page, changed(m.last, page)))
	m.last = page
	m.all.Delay = append(m.all.Delay, hundredths)
}

// changed returns the part of a picture that is not as it was.
func changed(before, now image.Image) (part image.Rectangle) {
	size := now.Bounds()
	if before == nil {
		return size
	}
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			if before.At(x, y) != now.At(x, y) {
				part = part.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return cmp.Or(part, image.Rect(0, 0, 1, 1))
}

// reduced returns a part of a picture with its 256 most frequent colours: a page has few.
func reduced(page image.Image, size image.Rectangle) *image.Paletted {
	count := map[color.Color]int{}
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			count[page.At(x, y)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return cmp.Compare(count[b], count[a]) })
	p := image.NewPaletted(size, all[:min(len(all), 256)])
	nearest := map[color.Color]uint8{}
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			c := page.At(x, y)
			if _, known := nearest[c]; !known {
				nearest[c] = uint8(p.Palette.Index(c))
			}
			p.SetColorIndex(x, y, nearest[c])
		}
	}
	return p
}

// filmed plays a conversation with an approval, and keeps it as a picture that moves.
func filmed(t *testing.T, h *testHub, b *browser) {
	t.Helper()
	agent := h.joinAgent(t, "claude", func(c *core.Card) { c.Model = "claude-sonnet" })
	m := &movie{tab: b.open("/#/new?to=claude")}
	m.call("Page.bringToFront", nil, nil)
	m.size(1000, 640)
	m.scheme("light")
	m.await(`document.querySelector('#to').value === 'claude'`)
	m.click("#words")
	for _, words := range []string{"The build is slow.", " Throw away", " what is stale?"} {
		m.write(words)
		m.take(60)
	}
	m.key("Enter")
	given := agent.nextTask()
	agent.report(given, core.Accepted{}, core.Thinking{Text: "what is stale, and what is not?"}, core.ToolCall{ID: "1", Name: "Bash", Input: `{"command":"du -sh build/*"}`})
	m.shows(".working", "Bash du -sh")
	m.take(120)
	agent.report(given, core.ToolResult{ID: "1", Output: "1.9G build/cache"}, core.Text{Text: "`build/cache` has **1.9 GB** that nothing uses since March."})
	const input = `{"command":"rm -rf build/cache\nmake build","description":"Throw away the cache and build anew"}`
	agent.report(given, core.ToolCall{ID: "2", Name: "Bash", Input: input}, core.ApprovalRequested{ID: "2", Name: "Bash", Input: input})
	m.await(`document.querySelector('.card [data-do="approve"]:not([disabled])')`)
	m.take(260)
	m.click(`.card [data-do="approve"]`)
	agent.decision()
	m.click("#words")
	m.await(`!document.querySelector('.card')`)
	m.take(100)
	agent.report(given, core.ToolResult{ID: "2", Output: "built in 41 s"})
	answer := []string{"It is gone, and the build is whole again:\n\n| | before | now |\n|---|---|---|\n", "| `make build` | 6 min 10 s | **41 s** |\n| on disk | 2.3 GB | 0.4 GB |\n\n", "To keep it so:\n\n```sh\nfind build -mtime +30 -delete\n```\n"}
	for _, words := range answer {
		agent.report(given, core.Text{Text: words})
		m.take(70)
	}
	agent.report(given, core.Usage{Input: 4120, Output: 230}, core.Done{})
	m.shows(".foot", "4,120 in")
	m.take(400)
	var moving bytes.Buffer
	if err := gif.EncodeAll(&moving, &m.all); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*pictures, "conversation.gif"), moving.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
