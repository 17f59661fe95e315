package client

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// readAll returns the data of all events, and how the stream ended.
func readAll(text string, limit int) (all []string, err error) {
	r := newEventReader(iotest.HalfReader(strings.NewReader(text)), limit)
	for {
		data, err := r.next()
		if err != nil {
			return all, err
		}
		all = append(all, string(data))
	}
}

func TestTheDataOfEventsIsRead(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for text, want := range map[string][]string{
		"data: a\n\n":                   {"a"},
		"data:a\r\n\r\ndata: b\r\n\r\n": {"a", "b"},
		"\n\n: ping\n\nevent: x\nid: 1\ndata: a\nretry: 5\n\n": {"a"},
		"data: a\ndata:  b\ndata\n\n":                          {"a\n b\n"},
		"database: a\n\ndata: b\n\n":                           {"b"},
		"data: a\n\ndata: cut":                                 {"a"},
		"data: " + long + "\n\ndata: b\n\n":                    {long, "b"},
		"data:\n\n":                                            {""},
	} {
		got, err := readAll(text, 1<<20)
		if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, io.EOF) {
			t.Errorf("%.60q ended with %v (-want +got):\n%s", text, err, diff)
		}
	}
}

func TestALineAndAnEventAreBounded(t *testing.T) {
	for _, text := range []string{
		"data: " + strings.Repeat("x", 101) + "\n\n",
		": " + strings.Repeat("x", 10_000),
		strings.Repeat("data: 0123456789\n", 11) + "\n",
	} {
		if got, err := readAll(text, 100); !errors.Is(err, errLongEvent) {
			t.Errorf("%.60q: got %q and %v, want it too long", text, got, err)
		}
	}
	if got, err := readAll("data: "+strings.Repeat("x", 100)+"\n\n", 100); !errors.Is(err, io.EOF) || len(got) != 1 {
		t.Errorf("an event of the limit: got %q and %v, want it read", got, err)
	}
}

// FuzzEvents compares the reader with one that has the whole text.
func FuzzEvents(f *testing.F) {
	f.Add("data: a\n\n: ping\n\ndata: b\r\ndata: c\r\n\r\n")
	f.Add("event: x\ndata\n\ndata: cut")
	f.Fuzz(func(t *testing.T, text string) {
		var want []string
		var data []string
		lines := strings.SplitAfter(text, "\n")
		for _, line := range lines {
			whole, ended := strings.CutSuffix(line, "\n")
			if !ended {
				break
			}
			whole = strings.TrimSuffix(whole, "\r")
			name, value, _ := strings.Cut(whole, ":")
			switch {
			case whole == "" && data != nil:
				want, data = append(want, strings.Join(data, "\n")), nil
			case name == "data":
				data = append(data, strings.TrimPrefix(value, " "))
			}
		}
		got, err := readAll(text, 1<<20)
		if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, io.EOF) {
			t.Errorf("%q ended with %v (-want +got):\n%s", text, err, diff)
		}
	})
}
