package pack

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The hub as a client, which has neither sampling nor roots.
const (
	clientName        = "dragoman"
	capabilitiesOfHub = `{"elicitation":{"form":{},"url":{}}}`
)

const (
	// probeTime is how long a child may leave the probe unanswered until it counts as legacy.
	// It may still be starting: an answer that comes later decides too.
	probeTime = 5 * time.Second
	// handshakeTime bounds the start of a server until its tools are listed. It includes the
	// download of a package.
	handshakeTime = 2 * time.Minute
)

// era is what the handshake found out.
type era struct {
	modern  bool
	version string
	// tools says that the server has tools, changes that it tells when they change.
	tools, changes bool
}

// handshake finds out the era of the server. A server that takes initialize alone as its first message,
// as those of older versions of rmcp, gets that and is a legacy one.
func (s *server) handshake(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, handshakeTime, fmt.Errorf("it took longer than %s", handshakeTime))
	defer cancel()
	begin := s.probe
	if s.unprobed {
		begin = func(ctx context.Context) error { return s.initialize(ctx, nil, "") }
	}
	err := begin(ctx)
	if err != nil && ctx.Err() != nil {
		return s.failUnanswered(ctx, wire.MethodDiscover+" or "+wire.MethodInitialize)
	}
	return err
}

// probe asks for server/discover first, as 2026-07-28 (basic/versioning, "Backward
// Compatibility") wants, then for initialize.
func (s *server) probe(ctx context.Context) error {
	probed := make(chan reply, 1)
	probing, stop := context.WithCancel(ctx)
	defer stop()
	s.goroutines.Go(func() {
		m, err := s.conn.call(probing, request{id: s.newID(), method: wire.MethodDiscover, params: s.params(era{modern: true, version: wire.Modern}, "", ""), quiet: true})
		probed <- reply{m, err}
	})
	var silence <-chan time.Time
	if s.conn.mayBeSilent() {
		timer := time.NewTimer(probeTime)
		defer timer.Stop()
		silence = timer.C
	}
	supported := ""
	select {
	case r := <-probed:
		if e, ok, err := discovered(r); ok || err != nil {
			s.establish(e)
			return err
		}
		if r.Err != nil && r.Err.Code == wire.CodeUnsupportedVersion {
			supported = string(strictjson.ParseValid(r.Err.Data).Get("supported").Raw())
		}
	case <-silence:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return s.initialize(ctx, probed, supported)
}

// reply is what came of a request.
type reply struct {
	jsonrpc.Message
	err error
}

// discovered reads the answer to server/discover. It reports false for a legacy server. The
// error is why there is no server to talk to.
func discovered(r reply) (e era, ok bool, err error) {
	switch {
	case r.err != nil:
		return e, false, r.err
	case r.Err != nil || r.Result.Kind() != strictjson.Object: // -32022 too: initialize asks for the versions that are left
		return e, false, nil
	}
	for v := range r.Result.Get("supportedVersions").Items() {
		if text, _ := v.Text(); text == wire.Modern {
			tools := r.Result.Get("capabilities", "tools")
			return era{true, wire.Modern, !tools.Absent(), isTrue(tools.Get("listChanged"))}, true, nil
		}
	}
	return e, false, nil
}

// initialize begins the session of a legacy server. A late answer to the probe decides as
// well.
func (s *server) initialize(ctx context.Context, probed <-chan reply, supported string) error {
	answered := make(chan reply, 1)
	calling, stop := context.WithCancel(ctx)
	defer stop()
	s.goroutines.Go(func() { answered <- s.hello(calling) })
	for {
		select {
		case r := <-probed:
			if e, ok, _ := discovered(r); ok {
				s.establish(e)
				return nil
			}
			probed = nil
		case r := <-answered:
			e, err := s.begun(r, supported)
			if err != nil {
				return err
			}
			s.establish(e) // the notification is the first message after it
			return s.conn.send(ctx, initialized())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hello sends initialize.
func (s *server) hello(ctx context.Context) reply {
	p := `{"protocolVersion":"` + wire.LatestLegacy + `","capabilities":` + capabilitiesOfHub + `,"clientInfo":` + string(s.client()) + `}`
	m, err := s.conn.call(ctx, request{id: s.newID(), method: wire.MethodInitialize, params: json.RawMessage(p), quiet: true})
	return reply{m, err}
}

// initialized is the notification after the answer to initialize.
func initialized() []byte { return jsonrpc.AppendNotification(nil, wire.NoteInitialized, nil) }

// begun reads the answer to initialize. supported says which other versions the server named.
func (s *server) begun(r reply, supported string) (era, error) {
	const ours = "; the hub speaks 2024-11-05 to " + wire.LatestLegacy + " and " + wire.Modern
	switch {
	case r.err != nil:
		return era{}, r.err
	case r.Err != nil && s.echoes.Load():
		return era{}, s.fail(core.CodeUnsupported, "sends back what it is sent")
	case r.Err != nil && supported != "":
		return era{}, s.fail(core.CodeUnsupported, "speaks other versions of MCP alone: %.200s%s", supported, ours)
	case r.Err != nil:
		return era{}, s.fail(core.CodeUnsupported, "refused initialize: %s (%d)%s", cut(r.Err.Message), r.Err.Code, s.noise())
	}
	version, _ := r.Result.Get("protocolVersion").Text()
	if !slices.Contains(wire.Versions[1:], version) {
		return era{}, s.fail(core.CodeUnsupported, "speaks version %.40q of MCP%s", version, ours)
	}
	tools := r.Result.Get("capabilities", "tools")
	return era{false, version, !tools.Absent(), isTrue(tools.Get("listChanged"))}, nil
}

// era returns what the handshake has found out.
func (s *server) era() era {
	if e := s.agreed.Load(); e != nil {
		return *e
	}
	return era{}
}

// establish notes what the handshake has found out, unless there is no era that both know.
func (s *server) establish(e era) {
	if e.version == "" {
		return
	}
	s.agreed.Store(&e)
	s.preamble.Store("")
	s.conn.established()
	s.log.Info("MCP server connected", "version", e.version)
}

func isTrue(v strictjson.Value) bool { return string(v.Raw()) == "true" }

// client is our clientInfo.
func (s *server) client() json.RawMessage {
	return strictjson.Encode(wire.Implementation{Name: clientName, Version: s.opts.Version})
}

// params returns the parameters of a request: the members, which begin with a comma unless
// there are none, and _meta with what every request of the era has, and with further members, which
// begin with a comma too.
func (s *server) params(e era, members, more string) json.RawMessage {
	var meta []byte
	if e.modern {
		meta = append(meta, `,"`+wire.MetaVersion+`":"`+e.version+`","`+wire.MetaClient+`":`...)
		meta = append(append(meta, s.client()...), `,"`+wire.MetaCapabilities+`":`+capabilitiesOfHub...)
	}
	if meta = append(meta, more...); meta != nil {
		meta[0] = '{'
		members += `,"_meta":` + string(meta) + "}"
	}
	if members == "" {
		return nil
	}
	return json.RawMessage("{" + members[1:] + "}")
}

// listTools reads all pages of the list of tools.
func (s *server) listTools(ctx context.Context) (*catalog, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, handshakeTime, fmt.Errorf("it took longer than %s", handshakeTime))
	defer cancel()
	c := &catalog{pack: s.opts.Name, hub: s.opts.Hub, mirror: s.era().modern && s.opts.URL != ""}
	if !s.era().tools {
		return c, nil
	}
	for cursor, page := "", 0; ; page++ {
		var members string
		if cursor != "" {
			members = `,"cursor":` + string(strictjson.Encode(cursor))
		}
		m, err := s.conn.call(ctx, request{id: s.newID(), method: wire.MethodListTools, params: s.params(s.era(), members, "")})
		switch {
		case ctx.Err() != nil:
			return nil, s.failUnanswered(ctx, wire.MethodListTools)
		case err != nil:
			return nil, err
		case m.Err != nil:
			return nil, s.fail(core.CodeUnsupported, "refused to list its tools: %s (%d)", cut(m.Err.Message), m.Err.Code)
		}
		next, err := c.add(m.Result)
		switch {
		case err != nil:
			return nil, s.fail(core.CodeUnsupported, "cannot be used: %s", err)
		case next == "" && c.own && len(c.tools) == 0:
			return nil, s.fail(core.CodeUnsupported, "is this hub, which would call itself: make the pack another server")
		case next == "":
			return c, nil
		case next == cursor || page == maxPages:
			return nil, s.fail(core.CodeUnsupported, "cannot be used: its list of tools does not end")
		}
		cursor = next
	}
}
