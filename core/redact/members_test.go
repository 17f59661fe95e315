package redact_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

// kept are the members of events that keep what they say: names, by which everybody finds what is meant.
// Every other member that can hold text is searched.
var kept = map[string]string{
	// of these types, wherever they stand
	"TaskID": "an id", "AgentID": "an id", "ThreadID": "the name of a conversation", "Code": "one of a list",

	"Principal.ID": "an id", "Principal.Dialect": "the name of a dialect",
	"Opened.Key": "a hash", "Trace.Parent": "the id of a span", "Trace.State": "ids of spans", "Trace.Above": "the id of a span", "Trace.Tool": "the name of a tool",
	"Request.Domain": "the name of a domain", "Notice.Topic": "the name of a topic", "Foreign.Dialect": "the name of a dialect",
	"Assigned.Dialect": "the name of a dialect",
	"ToolCall.ID":      "an id", "ToolCall.Parent": "an id", "ToolCall.Name": "the name of a tool", "ToolState.ID": "an id", "ToolResult.ID": "an id",
	"ApprovalRequested.ID": "an id", "ApprovalRequested.Name": "the name of a tool", "ApprovalRequested.InputSHA256": "a hash",
	"ApprovalDecided.ID": "an id", "ApprovalDecided.By": "an id", "ApprovalDecided.InputSHA256": "a hash",
	"QuestionAsked.ID": "an id", "QuestionAnswered.ID": "an id", "QuestionAnswered.By": "an id", "QuestionAnswered.Reason": "one of a list",
	"Injected.ID": "an id", "Injected.Source": "an id", "InjectionAnswered.ID": "an id",
	"Money.Currency": "that of the hub, else the cost is left out",
	"Retrying.Hub":   "the name of a hub", "CancelRequested.By": "an id", "ForeignFrame.Dialect": "the name of a dialect",
}

// fill puts the secret into everything below v that can hold text.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(secret)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), depth)
			}
		}
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth-1)
		}
	case reflect.Slice:
		switch {
		case v.Type() == reflect.TypeFor[json.RawMessage]():
			v.SetBytes([]byte(`{"a":"` + secret + `"}`))
		case v.Type().Elem().Kind() == reflect.Uint8:
			v.SetBytes([]byte(secret))
		default:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), depth)
		}
	}
}

// holders returns what below v holds the secret: Type.Member, or the name of a type that is kept.
func holders(v reflect.Value, member string) (all []string) {
	if v.IsValid() && kept[v.Type().Name()] != "" {
		member = v.Type().Name()
	}
	switch v.Kind() {
	case reflect.String:
		if strings.Contains(v.String(), "hunter2") {
			return []string{member}
		}
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			return holders(v.Elem(), member)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" { // else it is neither stored nor told
				all = append(all, holders(v.Field(i), v.Type().Name()+"."+f.Name)...)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return holders(reflect.ValueOf(string(v.Bytes())), member)
		}
		for i := range v.Len() {
			all = append(all, holders(v.Index(i), member)...)
		}
	}
	return all
}

// The members come from the types: one that is new is searched, or kept says why it is not.
func TestEveryMemberOfEveryEventIsRedactedUnlessItIsAName(t *testing.T) {
	r := compile(t, nil, secret)
	names := map[string]bool{}
	for _, kind := range core.Kinds() {
		var e core.Event
		if err := json.Unmarshal([]byte(`{"seq":7,"epoch":1,"at":"2026-01-01T00:00:00Z","kind":"`+kind.String()+`","body":{}}`), &e); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		body := reflect.New(reflect.TypeOf(e.Body)).Elem()
		fill(body, 2)
		e.Body, e.Foreign = body.Interface().(core.Body), &core.Foreign{Dialect: "acp", JSON: json.RawMessage(`"` + secret + `"`), Wire: []byte("x" + secret + "y")}
		before := len(holders(reflect.ValueOf(e), ""))
		clean := r.Event(e)
		if after := len(holders(reflect.ValueOf(e), "")); after != before {
			t.Errorf("%s: got %d members with the secret in the event that was passed, want all %d as they were", kind, after, before)
		}
		for _, member := range holders(reflect.ValueOf(clean), "") {
			names[member] = true
			if kept[member] == "" {
				t.Errorf("%s: got the secret in %s, want it redacted", kind, member)
			}
		}
		if got := string(clean.Foreign.Wire); len(got) != len(secret)+2 || clean.Seq != 7 {
			t.Errorf("%s: got the bytes %q, want as many without the secret", kind, got)
		}
	}
	for member := range kept {
		if !names[member] {
			t.Errorf("%s is in the list of names, but holds no text of an event: take it out", member)
		}
	}
}
