package a2a

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// cardAge is how long clients may keep a card without asking again.
const cardAge = "public, max-age=60"

// maxCardAgents is the maximum number of agents in the card of the hub.
const maxCardAgents = 1000

// serveCard answers with the card of an agent, or that of the hub.
func (s *Server) serveCard(c *call) error {
	base, at := c.base(), s.opts.GRPC(c.r)
	var card wire.Card
	if c.scope == "" {
		card = s.hubCard(c.from, base, at)
	} else {
		status, ok := s.hub.Agent(c.from, c.scope)
		if !ok {
			return c.unknownAgent()
		}
		card = s.card(status.Card, base, at)
	}
	document := strictjson.Encode(card)
	sum := sha256.Sum256(document) // without the signature, which differs each time
	if s.opts.Signer != nil {
		signature, err := s.opts.Signer.sign(card, base+keysPath)
		if err != nil {
			return err
		}
		card.Signatures = []wire.Signature{signature}
		document = strictjson.Encode(card)
	}
	tag := `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	h := c.w.Header()
	h.Set("ETag", tag)
	h.Set("Cache-Control", cardAge)
	if s.opts.Bearer {
		h.Set("Cache-Control", "private, max-age=60")
	}
	h.Set("Vary", "Host")
	if c.r.Header.Get("If-None-Match") == tag {
		c.answered = true
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	c.write(http.StatusOK, wire.MediaJSON, document)
	return nil
}

func (c *call) unknownAgent() error {
	var near []string
	for _, n := range c.server.hub.Nearest(c.from, c.scope) {
		near = append(near, string(n))
	}
	if len(near) == 0 {
		return core.NewFault(core.CodeUnknownAgent, "no agent %q is here", shorten(string(c.scope)))
	}
	return core.NewFault(core.CodeUnknownAgent, "no agent %q is here; the nearest: %s", shorten(string(c.scope)), strings.Join(near, ", "))
}

// base returns the URL of the hub for the sender of a request. The HTTP server has checked
// the Host.
func (c *call) base() string {
	if u := c.server.opts.URL; u != "" {
		return strings.TrimRight(u, "/")
	}
	scheme := "http"
	if c.r.TLS != nil {
		scheme = "https"
	}
	return (&url.URL{Scheme: scheme, Host: c.r.Host}).String()
}

// grpcAt is the interface of an agent in the gRPC binding, where its tenant names it.
func grpcAt(at string, id core.AgentID) wire.Interface {
	return wire.Interface{URL: at, Binding: wire.BindingGRPC, Tenant: string(id), ProtocolVersion: wire.Version}
}

// card returns the card of an agent. onGRPC is where the gRPC binding is, "" for none.
func (s *Server) card(a core.Card, base, onGRPC string) wire.Card {
	at := base + Path + "/" + url.PathEscape(string(a.ID))
	c := s.newCard()
	c.Name, c.Description = nameOf(a), descriptionOf(a)
	c.Interfaces = []wire.Interface{
		{URL: at, Binding: wire.BindingJSONRPC, ProtocolVersion: wire.Version},
		{URL: at + "/" + stepREST, Binding: wire.BindingHTTP, ProtocolVersion: wire.Version},
	}
	if onGRPC != "" {
		c.Interfaces = append(c.Interfaces, grpcAt(onGRPC, a.ID))
	}
	c.Skills = skillsOf(a)
	return c
}

// hubCard returns the card of the hub: interfaces for each agent, told apart by tenant.
func (s *Server) hubCard(p core.Principal, base, onGRPC string) wire.Card {
	c := s.newCard()
	c.Name, c.Description = "Dragoman", "The agents of a Dragoman hub. Each interface is one agent, named by its tenant."
	agents, _ := s.hub.AgentPage(p, "", maxCardAgents, func(core.Card) bool { return true })
	c.Interfaces, c.Skills = []wire.Interface{}, []wire.Skill{}
	for _, a := range agents {
		for _, binding := range []string{wire.BindingJSONRPC, wire.BindingHTTP} {
			c.Interfaces = append(c.Interfaces, wire.Interface{URL: base + Path, Binding: binding, Tenant: string(a.ID), ProtocolVersion: wire.Version})
		}
		if onGRPC != "" {
			c.Interfaces = append(c.Interfaces, grpcAt(onGRPC, a.ID))
		}
		c.Skills = append(c.Skills, wire.Skill{ID: string(a.ID), Name: nameOf(a.Card), Description: descriptionOf(a.Card), Tags: append([]string{string(a.ID)}, a.Capabilities...)})
	}
	return c
}

// newCard returns what all cards have.
func (s *Server) newCard() wire.Card {
	hub := strictjson.Encode(map[string]string{"hub": s.hub.ID()})
	c := wire.Card{
		Version: s.opts.Version, InputModes: []string{"text/plain", "application/json", "application/octet-stream"}, OutputModes: []string{"text/plain", "application/json", "application/octet-stream"},
		Capabilities: wire.Capabilities{Streaming: true, PushNotifications: s.pushes(), Extensions: []wire.Extension{{
			URI: wire.CursorExtension, Description: "Items of a stream have a cursor in their metadata; SubscribeToTask with it in its metadata continues exactly after that item.",
		}, {
			URI: wire.ChainExtension, Description: "The metadata of a message has the tasks above it in the hubs that it came through, which ends loops; hub is the id of this hub.",
			Params: hub,
		}}},
	}
	if s.opts.Bearer {
		c.SecuritySchemes = map[string]wire.SecurityScheme{"bearer": {HTTP: &wire.HTTPScheme{Scheme: "Bearer"}}}
		c.Security = []wire.SecurityRequirement{{Schemes: map[string]wire.Scopes{"bearer": {}}}}
	}
	return c
}

func nameOf(a core.Card) string {
	if a.Name != "" {
		return a.Name
	}
	return string(a.ID)
}

// descriptionOf returns what an agent says of itself, if it says it in its metadata.
func descriptionOf(a core.Card) string {
	if text, ok := strictjson.ParseValid(a.Metadata["description"]).Text(); ok && text != "" {
		return text
	}
	text := "An agent of the dialect " + a.Dialect
	if a.Model != "" {
		text += " with the model " + a.Model
	}
	return text + "."
}

// skillsOf returns a skill for each capability, at least one.
func skillsOf(a core.Card) []wire.Skill {
	skills := make([]wire.Skill, 0, len(a.Capabilities)+1)
	for _, name := range a.Capabilities {
		skills = append(skills, wire.Skill{ID: name, Name: name, Description: nameOf(a) + " has the capability " + name + ".", Tags: append([]string{name}, a.Domains...)})
	}
	if len(skills) == 0 {
		skills = append(skills, wire.Skill{ID: "answer", Name: "answer", Description: descriptionOf(a), Tags: append([]string{"chat"}, a.Domains...)})
	}
	return skills
}

// extendedCard is GetExtendedAgentCard: there is none.
func (c *call) extendedCard(params strictjson.Value) (json.RawMessage, error) {
	if _, err := wire.Read[wire.CardRequest](params); err != nil {
		return nil, err
	}
	return nil, wire.NewError(wire.ReasonNoExtendedCard, "this hub has no extended cards: the card has everything")
}
