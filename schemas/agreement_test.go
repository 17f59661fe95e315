package schemas

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Sample is a message of a specification, or of the description of an extension.
type Sample struct {
	Name   string // the path of its file
	Schema *Schema
	Data   []byte
}

// Samples returns all samples.
func Samples(t testing.TB) []Sample {
	t.Helper()
	var all []Sample
	for dialect, of := range map[string]func(sampleType) *Schema{
		"parallax": func(m sampleType) *Schema { return Parallax(m.Type) },
		"acp":      func(m sampleType) *Schema { return ACP(m.Kind) },
		"native":   func(m sampleType) *Schema { return Native(m.frame) },
		"a2a":      func(m sampleType) *Schema { return A2A(m.Method) },
		"pi-rpc":   func(m sampleType) *Schema { return PiRPC(m.Type) },
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
			m.frame = firstMember(data)
			s := Sample{filepath.ToSlash(path), of(m), data}
			if s.Schema == nil {
				t.Fatalf("%s: there is no schema for its type", path)
			}
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b Sample) int { return strings.Compare(a.Name, b.Name) })
	return all
}

type sampleType struct {
	Type string `json:"type"`
	Kind string `json:"kind"`
	// Method is that of A2A.
	Method string `json:"method"`
	// frame is the member that names a frame of the native dialect.
	frame string
}

// firstMember returns the first member of an object.
func firstMember(data []byte) (key string) {
	v, err := strictjson.Parse(data, strictjson.Limits{})
	for name := range v.Members() {
		if err == nil && key == "" {
			key = string(name)
		}
	}
	return key
}

// ParallaxEnvelope is the schema of every Parallax message, of whatever type.
var ParallaxEnvelope = linked.newSchema("parallax/common/envelope.json")

func TestEverySampleOfTheSpecificationsIsTaken(t *testing.T) {
	for _, s := range Samples(t) {
		t.Run(s.Name, func(t *testing.T) {
			if err := s.Schema.Validate(s.Data); err != nil {
				t.Errorf("got %v, want the sample taken", err)
			}
			if err := validateByLibrary(s.Schema.compile().library, s.Data); err != nil {
				t.Errorf("the library: got %v, want the sample taken", err)
			}
			if strings.HasPrefix(s.Name, "native") || strings.HasPrefix(s.Name, "a2a") || strings.HasPrefix(s.Name, "pi-rpc") {
				return // a frame has no envelope
			}
			envelope := ACPEnvelope()
			if strings.HasPrefix(s.Name, "parallax") {
				envelope = ParallaxEnvelope
			}
			if err := envelope.Validate(s.Data); err != nil {
				t.Errorf("the envelope: got %v, want the sample taken", err)
			}
		})
	}
}

// everySchema returns every schema of the package by its file.
func everySchema() map[string]*Schema {
	all := map[string]*Schema{}
	for _, f := range []*folder{&parallaxSchemas, &acpSchemas, &nativeSchemas, &nativeEvents, &nativeCommands, &a2aSchemas, &a2aResults, &piRPCSchemas, &piRPCResults} {
		f.schema("")
		for _, schema := range f.named {
			all[schema.file] = schema
		}
	}
	for _, schema := range []*Schema{ParallaxEnvelope, ACPEnvelope()} {
		all[schema.file] = schema
	}
	return all
}

