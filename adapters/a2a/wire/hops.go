package wire

import (
	"encoding/json"
	"strconv"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// HopsExtension is the URI of our extension that ends loops of hubs which ask each other. The
// metadata of SendMessage and SendStreamingMessage has under this key how many hubs the
// message came through. In a card its params are an object whose member hub is the id of the
// hub, so that a hub recognises itself. It needs no activation.
const HopsExtension = "urn:dragoman:a2a:hops:1"

// Hops returns how many hubs the message came through, by [HopsExtension]; 0 for none.
func (r SendRequest) Hops() (int, error) {
	if len(r.Metadata) == 0 {
		return 0, nil
	}
	v, err := Parse(r.Metadata)
	if err != nil {
		return 0, under("metadata", err)
	}
	hops := 0
	if one := v.Get(HopsExtension); !one.Absent() {
		if err = one.Decode(&hops); err == nil && hops < 0 {
			err = wrong("want 0 or more, got %d", hops)
		}
	}
	return hops, under("metadata", under("["+HopsExtension+"]", err))
}

// SetHops sets how many hubs the message came through, and keeps the other metadata.
func (r *SendRequest) SetHops(n int) {
	all := map[string]json.RawMessage{}
	if len(r.Metadata) > 0 {
		for key, value := range strictjson.ParseValid(r.Metadata).Members() {
			all[string(key)] = value.Raw()
		}
	}
	all[HopsExtension] = strconv.AppendInt(nil, int64(n), 10)
	if raw, err := Marshal(all); err == nil {
		r.Metadata = raw
	}
}

// Hub returns the id of the hub that a card is of, by [HopsExtension]; "" for none.
func (c Capabilities) Hub() string {
	for _, e := range c.Extensions {
		if e.URI == HopsExtension && len(e.Params) > 0 {
			id, _ := strictjson.ParseValid(e.Params).Get("hub").Text()
			return id
		}
	}
	return ""
}
