package pi

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
)

// Fields share the memory of their frame: whoever keeps one keeps them all.
func TestACommandThatGoesOnDoesNotKeepItsFrame(t *testing.T) {
	junk := `,"unknown":"` + strings.Repeat("x", 1<<20) + `"}`
	for name, tt := range map[string]struct {
		frame string
		begun func(w *held, dir string)
	}{
		"a prompt":             {`{"id":"1","type":"prompt","sessionId":"s","message":"long"` + junk, func(w *held, _ string) { <-w.tasks }},
		"bash":                 {`{"id":"1","type":"bash","sessionId":"s","command":"echo $$ > shell; sleep 1000"` + junk, func(_ *held, dir string) { pidIn(t, filepath.Join(dir, "shell")) }},
		"the twin of a prompt": {`{"id":"2","idempotencyKey":"k","type":"prompt","sessionId":"s","message":"long"` + junk, func(w *held, _ string) { <-w.tasks }},
	} {
		t.Run(name, func(t *testing.T) {
			w := holding()
			c, s, dir := shellClient(t, Options{})
			join(t, s.hub, core.Card{ID: "x"}, w.work)
			c.ok(`{"type":"set_model","sessionId":"s","provider":"coven","modelId":"x"}`)
			s.engine.Lock()
			on := s.clients[0]
			s.engine.Unlock()
			submit := func() weak.Pointer[byte] {
				frame := []byte(tt.frame)
				cmd, err := command.Decode(frame, 10<<20)
				if err != nil {
					t.Fatal(err)
				}
				on.submit(cmd)
				return weak.Make(&frame[0])
			}
			frames := []weak.Pointer[byte]{submit()}
			tt.begun(w, dir)
			if strings.Contains(tt.frame, "idempotencyKey") {
				frames = append(frames, submit())
			}
			runtime.GC()
			for i, f := range frames {
				if f.Value() != nil {
					t.Errorf("frame %d: got it kept while the command goes on, want it gone", i+1)
				}
			}
		})
	}
}