func TestEverySchemaIsCheckedWithoutDecoding(t *testing.T) {
	for file, s := range everySchema() {
		if _, err := newNode(s.compile().library, 0); err != nil || s.compile().check == nil {
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

// agree fails when the check and the library judge a message differently. Both
// must be asked about JSON only, without duplicate keys.
func agree(t interface{ Errorf(string, ...any) }, s *Schema, data []byte) {
	got := s.Validate(data)
	want := validateByLibrary(s.compile().library, data)
	if (got == nil) != (want == nil) {
		t.Errorf("%s: the check says %v, the library %v, of %s", s.file, got, want, data)
	}
	var v *Violation
	if got != nil && (!errors.As(got, &v) || strings.Contains(v.Error(), "\n") || !utf8.ValidString(v.Error()) || len(v.Error()) > 1000) {
		t.Errorf("got %q, want one short line", got)
	}
}

// odd are values to put where they do not belong.
var odd = []string{
	`null`, `true`, `false`, `0`, `-1`, `1`, `1.0`, `1.5`, `2e3`, `-0`, `1e300`, `""`, `"x"`, `"low"`, `"\u006cow"`, `"idle"`, `[]`, `["a"]`, `[1]`, `[{}]`, `{}`,
	`{"id":"x"}`, `{"id":"x","name":"y","state":"running","data":""}`, `{"code":"c"}`, `[null]`,
}

// disturb changes one value somewhere in a message: replaces it, removes it or
// adds another.
func disturb(t *rapid.T, value any) any {
	if rapid.IntRange(0, 3).Draw(t, "here") == 0 {
		return json.RawMessage(rapid.SampledFrom(odd).Draw(t, "odd"))
	}
	switch v := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		known := []string{"x", "id", "ref", "v", "ts", "priority", "status", "seq", "usage", "toolState", "tool_call", "error", "requestId", "metadata", "config"}
		key := rapid.SampledFrom(append(keys, known...)).Draw(t, "key")
		old, there := v[key]
		switch {
		case !there:
			v[key] = json.RawMessage(rapid.SampledFrom(odd).Draw(t, "odd"))
		case rapid.IntRange(0, 4).Draw(t, "remove") == 0:
			delete(v, key)
		default:
			v[key] = disturb(t, old)
		}
		return v
	case []any:
		if len(v) == 0 {
			return []any{json.RawMessage(rapid.SampledFrom(odd).Draw(t, "odd"))}
		}
		i := rapid.IntRange(0, len(v)-1).Draw(t, "index")
		v[i] = disturb(t, v[i])
		return v
	}
	return json.RawMessage(rapid.SampledFrom(odd).Draw(t, "odd"))
}

func TestTheCheckAndTheLibraryAgreeOnDisturbedSamples(t *testing.T) {
	all := Samples(t)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(all).Draw(t, "sample")
		var message any
		if err := json.Unmarshal(s.Data, &message); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			again, _ := json.Marshal(disturb(t, message))
			message = nil
			if err := json.Unmarshal(again, &message); err != nil {
				t.Fatal(err)
			}
			agree(t, s.Schema, again)
		}
	})
}

func FuzzValidate(f *testing.F) {
	var all []*Schema
	for _, s := range everySchema() {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Schema) int { return strings.Compare(a.file, b.file) })
	for _, s := range Samples(f) {
		f.Add(slices.Index(all, s.Schema), s.Data)
	}
	for i, text := range append(odd, `{"type":"task`, `{"a":"\`, `"\u00`, `{"type":"x" "y"}`, `[1,]`, `-`, `01`, `{"type":}`, "\xff") {
		f.Add(i, []byte(text))
	}
	f.Fuzz(func(t *testing.T, i int, data []byte) {
		s := all[(i%len(all)+len(all))%len(all)]
		if strictjson.Check(data, strictjson.Limits{}) != nil {
			_ = s.Validate(data) // no panic is all that is asked
			return
		}
		if _, err := decode(data); err != nil {
			return // a number that the library cannot read
		}
		agree(t, s, data)
	})
}

// Frame returns a frame as peers send it.
func Frame(b *testing.B) []byte {
	data, err := os.ReadFile("parallax/samples/task_result.json")
	if err != nil {
		b.Fatal(err)
	}
	return []byte(strings.NewReplacer("\n", "", "  ", "").Replace(string(data)))
}

// BenchmarkTheLibraryOnAFrame is what the same verdict costs by decoding the
// frame and asking the JSON Schema library.
func BenchmarkTheLibraryOnAFrame(b *testing.B) {
	data, s := Frame(b), Parallax("task_result").compile().library
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := validateByLibrary(s, data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCompileEverySchema is what the first use of every type of message
// costs together.
func BenchmarkCompileEverySchema(b *testing.B) {
	all := everySchema()
	for b.Loop() {
		linked, unlinked := newCompiler(linked.open), newCompiler(unlinked.open)
		for file := range all {
			c := linked
			if _, err := files.Open(file); err != nil {
				c = unlinked
			}
			s, err := c.Compile(base + file)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := newNode(s, 0); err != nil {
				b.Fatal(err)
			}
		}
	}
}
