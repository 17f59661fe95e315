package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// picturesKept is where the pictures of the documentation are.
var picturesKept = filepath.Join("..", "..", "..", "docs", "pictures")

// maxPictures is the size of all pictures together.
const maxPictures = 1200 << 10

// TestPictures makes the pictures of the documentation, if it is told where to.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("-console.pictures names no directory")
	}
	h := newTestHub(t, onStage)
	b := newBrowser(t, h.url())
	filmed(t, h, b)
	live := b.openLive()
	s := setStage(t, h)
	tab := b.open("/")
	for _, v := range s.views() {
		p := tab
		switch v.name {
		case "live":
			p = live
		case "agent", "new", "task", "thread", "events", "nowhere", "tasks":
			continue
		}
		p.call("Page.bringToFront", nil, nil)
		p.size(1200, 760)
		p.scheme("light")
		p.show(v)
		p.settle()
		p.picture(v.name)
		if v.name == "frames" {
			p.scheme("dark")
			p.await(`(scrollTo(0, document.querySelector('.said li:nth-child(3)').offsetTop - 60), true)`)
			p.settle()
			p.picture(v.name + "-dark")
			p.scheme("light")
			p.size(390, 800)
			p.settle()
			p.picture(v.name + "-narrow")
			p.size(1200, 760)
		}
		if v.name == "conversation" {
			p.size(390, 800)
			p.settle()
			p.picture(v.name + "-narrow")
			p.size(1200, 760)
		}
	}
}

// settle waits until the page has been painted with what it shows.
func (p *tab) settle() {
	p.Helper()
	p.await(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

// A picture that is named is there, one that is there is named, and all are small.
func TestThePicturesOfTheDocumentationAreThere(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	image := regexp.MustCompile(`!\[[^\]]+\]\((?:docs/)?pictures/([^)]+)\)`)
	named := map[string]bool{}
	for _, name := range append(documents, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range image.FindAllStringSubmatch(string(text), -1) {
			named[m[1]] = true
			if _, err := os.Stat(filepath.Join(picturesKept, m[1])); err != nil {
				t.Errorf("%s shows %s, which is not there: make pictures", filepath.Base(name), m[1])
			}
		}
	}
	entries, err := os.ReadDir(picturesKept)
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	var orphans []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
		if !named[e.Name()] {
			orphans = append(orphans, e.Name())
		}
	}
	if slices.Sort(orphans); len(orphans) > 0 {
		t.Errorf("got pictures that no document shows: %s", strings.Join(orphans, ", "))
	}
	if total > maxPictures || len(named) < 8 {
		t.Errorf("got %d pictures of %d bytes, want at least 8 of at most %d", len(named), total, maxPictures)
	}
}
