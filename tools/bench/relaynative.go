package main

import "fmt"

// relayedNative is what the relay reads of a frame of the native dialect.
type relayedNative struct {
	Call struct {
		ID, Act string
		Command struct {
			Request struct{ To, Content string }
		}
	}
	Event struct {
		Task, Kind string
		Body       struct{ Text string }
	}
}

// nativeEvent is an event as the hub sends it.
const nativeEvent = `{"event":{"task":"%[1]s","role":"%[2]s","call":"%[1]s","cursor":"1.%[3]d","seq":%[3]d,"epoch":1,"at":"%[4]s","kind":"%[5]s","body":%[6]s}}`

// nativeHello is the first frame of the hub.
const nativeHello = `{"hello":{"native":1,"hub":"relay","version":"0","principal":{"id":"asker"},"limits":{"frame_bytes":10485760}}}`

func (r *relay) serveNativeClient(c *relayConn) {
	_ = c.say(nativeHello)
	each(c, func(f relayedNative) error {
		id, n := f.Call.ID, 0
		event := func(kind, body string) {
			n++
			_ = c.say(nativeEvent, id, "requester", n, timestampNow(), kind, body)
		}
		if err := c.say(`{"result":{"id":"%[1]s","task":"%[1]s"}}`, id); err != nil {
			return err
		}
		return r.ask(f.Call.Command.Request.To, id, f.Call.Command.Request.Content, func(what relayed, text string) {
			switch what {
			case relayedText:
				event("text", fmt.Sprintf(`{"text":%s}`, jsonText(text)))
			case relayedEnd:
				event("done", `{}`)
			}
		})
	})
}

func (r *relay) serveNativeAgent(c *relayConn, agent string) {
	_ = c.say(nativeHello)
	each(c, func(f relayedNative) error {
		switch {
		case f.Call.Act == "join":
			r.join(agent, func(id, content string) error {
				request := fmt.Sprintf(`{"task":"%s","from":{"id":"asker"},"request":{"intent":"ask","to":"%s","content":%s},"hops":0}`, id, agent, jsonText(content))
				if err := c.say(nativeEvent, id, "agent", 1, timestampNow(), "opened", request); err != nil {
					return err
				}
				return c.say(nativeEvent, id, "agent", 2, timestampNow(), "assigned", fmt.Sprintf(`{"agent":"%s","attempt":1}`, agent))
			})
			return c.say(`{"result":{"id":"%s","agent":"%s"}}`, f.Call.ID, agent)
		case f.Event.Kind == "text":
			r.step(f.Event.Task, relayedText, f.Event.Body.Text)
		case f.Event.Kind == "done":
			r.step(f.Event.Task, relayedEnd, "")
		}
		return nil
	})
}
