package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/edge"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// remote is a remote agent by its card. It does not change.
type remote struct {
	card wire.Card
	etag string
	// ends are the interfaces that this package speaks, in the card's order. There is at
	// least one.
	ends    []endpoint
	streams bool
	cursors bool // it has our extension
	proof   credential
}

// endpoint is an interface of a card.
type endpoint struct {
	url    string
	rest   bool // HTTP+JSON instead of JSON-RPC
	tenant string
	own    bool // at the host of the card, which is the only one that gets the token
}

// maxRedirects bounds the redirects from the address of a card. Other requests follow none.
const maxRedirects = 3

// fetch fetches and checks the card. It returns before if the card has not changed.
func (a *Agent) fetch(ctx context.Context, before *remote) (*remote, error) {
	ctx, cancel := context.WithTimeout(ctx, a.opts.Timeout)
	defer cancel()
	at, err := cardURL(a.opts.URL)
	if err != nil {
		return nil, err
	}
	for range maxRedirects + 1 {
		r, next, err := a.fetchAt(ctx, at, before)
		if err != nil || r != nil {
			return r, err
		}
		at = next
	}
	return nil, core.NewFault(core.CodeUnreachable, "the card at %s redirects more than %d times", withoutQuery(a.opts.URL), maxRedirects)
}

// cardURL returns the address of the card of a URL of the settings.
func cardURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, core.NewFault(core.CodeInvalid, "url: want the http or https address of an A2A agent or of its card, got %.200q", text)
	case !strings.HasSuffix(u.Path, ".json"):
		u.Path, u.RawPath = strings.TrimRight(u.Path, "/")+wire.CardPath, ""
	}
	return u, nil
}

// fetchAt fetches the card at an address, or returns to where that redirects.
func (a *Agent) fetchAt(ctx context.Context, at *url.URL, before *remote) (r *remote, next *url.URL, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept", wire.MediaJSON)
	req.Header.Set(wire.VersionHeader, wire.Version)
	if before != nil && before.etag != "" {
		req.Header.Set("If-None-Match", before.etag)
	}
	credential{}.add(req, a.opts.Token()) // no redirect to another host is followed
	where := withoutQuery(at.String())
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, nil, unanswered(ctx, "the card at "+where, err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && before != nil:
		return before, nil, nil
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		next, err := at.Parse(resp.Header.Get("Location"))
		if err != nil || !sameHost(at, next) {
			return nil, nil, core.NewFault(core.CodeUnreachable, "the card at %s redirects to %.200q, which is not followed, as it is not at the same host: if that is the agent, set url in the settings to it",
				where, withoutQuery(resp.Header.Get("Location")))
		}
		return nil, next, nil
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		return nil, nil, a.denied(nil, "the card at "+where, resp.StatusCode, "")
	case resp.StatusCode != http.StatusOK:
		return nil, nil, core.NewFault(core.CodeUnreachable, "the card at %s: got status %s; url in the settings is the base of an A2A agent, or the address of a card that ends in .json", where, resp.Status)
	}
	text, err := textOf(ctx, resp, where)
	if err != nil {
		return nil, nil, err
	}
	r, err = a.read(text, at)
	if err != nil {
		return nil, nil, core.NewFault(core.CodeUnsupported, "the card at %s cannot be used: %s", where, reason(err))
	}
	r.etag = resp.Header.Get("ETag")
	return r, nil, nil
}

// textOf returns the body of a response, of limited length.
func textOf(ctx context.Context, resp *http.Response, where string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxCardBytes+1))
	switch {
	case err != nil:
		return nil, unanswered(ctx, "the card at "+where, err)
	case len(text) > maxCardBytes:
		return nil, core.NewFault(core.CodeTooLarge, "the card at %s has more than %d bytes", where, maxCardBytes)
	}
	if text, err = edge.Text(text); err != nil {
		return nil, core.NewFault(core.CodeUnsupported, "the card at %s cannot be used: %s", where, err)
	}
	return text, nil
}

// read reads a card that was fetched from an address. A card that lacks a required member
// which the hub does not need is used.
func (a *Agent) read(text []byte, at *url.URL) (*remote, error) {
	card, err := wire.ReadCard(text)
	if v := strictjson.ParseValid(text); v.Get("supportedInterfaces").Absent() && v.Get("url").Exists() {
		version, _ := v.Get("protocolVersion").Text()
		return nil, fmt.Errorf("it is one of A2A %s (it has url, and no supportedInterfaces), and the hub speaks %s: the agent must offer an interface of %s",
			cmp.Or(version, "0.3"), wire.Version, wire.Version)
	}
	if err != nil && len(card.Interfaces) == 0 {
		return nil, err
	}
	if err != nil {
		a.opts.Log.Warn("the card of the remote agent is not complete", "url", withoutQuery(at.String()), "error", err)
	}
	r := &remote{card: card, streams: card.Capabilities.Streaming, cursors: card.Capabilities.Has(wire.CursorExtension)}
	for i, e := range card.Capabilities.Extensions {
		if e.Required && e.URI != wire.CursorExtension && e.URI != wire.ChainExtension {
			return nil, fmt.Errorf("capabilities.extensions[%d].required: the agent wants the extension %.200q, which the hub does not have", i, e.URI)
		}
	}
	if a.opts.Hub != "" && card.Capabilities.Hub() == a.opts.Hub {
		return nil, errors.New("it is a card of this hub, which would ask itself: set url in the settings to another agent")
	}
	r.proof = credentialOf(card)
	r.ends, err = a.endpoints(card, at)
	return r, err
}

