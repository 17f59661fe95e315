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

// samples are the samples of the specifications: one message per file, or several that occur in
// this order in one conversation.
var samples = []struct {
	dir string
	// vary are the members that hold ids, times, and what the hub names itself, which may differ.
	vary []string
}{
	{"../../../schemas/parallax/samples", []string{"id", "timestamp", "taskId", "executionId", "agentId", "requestId", "parentTaskId", "serverTime"}},
	{"../../../schemas/acp/samples", []string{"id", "from", "to", "ts", "ref"}},
	{conversationsDir + "/samples/pi", []string{"requestId"}},
	{conversationsDir + "/samples/coven", []string{"agent_id", "source"}},
}

func TestEverySampleOfTheSpecificationsIsInAConversation(t *testing.T) {
	t.Parallel()
	received := readConversations(t)
	for _, s := range samples {
		paths, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("found no samples in %s: %v", s.dir, err)
		}
		for _, path := range paths {
			want := readSample(t, path, s.vary)
			if !slices.ContainsFunc(received, func(s *recording) bool { return s.contains(want) }) {
				t.Errorf("%s: got no conversation with it, want every message of the specifications in one", path)
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

// contains reports whether the conversation has these messages in this order. A peer's message must
// be equal; the hub's may have further members.
func (s *recording) contains(want []*jsonValue) bool {
	known := bindings{values: map[string]*jsonValue{}}
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
				expected = withFullError(expected, frame)
			}
			if try := known.clone(); try.agrees(expected, frame) {
				known, want = try, want[1:]
			}
		}
	}
	return len(want) == 0
}

// withFullError returns a sample with the error of a frame that begins with the sample's: the texts
// of the specification are prefixes of the reference's.
func withFullError(sample, frame *jsonValue) *jsonValue {
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
		out.set(ellipsis, textValue(ellipsis))
	}
	return out
}
