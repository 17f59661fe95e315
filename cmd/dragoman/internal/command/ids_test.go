package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// Two tasks and a question, whose ids begin alike.
const (
	firstID  = "01a22ce8-8a09-795e-8000-00011774ba25"
	secondID = "01a22ce8-8a09-795e-8000-00021774ba25"
	askedID  = "01a22ce8-8a09-795e-8000-0003177fffff"
)

func TestAnIDMayBeShortened(t *testing.T) {
	var asked string
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/hub", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"principal":"ann"}`) })
	mux.HandleFunc("GET /v1/tasks", func(w http.ResponseWriter, r *http.Request) {
		ids := []string{secondID, firstID}
		if r.URL.Query().Get("from") == "ann" {
			ids = ids[1:]
		}
		fmt.Fprintf(w, `{"tasks":[{"id":"%s"}]}`, strings.Join(ids, `"},{"id":"`))
	})
	mux.HandleFunc("GET /v1/tasks/{id}", func(w http.ResponseWriter, r *http.Request) {
		asked = r.PathValue("id")
		fmt.Fprint(w, `{}`)
	})
	mux.HandleFunc("GET /v1/approvals", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"approvals":[{"task":"%s","id":"1"}]}`, firstID)
	})
	mux.HandleFunc("POST /v1/tasks/{id}/{act}", func(w http.ResponseWriter, r *http.Request) {
		asked = r.PathValue("id")
		fmt.Fprint(w, `{"id":"1","state":"cancelled"}`)
	})
	mux.HandleFunc("GET /v1/questions", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"questions":[{"id":"%s","question":"Which?"}]}`, askedID)
	})
	mux.HandleFunc("POST /v1/questions/{id}/answer", func(w http.ResponseWriter, r *http.Request) {
		asked = r.PathValue("id")
		fmt.Fprint(w, `{}`)
	})
	hub := httptest.NewServer(mux)
	defer hub.Close()
	for _, c := range []struct{ args, want, says string }{
		{"tasks 00011774ba25", firstID, ""},
		{"tasks " + secondID, secondID, ""},
		{"tasks last", firstID, ""},
		{"cancel 1-8000-0002", "1-8000-0002", ""}, // in the middle: the hub says that it does not know it
		{"cancel 00021774ba25", secondID, ""},
		{"approve 74ba25", firstID, ""},
		{"deny 01a22", firstID, ""},
		{"answer 7fffff --dismiss", askedID, ""},
		{"answer 7fffff yes", askedID, ""},
		{"tasks 74ba25", "", `several ids begin or end with "74ba25": ` + secondID + ", " + firstID},
		{"approve last", "", "last decides nothing: name the task"},
	} {
		asked = ""
		code, out, stderr := run(t, append(strings.Fields(c.args), "--hub="+hub.URL)...)
		if asked != c.want || !strings.Contains(stderr, c.says) || (c.says != "") != (code == command.ExitUsage) {
			t.Errorf("%s: got %d, %q, %q and asked for %q, want %q and %q", c.args, code, out, stderr, asked, c.want, c.says)
		}
	}
}
