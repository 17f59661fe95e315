package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
)

// allRows returns all rows in the order in which they are measured.
func allRows() []Row {
	rows := []Row{
		{Name: "start", About: "from the start of the process until it listens", measure: measureStart},
		{Name: "single", About: "a pi client asks a Coven agent, one at a time", measure: askStandard(1, 1)},
		{Name: "parallel", About: fmt.Sprintf("the same, %d at a time", parallel), measure: askStandard(parallel, 1)},
		{
			Name: "burst", About: fmt.Sprintf("answers of %d chunks, %d at a time", burstChunks, burstAtOnce),
			measure: askStandard(burstAtOnce, burstChunks),
		},
	}
	for _, n := range []int{16, 64} {
		rows = append(rows, Row{
			Name: fmt.Sprintf("clients-%d", n), About: fmt.Sprintf("%d pi clients, each on its own connection", n),
			ByName: n != 64, measure: askByClients(n),
		})
	}
	for _, n := range []int{1, burstAtOnce} {
		rows = append(rows, Row{
			Name: fmt.Sprintf("long-%d", n), About: fmt.Sprintf("answers of %d chunks in compacting conversations, %d at a time", burstChunks, n),
			ByName: true, measure: alone(askInLongConversations(n)),
		})
	}
	rows = append(rows, Row{
		Name: "neighbour", About: "one at a time beside another client's long, compacting conversation", ByName: true, measure: alone(askBesideLongConversation),
	})
	for _, to := range []string{"id", "any", "capability", "unknown"} {
		rows = append(rows, Row{
			Name: "crowd-" + to, About: fmt.Sprintf("a question by %s among --crowd agents, beside %d agents", crowdWord[to], fewAgents),
			ByName: true, measure: alone(askInCrowd(to)),
		})
	}
	for _, dialect := range []string{acp.Dialect, parallax.Dialect} {
		rows = append(rows, Row{
			Name: "thread-" + dialect, About: "a question in a long thread, beside a first question", ByName: true, measure: alone(askInThread(dialect)),
		})
	}
	for _, requester := range slices.Sorted(maps.Keys(requesters())) {
		for _, dialect := range dialects() {
			for _, n := range []int{1, parallel} {
				rows = append(rows, Row{
					Name: fmt.Sprintf("pair-%s-%s-%d", requester, dialect, n), About: fmt.Sprintf("%s asks %s, %d at a time", requester, dialect, n),
					ByName: true, measure: askAsPair(requester, dialect, n),
				})
			}
		}
	}
	for _, pair := range [][2]string{{"rest", coven.Name}, {"acp", acp.Dialect}, {"pi", coven.Name}} {
		rows = append(rows, Row{
			Name: fmt.Sprintf("open-%s-%s", pair[0], pair[1]), About: fmt.Sprintf("%s asks %s at half the rate that both sides reach, timed from when each question is due", pair[0], pair[1]),
			ByName: true, measure: askAtRate(pair[0], pair[1]),
		})
	}
	return append(rows,
		Row{Name: "memory", About: "resident memory after single, parallel and burst, 30 s after, and with the sessions deleted", ByName: true, measure: alone(measureMemory)},
		Row{Name: "idle", About: "resident memory of an idle agent, by dialect", measure: measureIdle},
	)
}

// crowdWord describes how an agent in a crowd is addressed.
var crowdWord = map[string]string{"id": "its id", "any": "*", "capability": "a capability", "unknown": "an unknown id"}

// fewAgents is the size of the small crowd that a large one is compared with.
const fewAgents = 10

// alone stops the processes that a measurement has started.
func alone(measure measurement) measurement {
	return func(ctx context.Context, b *bench, r *RowResult) error {
		before := len(b.children)
		return errors.Join(measure(ctx, b, r), b.stopFrom(before))
	}
}

// compare has clients of all servers ask in turns.
func (b *bench) compare(ctx context.Context, r *RowResult, to []server, atOnce, chunks int, connect func(context.Context, server) (*side, error)) error {
	sides, err := connectEach(ctx, to, connect)
	if err != nil {
		return err
	}
	return b.turns(ctx, r, sides, load{atOnce: atOnce, chunks: chunks}, nil)
}

// connectEach returns a client of each server.
func connectEach(ctx context.Context, to []server, connect func(context.Context, server) (*side, error)) ([]*side, error) {
	var sides []*side
	for _, s := range to {
		one, err := connect(ctx, s)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("connecting to the %s: %w", s.name, err), closeAll(sides))
		}
		one.name = s.name
		sides = append(sides, one)
	}
	return sides, nil
}

// turns has the sides ask in turns, and closes them.
func (b *bench) turns(ctx context.Context, r *RowResult, sides []*side, l load, besides map[*side]func(context.Context) error) error {
	c, err := takeTurns(ctx, b.options, sides, l, besides)
	r.Comparison = &c
	return errors.Join(err, closeAll(sides))
}

