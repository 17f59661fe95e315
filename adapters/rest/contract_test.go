package rest_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/schemas"
)

// openAPI is the part of the OpenAPI document that tests read.
type openAPI struct {
	Paths      map[string]map[string]operation
	Components struct {
		Responses map[string]response
		Schemas   map[string]json.RawMessage
	}
}

type operation struct {
	OperationID string `json:"operationId"`
	Parameters  []struct{ Name, In string }
	Responses   map[string]response
	RequestBody struct{ Content map[string]media }
}

type response struct {
	Ref     string `json:"$ref"`
	Content map[string]media
}

type media struct{ Schema json.RawMessage }

var document = sync.OnceValue(func() openAPI {
	var d openAPI
	if err := json.Unmarshal(schemas.OpenAPI, &d); err != nil {
		panic(err)
	}
	return d
})

// strict is the document without additional properties, so that an undocumented property
// fails a test.
var strict = sync.OnceValue(func() []byte {
	var d map[string]any
	if err := json.Unmarshal(schemas.OpenAPI, &d); err != nil {
		panic(err)
	}
	for _, s := range d["components"].(map[string]any)["schemas"].(map[string]any) {
		closeObjects(s)
	}
	b, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return b
})

func closeObjects(v any) {
	s, ok := v.(map[string]any)
	if !ok {
		return
	}
	if _, has := s["additionalProperties"]; !has && s["properties"] != nil {
		s["additionalProperties"] = false
	}
	if props, ok := s["properties"].(map[string]any); ok {
		for _, p := range props {
			closeObjects(p)
		}
	}
	closeObjects(s["items"])
	// The alternatives of an event only describe the bodies of the kinds.
	if alternatives, ok := s["oneOf"].([]any); ok && s["properties"] == nil {
		for _, a := range alternatives {
			closeObjects(a)
		}
	}
}

var (
	compiledMu sync.Mutex
	compiled   = map[string]*jsonschema.Schema{}
)

// schemaOf compiles the schema at a pointer into the document.
func schemaOf(t testing.TB, pointer string) *jsonschema.Schema {
	t.Helper()
	compiledMu.Lock()
	defer compiledMu.Unlock()
	if s := compiled[pointer]; s != nil {
		return s
	}
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	if err := c.AddResource("embedded:///openapi.json", bytes.NewReader(strict())); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("embedded:///openapi.json" + pointer)
	if err != nil {
		t.Fatalf("%s is not a schema: %v", pointer, err)
	}
	compiled[pointer] = s
	return s
}

// documented validates a value against the schema of the name, or of otherwise.
func documented(t testing.TB, name, otherwise string, data []byte) {
	t.Helper()
	if name == "" {
		name = otherwise
	}
	validate(t, "#/components/schemas/"+name, data)
}

func validate(t testing.TB, pointer string, data []byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("got %q, want JSON: %v", data, err)
	}
	if err := schemaOf(t, pointer).Validate(v); err != nil {
		t.Errorf("%.300s does not match %s: %#v", data, pointer, err)
	}
}

// conforms validates an answer against the document.
func (a answer) conforms(method, path string) {
	a.t.Helper()
	path, _, _ = strings.Cut(path, "?")
	template, op := route(method, path)
	contentType := a.header.Get("Content-Type")
	if len(a.body) > 0 && !strings.HasSuffix(string(a.body), "\n") {
		a.t.Errorf("%s %s: got %q, want a line break at its end, for terminals", method, path, a.body)
	}
	if op == nil {
		if a.status < 400 {
			a.t.Errorf("%s %s: got undocumented status %d", method, path, a.status)
		}
		documented(a.t, "Problem", "", a.body)
		return
	}
	described, ok := op.Responses[strconv.Itoa(a.status)]
	if !ok {
		a.t.Errorf("%s %s: got undocumented status %d with %s", method, template, a.status, a.body)
		return
	}
	if described.Ref != "" {
		described = document().Components.Responses[strings.TrimPrefix(described.Ref, "#/components/responses/")]
	}
	m, ok := described.Content[contentType]
	switch {
	case len(described.Content) == 0 && len(a.body) == 0:
	case !ok:
		a.t.Errorf("%s %s: got %d in %q, want one of %v", method, template, a.status, contentType, slices.Sorted(maps.Keys(described.Content)))
	case strings.HasSuffix(contentType, "json") && contentType != "application/x-ndjson":
		var ref struct {
			Ref string `json:"$ref"`
		}
		if err := json.Unmarshal(m.Schema, &ref); err != nil {
			a.t.Fatal(err)
		}
		if ref.Ref != "" {
			validate(a.t, ref.Ref, a.body)
		}
	}
}

// route finds the operation of a path.
func route(method, path string) (string, *operation) {
	for template, methods := range document().Paths {
		pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(template), `\{id\}`, "[^/]+") + "$"
		if op, ok := methods[strings.ToLower(method)]; ok && regexp.MustCompile(pattern).MatchString(path) {
			return template, &op
		}
	}
	return path, nil
}

func TestEveryReferenceInTheDocumentResolves(t *testing.T) {
	for _, ref := range regexp.MustCompile(`"\$ref": "#/components/(\w+)/(\w+)"`).FindAllStringSubmatch(string(schemas.OpenAPI), -1) {
		d := document().Components
		_, isSchema := d.Schemas[ref[2]]
		_, isResponse := d.Responses[ref[2]]
		if ref[1] == "schemas" && !isSchema || ref[1] == "responses" && !isResponse {
			t.Errorf("#/components/%s/%s does not resolve", ref[1], ref[2])
		}
	}
	ids := map[string]bool{}
	for path, methods := range document().Paths {
		for method, op := range methods {
			if op.OperationID == "" || ids[op.OperationID] {
				t.Errorf("%s %s has the operationId %q, want a unique one", method, path, op.OperationID)
			}
			ids[op.OperationID] = true
		}
	}
}

func TestEverySchemaOfTheDocumentIsValidAndUsed(t *testing.T) {
	for name := range document().Components.Schemas {
		schemaOf(t, "#/components/schemas/"+name)
		if !bytes.Contains(schemas.OpenAPI, []byte(`"#/components/schemas/`+name+`"`)) {
			t.Errorf("nothing refers to %s: remove it", name)
		}
	}
}

func TestTheDocumentHasEveryKindAndEveryCode(t *testing.T) {
	var enum struct{ Enum []string }
	read := func(name string) []string {
		if err := json.Unmarshal(document().Components.Schemas[name], &enum); err != nil {
			t.Fatal(err)
		}
		return enum.Enum
	}
	var kinds, codes []string
	for _, k := range core.Kinds() {
		kinds = append(kinds, k.String())
	}
	for _, c := range core.Codes() {
		codes = append(codes, string(c))
	}
	if diff := cmp.Diff(kinds, read("Kind")); diff != "" {
		t.Errorf("kinds (-core +document):\n%s", diff)
	}
	if diff := cmp.Diff(codes, read("Code")); diff != "" {
		t.Errorf("codes (-core +document):\n%s", diff)
	}
	var event struct {
		OneOf []struct {
			Properties struct{ Kind struct{ Const string } }
		} `json:"oneOf"`
	}
	if err := json.Unmarshal(document().Components.Schemas["Event"], &event); err != nil {
		t.Fatal(err)
	}
	var described []string
	for _, a := range event.OneOf {
		described = append(described, a.Properties.Kind.Const)
	}
	if diff := cmp.Diff(kinds, described); diff != "" {
		t.Errorf("kinds whose body is described (-core +document):\n%s", diff)
	}
}
