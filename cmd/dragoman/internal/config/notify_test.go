package config_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const signing = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func TestAWebhookIsToldOfWhatNeedsAPersonUnlessItSaysMore(t *testing.T) {
	c, err := configOf(t, "notify: {webhooks: [{url: 'http://127.0.0.1:9000/hidden?token=hidden', secret: "+signing+"}, {url: 'https://ntfy.sh/topic', on: [ended], agents: ['pi-*'], content: true}]}", nil)
	if err != nil {
		t.Fatal(err)
	}
	all := c.Notify.Webhooks
	if len(all) != 2 || !slices.Equal(all[0].On, []string{"waiting", "failed", "agent_down"}) || !slices.Equal(all[1].On, []string{"ended"}) || !all[1].Content {
		t.Errorf("got %+v, want the usual events, and those that are named", all)
	}
	if key, is := all[0].Key(); !is || len(key) != 24 {
		t.Errorf("got a key of %d bytes (%t), want the 24 of the secret", len(key), is)
	}
	shown, err := json.Marshal(c.Plain())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append([]string{string(shown), c.Values()["notify.webhooks"]}, fmt.Sprint(c.Notify.Webhooks)) {
		if strings.Contains(text, "hidden") || strings.Contains(text, "MfKQ9r") || !strings.Contains(text, "127.0.0.1:9000") {
			t.Errorf("got %s, want the host, and neither the path nor the secret", text)
		}
	}
}

func TestAWrongWebhookIsRefusedWithWhatToChangeAndWithoutItsSecret(t *testing.T) {
	for file, want := range map[string]string{
		`[{on: [ended]}]`:                         "notify.webhooks[0].url: missing",
		`[{url: 'ntfy.sh/hidden'}]`:               "notify.webhooks[0].url: want an http or https address",
		`[{url: 'ftp://example.com/hidden'}]`:     "notify.webhooks[0].url: want an http or https address",
		`[{url: 'https://hidden:p@example.com'}]`: "notify.webhooks[0].url: it contains a user or a password",
		`[{url: 'http://x', on: [done]}]`:         `notify.webhooks[0].on[0]: got "done": want waiting, ended, failed or agent_down`,
		`[{url: 'http://x', on: [agent-down]}]`:   `got "agent-down": want waiting, ended, failed or agent_down: did you mean agent_down?`,
		`[{url: 'http://x', secret: hidden}]`:     "notify.webhooks[0].secret: want whsec_ and 24 to 64 random bytes in base64",
		`[{url: 'http://x', secret: whsec_aGlk}]`: "notify.webhooks[0].secret: want whsec_ and 24 to 64 random bytes in base64",
		`[{url: 'http://x', agents: ["a,b"]}]`:    "notify.webhooks[0].agents: the agent id \"a,b\" has a comma",
		`[{url: 'http://x', event: [ended]}]`:     "notify.webhooks[0].event: unknown",
	} {
		_, err := configOf(t, "notify: {webhooks: "+file+"}", nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "aGlk") {
			t.Errorf("%s: got %v, want %q, and no secret", file, err, want)
		}
	}
}