// askStandard has a pi client ask the Coven agent.
func askStandard(atOnce, chunks int) measurement {
	return func(ctx context.Context, b *bench, r *RowResult) error {
		to, err := b.sharing(ctx)
		if err != nil {
			return err
		}
		err = b.compare(ctx, r, to, atOnce, chunks, func(ctx context.Context, s server) (*side, error) {
			return requesters()["pi"](ctx, s, agentID(coven.Name))
		})
		if chunks > 1 && err == nil {
			r.figure("bytes for a byte of text", r.Sides[0].Wire/float64(chunks*chunkBytes), "")
		}
		return err
	}
}

// askByClients has n pi clients ask, each on its own connection.
func askByClients(n int) measurement {
	return func(ctx context.Context, b *bench, r *RowResult) error {
		to, err := b.sharing(ctx)
		if err != nil {
			return err
		}
		return b.compare(ctx, r, to, n, 1, func(ctx context.Context, s server) (*side, error) {
			return oneEach(n, func(worker int, into *side) (*side, error) { return connectPiAt(ctx, s, worker, into) })
		})
	}
}

// connectPiAt connects one pi client, for one worker.
func connectPiAt(ctx context.Context, s server, worker int, into *side) (*side, error) {
	if s.name == "relay" {
		return connectRelay(ctx, s.addrs, agentID(coven.Name), into)
	}
	return connectPi(ctx, s.addrs, agentID(coven.Name), worker, 1, into)
}

// compacting is the default setting for compaction, which measured hubs otherwise turn off.
const compacting = "DRAGOMAN_PI_COMPACT_AT=87"

// askInLongConversations asks in conversations that are compacted every few questions.
func askInLongConversations(atOnce int) measurement {
	return func(ctx context.Context, b *bench, r *RowResult) error {
		to, err := b.servers(ctx, compacting)
		if err != nil {
			return err
		}
		return b.compare(ctx, r, to, atOnce, burstChunks, func(ctx context.Context, s server) (*side, error) {
			return requesters()["pi"](ctx, s, agentID(coven.Name))
		})
	}
}

// askBesideLongConversation measures a client while another client receives long answers.
func askBesideLongConversation(ctx context.Context, b *bench, r *RowResult) error {
	to, err := b.servers(ctx, compacting)
	if err != nil {
		return err
	}
	besides := map[*side]func(context.Context) error{}
	var sides, others []*side
	for _, s := range to {
		other, err := connectPiAt(ctx, s, 1, nil)
		if err != nil {
			return errors.Join(err, closeAll(sides), closeAll(others))
		}
		others = append(others, other)
		one, err := connectPiAt(ctx, s, 0, nil)
		if err != nil {
			return errors.Join(err, closeAll(sides), closeAll(others))
		}
		one.name = s.name
		sides = append(sides, one)
		besides[one] = func(ctx context.Context) error {
			_, err := other.ask(ctx, 1, burstChunks)
			return err
		}
	}
	return errors.Join(b.turns(ctx, r, sides, load{atOnce: 1, chunks: 1}, besides), closeAll(others))
}

// askInCrowd compares a hub with many agents with one that has few.
func askInCrowd(to string) measurement {
	return func(ctx context.Context, b *bench, r *RowResult) error {
		servers, err := b.crowdServers(ctx)
		if err != nil {
			return err
		}
		return b.compare(ctx, r, servers, 1, 1, func(_ context.Context, s server) (*side, error) {
			switch to {
			case "any":
				return restSide(s.addrs, "*"), nil
			case "capability":
				return restSide(s.addrs, "capability:"+crowdCapability), nil
			case "unknown":
				return connectRefused(s.addrs), nil
			}
			return restSide(s.addrs, "crowd-7"), nil
		})
	}
}

// crowdServers starts hubs with many agents and one with few.
func (b *bench) crowdServers(ctx context.Context) ([]server, error) {
	servers, err := b.hubs(ctx)
	if err != nil {
		return nil, err
	}
	few, err := b.hub(ctx, "few")
	if err != nil {
		return nil, err
	}
	const share = 64
	for _, s := range append(servers, server{"few", few}) {
		n := b.crowd
		if s.child == few {
			n = fewAgents
		}
		if _, err := b.peer(ctx, "crowd", "-dialect", coven.Name, "-prefix", "crowd", "-count", strconv.Itoa(n), "-share", strconv.Itoa(share),
			"-grpc-addr", s.addrs.GRPC); err != nil {
			return nil, err
		}
	}
	return append(servers, server{"few", few}), nil
}

// askInThread compares questions in a long thread with first questions.
func askInThread(dialect string) measurement {
	return func(ctx context.Context, b *bench, r *RowResult) error {
		hubs, err := b.hubs(ctx)
		if err == nil {
			err = b.agentsFor(ctx, hubs, dialect)
		}
		if err != nil {
			return err
		}
		for _, h := range slices.Clone(hubs) {
			hubs = append(hubs, server{h.name + firstQuestion, h.child})
		}
		return b.compare(ctx, r, hubs, 1, 1, func(ctx context.Context, s server) (*side, error) {
			return connectThread(ctx, s.addrs, agentID(dialect), strings.HasSuffix(s.name, firstQuestion))
		})
	}
}

