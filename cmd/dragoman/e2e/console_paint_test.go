package e2e

import (
	"flag"
	"slices"
	"strconv"
	"testing"
)

var measurePaint = flag.Int("console.paint", 0, "how often to measure the first paint of the console")

// TestTheFirstPaintIsMeasured logs how long the page takes until something is painted, as the browser
// tells it. It asserts nothing: docs/performance.md has the figures.
func TestTheFirstPaintIsMeasured(t *testing.T) {
	if *measurePaint == 0 {
		t.Skip("-console.paint says not how often")
	}
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	b.open("/#/hub").shows(".facts", "Running") // the browser has started
	var all []int
	for range *measurePaint {
		p := b.open("/")
		ms, err := strconv.Atoi(p.await(`performance.getEntriesByName('first-contentful-paint').length && '' + Math.round(performance.getEntriesByName('first-contentful-paint')[0].startTime)`))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ms)
		p.call("Page.close", nil, nil)
	}
	slices.Sort(all)
	t.Logf("first contentful paint: median %d ms, least %d ms, most %d ms of %d", all[len(all)/2], all[0], all[len(all)-1], len(all))
}