// endpoints returns the interfaces of a card that can be used, of which there has to be one.
func (a *Agent) endpoints(card wire.Card, at *url.URL) (all []endpoint, err error) {
	var unusable []string
	for i, face := range card.Interfaces {
		end, why := endpointOf(face)
		if why == "" {
			end, why = a.trusted(end, at)
		}
		if why != "" {
			unusable = append(unusable, fmt.Sprintf("supportedInterfaces[%d].%s", i, why))
			continue
		}
		all = append(all, end)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("none of its interfaces can be used: %s", strings.Join(unusable, "; "))
	}
	return all, nil
}

// endpointOf returns the endpoint of an interface, or why there is none, beginning with the
// name of the member.
func endpointOf(face wire.Interface) (end endpoint, why string) {
	u, err := url.Parse(face.URL)
	major, _, _ := strings.Cut(face.ProtocolVersion, ".")
	switch {
	case face.Binding != wire.BindingJSONRPC && face.Binding != wire.BindingHTTP:
		return end, fmt.Sprintf("protocolBinding: %.100q is not one that the hub speaks (%s, %s)", face.Binding, wire.BindingJSONRPC, wire.BindingHTTP)
	case major != "1":
		return end, fmt.Sprintf("protocolVersion: %.100q is not %s", face.ProtocolVersion, wire.Version)
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return end, fmt.Sprintf("url: want an absolute http or https address, got %.200q", face.URL)
	}
	return endpoint{url: strings.TrimRight(face.URL, "/"), rest: face.Binding == wire.BindingHTTP, tenant: face.Tenant}, ""
}

// trusted returns the endpoint with whether it gets the token, or why it is not used. A card
// says which hosts the hub sends requests to, so one from outside must not name a host inside.
func (a *Agent) trusted(end endpoint, at *url.URL) (trusted endpoint, why string) {
	u, err := url.Parse(end.url)
	switch {
	case err != nil:
		return end, "url: " + err.Error()
	case sameHost(at, u):
		end.own = true
	case a.opts.Token() != "":
		return end, fmt.Sprintf("url: %s is not at the host of the card (%s://%s), and only that gets the token", withoutQuery(end.url), at.Scheme, at.Host)
	case inside(u) && !inside(at):
		return end, fmt.Sprintf("url: %s is an address of this machine or of a private network, and the card is not from one", withoutQuery(end.url))
	}
	return end, ""
}

// sameHost reports whether what is sent to one address may be sent to another: it has the same
// host and port, and is not in the clear unless that was.
func sameHost(from, to *url.URL) bool {
	upgraded := from.Scheme == "http" && to.Scheme == "https" && portOf(from) == "80" && portOf(to) == "443"
	return strings.EqualFold(from.Hostname(), to.Hostname()) && (from.Scheme == to.Scheme && portOf(from) == portOf(to) || upgraded)
}

func portOf(u *url.URL) string {
	if u.Scheme == "https" {
		return cmp.Or(u.Port(), "443")
	}
	return cmp.Or(u.Port(), "80")
}

// inside reports whether the host of an address is this machine or an address of a private
// network. Names are not looked up.
func inside(u *url.URL) bool {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host == "localhost" || strings.HasSuffix(host, ".localhost")
	}
	ip = ip.Unmap()
	return !ip.IsGlobalUnicast() || ip.IsPrivate()
}

// maxSkills is how many skills of a card become capabilities, and maxSkillBytes how long their
// ids may be.
const (
	maxSkills     = 100
	maxSkillBytes = 100
)

// anySkill is the skill of an agent of a hub that declares no capability: cards need one.
const anySkill = "answer"

// profile returns what the card says of the agent. The ids of its skills are capabilities;
// tags, which are meant for people who search, are not.
func (r *remote) profile() agent.Profile {
	p := agent.Profile{
		Features: core.FeatureCancellation | core.FeatureFiles | core.FeatureUsage | core.FeatureApprovals | core.FeatureToolStates,
	}
	if r.streams {
		p.Features |= core.FeatureStreaming
	}
	if r.cursors {
		p.Features |= core.FeatureInjection
	}
	for _, s := range r.card.Skills[:min(len(r.card.Skills), maxSkills)] {
		if r.cursors && s.ID == anySkill {
			continue
		}
		if s.ID != "" && len(s.ID) <= maxSkillBytes && !strings.ContainsAny(s.ID, ", \t\r\n") && !slices.Contains(p.Capabilities, s.ID) {
			p.Capabilities = append(p.Capabilities, s.ID)
		}
	}
	about := map[string]string{"name": r.card.Name, "version": r.card.Version, "description": r.card.Description, "url": withoutQuery(r.ends[0].url)}
	if r.card.Provider != nil {
		about["provider"] = r.card.Provider.Organization
	}
	for key, text := range about {
		about[key] = short(text)
	}
	if raw, err := json.Marshal(about); err == nil {
		p.Metadata = map[string]json.RawMessage{"a2a": raw}
	}
	return p
}

// short cuts a text of the remote for a message of one line.
func short(text string) string {
	const most = 500
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
