package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// TestMain is one of the other processes of a bench if the first argument names one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && peers[os.Args[1]] != nil {
		main()
	}
	goleak.VerifyTestMain(m)
}

// The hub and the relay answer every byte, for every pair; a row that does not fails.
func TestTheRowsOfTheBenchMeasureBothSides(t *testing.T) {
	tier.Full(t, "it builds a hub and measures for 10 s")
	hub := filepath.Join(t.TempDir(), "dragoman")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", hub, "github.com/dragoman-hub/dragoman/cmd/dragoman").CombinedOutput(); err != nil {
		t.Fatalf("got %v: %s", err, out)
	}
	var out, log bytes.Buffer
	code := run([]string{
		"-json", "-rounds", "1", "-time", "20ms", "-crowd", "20", "-agents", "8", "-hub-binary", hub, "-base-binary", hub,
		"-rows", "idle,clients-16,crowd-any,crowd-unknown,thread-acp,open-*,pair-*-1",
	}, &out, &log)
	if code != 0 {
		t.Fatalf("got %d and\n%s", code, &log)
	}
	var result struct {
		Rows []struct {
			Name  string
			Sides []struct {
				Name string
				Took struct{ N int }
				Rate float64
			}
			Figures []figure
		}
	}
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		t.Fatalf("got %v, want JSON: %s", err, &out)
	}
	if want := 1 + 1 + 2 + 1 + 3 + 6*4; len(result.Rows) != want { // 6 requesters ask 4 agents
		t.Errorf("got %d rows, want %d", len(result.Rows), want)
	}
	for _, row := range result.Rows {
		var sides []string
		for _, s := range row.Sides {
			sides = append(sides, s.Name)
			if s.Took.N == 0 || s.Rate <= 0 {
				t.Errorf("%s: the %s: got %d answers at %.0f a second, want some", row.Name, s.Name, s.Took.N, s.Rate)
			}
		}
		want := "hub base relay"
		switch {
		case row.Name == "idle":
			want = ""
			if len(row.Figures) != 3*len(dialects()) {
				t.Errorf("idle: got %v, want a figure of each side for each of %v", row.Figures, dialects())
			}
		case strings.HasPrefix(row.Name, "open-"):
			due := row.Figures[len(row.Figures)-1]
			for _, closed := range row.Figures[:3] {
				if due.Name != "questions due" || due.Value <= 0 || due.Value > closed.Value/2 {
					t.Errorf("%s: got %v, want at most half of %v", row.Name, due, closed)
				}
			}
		case strings.HasPrefix(row.Name, "crowd-"):
			want = "hub base few"
		case strings.HasPrefix(row.Name, "thread-"):
			want = "hub base hub, first question base, first question"
		}
		if got := strings.Join(sides, " "); got != want {
			t.Errorf("%s: got the sides %s, want %s", row.Name, got, want)
		}
	}
}

func TestTheClientOfABenchNoticesWhatGoesWrong(t *testing.T) {
	const delta = `{"type":"event","sessionId":"%s","event":{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,`
	for _, tt := range []struct{ name, frame, want, err string }{
		{name: "a response", frame: `{"id":"3-7","type":"response","command":"prompt","success":true}`},
		{name: "a refusal", frame: `{"id":"3-7","type":"response","command":"prompt","success":false}`, err: "refused"},
		{name: "a response to nobody", frame: `{"type":"response","command":"prompt","success":false}`, want: "not what a pi client expects"},
		{name: "a response to another", frame: `{"id":"64-7","type":"response","success":true}`, want: "a worker that there is not"},
		{name: "text for another", frame: fmt.Sprintf(delta+`"delta":"x"}}}`, "-1"), want: "a worker that there is not"},
		{name: "a delta without text", frame: fmt.Sprintf(delta+`"content":"x"}}}`, "3"), want: "a delta without its text"},
		{name: "a delta that is cut off", frame: fmt.Sprintf(delta+`"delta":"x`, "3"), want: "a delta without its text"},
		{name: "something else", frame: `{"kind":"event"}`, want: "not what a pi client expects"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &wsAsker{}
			s.workers[3].done = make(chan error, 1)
			if err := s.hearPi([]byte(tt.frame)); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if tt.want != "" {
				return
			}
			if err := s.hearPi([]byte(tt.frame)); err == nil {
				t.Error("twice: got nil, want that it came twice")
			}
			if err := <-s.workers[3].done; (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error of the worker: got %v, want %q", err, tt.err)
			}
		})
	}
}

func TestTheClientOfTheRelayNoticesWhatGoesWrong(t *testing.T) {
	s := &wsAsker{}
	s.workers[3].done = make(chan error, 1)
	for _, tt := range []struct {
		frame relayFrame
		raw   string
		want  string
	}{
		{frame: relayFrame{ID: "3-7", Delta: "xx"}},
		{frame: relayFrame{ID: "3-7", Delta: "x", Done: true}},
		{frame: relayFrame{ID: "3-7", Done: true}, want: "answered twice"},
		{frame: relayFrame{ID: "64-7", Done: true}, want: "a worker that there is not"},
		{raw: `{"id":"3-7","delta":"x`, want: "a delta without its text"},
		{raw: `{"done":true}`, want: "not what the relay speaks"},
	} {
		frame := []byte(tt.raw)
		if tt.raw == "" {
			var err error
			if frame, err = json.Marshal(tt.frame); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.hearRelay(frame); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", frame, err, tt.want)
		}
	}
	if got := s.workers[3].got.Load(); got != 3 {
		t.Errorf("bytes of text: got %d, want 3", got)
	}
	if err := <-s.workers[3].done; err != nil {
		t.Errorf("error of the worker: got %v, want an answer", err)
	}
}
