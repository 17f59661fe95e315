package pi_test

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
)

func FuzzTranscript(f *testing.F) {
	f.Add(`{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"x"}],"stopReason":"stop"}}`)
	f.Add(`{"type":"extension_ui_request","requestId":"r","message":"m"}`)
	f.Fuzz(func(t *testing.T, event string) {
		var tr pitest.Transcript
		tr.Add(pitest.Frame{Type: "event", Event: json.RawMessage(event)})
	})
}
