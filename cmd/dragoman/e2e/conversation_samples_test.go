package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// samples are where the samples of the specifications stand: one message a file, or
// several that come in this order in one conversation.
var samples = []struct {
	dir string
	// vary are the members of a message that name something or tell a time: a story
	// may have others there.
	vary []string
}{
	{"../../../schemas/parallax/samples", []string{"id", "timestamp", "taskId", "executionId", "agentId", "requestId", "parentTaskId", "serverTime"}},
	{"../../../schemas/acp/samples", []string{"id", "from", "to", "ts", "ref"}},
	{stories + "/samples/pi", []string{"requestId"}},
	{stories + "/samples/coven", []string{"agent_id"}},
}

func TestEverySampleOfTheSpecificationsIsToldInAStory(t *testing.T) {
	told := readStories(t)
	for _, s := range samples {
		paths, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("found no samples in %s: %v", s.dir, err)
		}
		for _, path := range paths {
			want := readSample(t, path, s.vary)
			if !slices.ContainsFunc(told, func(s *story) bool { return s.quotes(want) }) {
				t.Errorf("%s: got no story that quotes it, want one: every message of the specifications is told in a conversation", path)
			}
		}
	}
}

// readSample reads the messages of a sample, with placeholders for what varies.
func readSample(t *testing.T, path string, vary []string) []*jsonValue {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var all []*jsonValue
	for {
		v, err := readJSON(d)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, varying(v, vary))
	}
}

func varying(v *jsonValue, names []string) *jsonValue {
	out := &jsonValue{open: v.open, text: v.text, keys: slices.Clone(v.keys)}
	for i, item := range v.items {
		if v.open == '{' && slices.Contains(names, v.keys[i]) {
			out.items = append(out.items, textValue("$any"))
			continue
		}
		out.items = append(out.items, varying(item, names))
	}
	return out
}

// quotes reports whether the story tells these messages, in this order. What a peer
// says must be the same; the hub may say more.
func (s *story) quotes(want []*jsonValue) bool {
	known := names{known: map[string]*jsonValue{}}
	for _, st := range s.steps {
		from, _, isMessage := strings.Cut(st.heading, " > ")
		if !isMessage || !st.isJSON() {
			continue
		}
		for _, frame := range st.values() {
			if len(want) == 0 {
				return true
			}
			expected := want[0]
			if from == "hub" || len(want) > 1 {
				expected = openEnded(expected)
			}
			if from == "hub" {
				expected = saidInFull(expected, frame)
			}
			if try := known.clone(); try.agree(expected, frame) {
				known, want = try, want[1:]
			}
		}
	}
	return len(want) == 0
}

// saidInFull returns a sample with the error of a frame that begins with its own: the
// texts of the specification are the beginning of those of its reference.
func saidInFull(sample, frame *jsonValue) *jsonValue {
	short, long := sample.member("error"), frame.member("error")
	if short == nil || long == nil || long.open != '"' || !strings.HasPrefix(long.text, short.text+" ") {
		return sample
	}
	full := &jsonValue{open: sample.open, keys: slices.Clone(sample.keys), items: slices.Clone(sample.items)}
	full.set("error", long)
	return full
}

// openEnded returns a value whose objects may have further members.
func openEnded(v *jsonValue) *jsonValue {
	out := &jsonValue{open: v.open, text: v.text, keys: slices.Clone(v.keys)}
	for _, item := range v.items {
		out.items = append(out.items, openEnded(item))
	}
	if v.open == '{' {
		out.set(andSoOn, textValue(andSoOn))
	}
	return out
}
