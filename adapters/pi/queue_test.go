package pi_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core"
)

func TestTheMessageQueueIsBounded(t *testing.T) {
	const most = 64 << 10
	h, s := newServer(t, pi.Options{}.WithMaxQueued(most))
	joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	image := base64.StdEncoding.EncodeToString(make([]byte, 10<<10))
	say := func(kind string) string {
		return `{"type":"` + kind + `","sessionId":"s","message":"look","images":[{"data":"` + image + `","mimeType":"image/png"}]}`
	}
	full := fmt.Sprintf("Too much waits to be said in session s (max %d bytes)", most)
	for i := range 6 {
		c.ok(say([]string{"steer", "follow_up"}[i%2]))
	}
	c.fails(say("steer"), full)
	c.fails(say("follow_up"), full)
	c.ok(`{"type":"follow_up","sessionId":"s","message":"small"}`)
	c.ok(`{"type":"new_session","sessionId":"s"}`) // drops the queue
	c.ok(say("follow_up"))
}
