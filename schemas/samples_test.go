package schemas

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sample is a message of a specification, or of an extension's description.
type sample struct {
	name   string // the dialect and the file
	schema *Schema
	data   []byte
}

// samples reads all of them.
func samples(t testing.TB) []sample {
	t.Helper()
	var all []sample
	for dialect, of := range map[string]func(sampleType) *Schema{
		"parallax": func(m sampleType) *Schema { return Parallax(m.Type) },
		"acp":      func(m sampleType) *Schema { return ACP(m.Kind) },
	} {
		paths, err := filepath.Glob(filepath.Join(dialect, "samples", "*.json"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("found no samples of %s: %v", dialect, err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var m sampleType
			if err := json.Unmarshal(data, &m); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			s := sample{filepath.ToSlash(path), of(m), data}
			if s.schema == nil {
				t.Fatalf("%s: there is no schema for its type", path)
			}
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b sample) int { return strings.Compare(a.name, b.name) })
	return all
}

type sampleType struct {
	Type string `json:"type"`
	Kind string `json:"kind"`
}

// parallaxEnvelope is the schema that every Parallax message obeys, of whatever type.
var parallaxEnvelope = newSchema("parallax/common/envelope.json")

func TestEverySampleOfTheSpecificationsIsTaken(t *testing.T) {
	for _, s := range samples(t) {
		t.Run(s.name, func(t *testing.T) {
			if err := s.schema.Validate(s.data); err != nil {
				t.Errorf("got %v, want the sample taken", err)
			}
			if err := validateByLibrary(compile(s.schema.file), s.data); err != nil {
				t.Errorf("the library: got %v, want the sample taken", err)
			}
			envelope := ACPEnvelope()
			if strings.HasPrefix(s.name, "parallax") {
				envelope = parallaxEnvelope
			}
			if err := envelope.Validate(s.data); err != nil {
				t.Errorf("the envelope: got %v, want the sample taken", err)
			}
		})
	}
}

// everySchema returns every schema of the package by its file.
func everySchema() map[string]*Schema {
	all := map[string]*Schema{}
	for _, s := range []map[string]*Schema{parallaxSchemas(), acpSchemas(), {"p": parallaxEnvelope, "a": ACPEnvelope()}} {
		for _, schema := range s {
			all[schema.file] = schema
		}
	}
	return all
}

func TestEveryTypeOfMessageHasASchemaAndASample(t *testing.T) {
	seen := map[*Schema]bool{}
	for _, s := range samples(t) {
		seen[s.schema] = true
	}
	want := map[string][]string{
		"parallax": {
			"register", "registered", "heartbeat", "heartbeat_ack", "task", "task_result", "task_error", "task_cancelled", "status_update",
			"config_update", "disconnect", "error", "task_accepted", "task_progress", "task_request", "task_cancel",
		},
		"acp": {
			"ping", "pong", "query", "response", "delegate", "ack", "result", "notify", "cancel", "discover", "capabilities", "error",
			"hello", "progress", "subscribe", "unsubscribe",
		},
	}
	for dialect, got := range map[string]map[string]*Schema{"parallax": parallaxSchemas(), "acp": acpSchemas()} {
		if len(got) != len(want[dialect]) {
			t.Errorf("%s: got %d schemas, want %d", dialect, len(got), len(want[dialect]))
		}
		for _, name := range want[dialect] {
			if s := got[name]; s == nil || !seen[s] {
				t.Errorf("%s: want a schema and a sample of %s", dialect, name)
			}
		}
	}
}

func TestNobodyKnowsATypeThatHasNoSchema(t *testing.T) {
	for _, name := range []string{"", "foo", "Task", "common", "common/envelope", "envelope", "parts", "../acp/query", "task.json"} {
		if Parallax(name) != nil || ACP(name) != nil {
			t.Errorf("got a schema for %q, want none", name)
		}
	}
}

func TestEverySchemaIsCheckedWithoutDecoding(t *testing.T) {
	for file, s := range everySchema() {
		if _, err := newNode(compile(file), 0); err != nil || s.compile().check == nil {
			t.Errorf("%s: got %v, want a schema of the keywords that a node holds", file, err)
		}
	}
}

func TestEveryFieldSaysWhatToSend(t *testing.T) {
	var look func(t *testing.T, path string, n *node)
	look = func(t *testing.T, path string, n *node) {
		for name, m := range n.members {
			if m.node == nil || m.node.what == "" {
				t.Errorf("%s.%s: want a description, as a phrase that can follow \"send\"", path, name)
				continue
			}
			if strings.HasSuffix(m.node.what, ".") || strings.ToLower(m.node.what[:1]) != m.node.what[:1] {
				t.Errorf("%s.%s: got %q, want a phrase that can follow \"send\"", path, name, m.node.what)
			}
			look(t, path+"."+name, m.node)
		}
		if n.items != nil {
			look(t, path+"[]", n.items)
		}
	}
	for file, s := range everySchema() {
		look(t, file, s.compile().check)
	}
}