const firstQuestion = ", first question"

// noHistory is the setting with which agents get no earlier turns, whose cost has rows of its
// own.
const noHistory = "DRAGOMAN_LIMITS_HISTORY_BYTES=0"

// askAsPair has one kind of requester ask one kind of agent.
func askAsPair(requester, dialect string, atOnce int) measurement {
	return func(ctx context.Context, b *bench, r *RowResult) error {
		to, err := b.sharing(ctx, noHistory)
		if err != nil {
			return err
		}
		return b.compare(ctx, r, to, atOnce, 1, func(ctx context.Context, s server) (*side, error) {
			return requesters()[requester](ctx, s, agentID(dialect))
		})
	}
}

// measureStart measures how long a hub with an empty journal takes to listen.
func measureStart(ctx context.Context, b *bench, r *RowResult) error {
	var took series
	for range b.rounds {
		began := time.Now()
		c, err := b.hub(ctx, "start")
		if err != nil {
			return err
		}
		took.add(time.Since(began))
		if err := c.stop(); err != nil {
			return err
		}
	}
	took.sort()
	r.figure("p50", took.At(.5).Seconds()*1000, "ms")
	r.figure("max", took.At(1).Seconds()*1000, "ms")
	return nil
}

// settled is the time after which memory is measured again, and memoryReturned that after which a hub has returned
// what it no longer needs to the system.
const (
	settled        = 30 * time.Second
	memoryReturned = 65 * time.Second
)

// measureMemory measures the memory of hubs after the load of the first rows.
func measureMemory(ctx context.Context, b *bench, r *RowResult) error {
	hubs, err := b.hubs(ctx)
	if err == nil {
		err = b.agentsFor(ctx, hubs, coven.Name)
	}
	if err != nil {
		return err
	}
	record := func(when, line string) error {
		for _, h := range hubs {
			n, err := memoryOf(h.cmd.Process.Pid, line)
			if err != nil {
				return err
			}
			r.figure(h.name+" "+when, float64(n)/(1<<20), "MiB")
		}
		return nil
	}
	sides, err := connectEach(ctx, hubs, func(ctx context.Context, s server) (*side, error) {
		return requesters()["pi"](ctx, s, agentID(coven.Name))
	})
	if err != nil {
		return err
	}
	for _, l := range []load{{atOnce: 1, chunks: 1}, {atOnce: parallel, chunks: 1}, {atOnce: burstAtOnce, chunks: burstChunks}} {
		if _, err := takeTurns(ctx, b.options, sides, l, nil); err != nil {
			return errors.Join(err, closeAll(sides))
		}
	}
	err = errors.Join(record("at most", "VmHWM:"), record("after the load", "VmRSS:"), pause(ctx, settled), record(settled.String()+" later", "VmRSS:"))
	// The messages of a session stay in memory until it is deleted.
	return errors.Join(err, closeAll(sides), pause(ctx, memoryReturned), record("with the sessions deleted", "VmRSS:"))
}

// pause waits, or returns why ctx has ended.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// measureIdle measures the memory of idle agents of every dialect, in hubs and in the relay.
func measureIdle(ctx context.Context, b *bench, r *RowResult) error {
	for _, dialect := range dialects() {
		err := alone(func(ctx context.Context, b *bench, r *RowResult) error {
			servers, err := b.hubs(ctx)
			if err != nil {
				return err
			}
			relay, err := b.peer(ctx, "relay")
			if err != nil {
				return err
			}
			for _, s := range append(servers, server{"relay", relay}) {
				n, err := b.measureIdleAgent(ctx, s, dialect)
				if err != nil {
					return err
				}
				r.figure(s.name+" "+dialect, n/1024, "KiB")
			}
			return nil
		})(ctx, b, r)
		if err != nil {
			return err
		}
	}
	return nil
}

// measureIdleAgent measures how much resident memory an idle agent costs a fresh server.
func (b *bench) measureIdleAgent(ctx context.Context, s server, dialect string) (float64, error) {
	join := func(name string, n int) error {
		_, err := b.peer(ctx, "crowd", "-dialect", dialect, "-prefix", agentID(name), "-count", strconv.Itoa(n),
			"-grpc-addr", s.addrs.GRPC, "-http-addr", s.addrs.HTTP)
		return err
	}
	// The first agents allocate what is shared.
	if err := join("few", b.agents/4); err != nil {
		return 0, err
	}
	before, err := resident(s.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	if err := join("many", b.agents); err != nil {
		return 0, err
	}
	after, err := resident(s.cmd.Process.Pid)
	return float64(after-before) / float64(b.agents), err
}
