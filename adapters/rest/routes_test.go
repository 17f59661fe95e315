package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/schemas"
)

func TestTheDocumentHasExactlyTheRoutesThatAreServed(t *testing.T) {
	var served, documented []string
	router := (&api{opts: Options{}.withDefaults()}).routes()
	err := chi.Walk(router, func(method, path string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		served = append(served, method+" "+path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(schemas.OpenAPI, &d); err != nil {
		t.Fatal(err)
	}
	for path, methods := range d.Paths {
		for m := range methods {
			documented = append(documented, strings.ToUpper(m)+" "+path)
		}
	}
	slices.Sort(served)
	slices.Sort(documented)
	if diff := cmp.Diff(served, documented); diff != "" {
		t.Errorf("routes (-served +documented):\n%s", diff)
	}
}

func TestEveryFaultHasADocumentedStatus(t *testing.T) {
	for _, c := range core.Codes() {
		switch s := statuses[c]; {
		case s < 400 || http.StatusText(s) == "":
			t.Errorf("%s has status %d, want an error status", c, s)
		case !strings.Contains(string(schemas.OpenAPI), fmt.Sprintf(`"%d": {"$ref": "#/components/responses/`, s)):
			t.Errorf("%s has status %d, which is not documented", c, s)
		}
	}
	if len(statuses) != len(core.Codes()) {
		t.Errorf("got %d statuses, want one for each of %d codes", len(statuses), len(core.Codes()))
	}
}

func TestBodiesHaveTheDocumentedKeys(t *testing.T) {
	var d struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(schemas.OpenAPI, &d); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]any{
		"NewTask": taskBody{}, "NewNotice": noticeBody{}, "Cancel": cancelBody{}, "Inject": injectBody{}, "Decide": decideBody{},
		"Problem": problem{}, "Task": taskView{}, "ListedTask": listedTask{}, "Answer": answerView{}, "Opened": opened{}, "Injection": injection{}, "PendingApproval": task.PendingApproval{}, "Reader": task.ReaderStatus{}, "Hub": hubView{},
		"Gap": gap{}, "Shutdown": shutdown{}, "Fault": core.Fault{}, "Receipt": core.Receipt{}, "File": core.File{}, "Usage": core.Usage{},
		"Principal": core.Principal{}, "Load": core.Load{}, "Vitals": core.Vitals{}, "AgentTerms": termsBody{}, "Pack": hub.PackStatus{}, "Child": core.Child{}, "KnownPrincipal": core.KnownPrincipal{}, "Turn": core.Turn{}, "Request": core.Request{}, "Notice": core.Notice{},
		"Foreign": core.Foreign{}, "BodyOpened": core.Opened{}, "BodyAssigned": core.Assigned{}, "BodyAccepted": core.Accepted{},
		"BodySessionStarted": core.SessionStarted{}, "BodySessionLost": core.SessionLost{}, "BodyThinking": core.Thinking{},
		"BodyText": core.Text{}, "BodyToolCall": core.ToolCall{}, "BodyToolState": core.ToolState{}, "BodyToolResult": core.ToolResult{},
		"BodyApprovalRequested": core.ApprovalRequested{}, "BodyApprovalDecided": core.ApprovalDecided{}, "BodyInjected": core.Injected{},
		"BodyInjectionAnswered": core.InjectionAnswered{}, "BodyFile": core.File{}, "BodyUsage": core.Usage{}, "BodyRetrying": core.Retrying{},
		"BodyCancelRequested": core.CancelRequested{}, "BodyForeign": core.ForeignFrame{}, "BodyDone": core.Done{}, "BodyFailed": core.Failed{},
		"BodyCancelled": core.Cancelled{},
	} {
		var has, documented []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" && key != "-" {
				has = append(has, key)
			}
		}
		for key := range d.Components.Schemas[name].Properties {
			documented = append(documented, key)
		}
		slices.Sort(has)
		slices.Sort(documented)
		if diff := cmp.Diff(has, documented); diff != "" {
			t.Errorf("%s: keys (-program +document):\n%s", name, diff)
		}
	}
}

func TestTheTranslationCoversEveryKind(t *testing.T) {
	if err := Translation.Check(); err != nil {
		t.Error(err)
	}
}

func FuzzTaskBody(f *testing.F) {
	for _, s := range []string{
		`{"to":"shout","content":"hello"}`, `{"to":"capability:a,b","intent":"delegate","data":[1],"context":{"a":1},"deadline_ms":5,"keep":false}`,
		`{"to":"*","attachments":[{"name":"a","media_type":"text/plain","data":"aGk="}],"receipt":"recorded"}`, `{"to":1}`, `{"to":"a","to":"b"}`,
		`{"cnotent":"x"}`, `null`, `[]`, "\x00", `{"deadline_ms":-1}`, `{"data":null,"context":null,"deadline_ms":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var b taskBody
		err := decode(text, DefaultMaxBodyBytes, &b)
		if err == nil {
			_, err = b.request()
		}
		var n noticeBody
		if err := decode(text, DefaultMaxBodyBytes, &n); err == nil {
			_, _ = n.request()
		}
		if err == nil {
			return
		}
		if f := core.AsFault(err); f.Code != core.CodeInvalid || f.Message == "" || strings.Contains(f.Message, "\n") {
			t.Errorf("got %v, want an invalid Fault of one line", err)
		}
	})
}
