package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/link"
)

// FuzzHub lets agents and clients of all dialects talk at once to one hub, in a bubble of fake
// time. The first byte of the input sets the hub; then three bytes each say what comes next: a
// phrase, what stands for its variables, and how it is damaged (see hub_fuzz_phrases_test.go).
//
// Afterwards time passes until every deadline is over. Then no task runs; every request is
// answered; who asked in the native dialect was told one end; each task reads the same over REST
// as it happened; and the checker of the promises finds nothing.
func FuzzHub(f *testing.F) {
	for _, seed := range hubSeeds {
		f.Add(seed.input())
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		const most = 64
		if len(input) == 0 || len(input) > 1+3*most {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, input[0])
			defer c.end()
			for op := range slices.Chunk(input[1:], 3) {
				if len(op) == 3 {
					c.do(op[0], op[1], op[2])
				}
			}
			c.settle()
		})
	})
}

// Bits of the first byte of an input.
const (
	fewFinished  = 1 << iota // ended tasks are soon read from the journal
	recordedEnds             // ends are told once they are recorded
	shortQueue               // one task waits for an agent
	noRetries                // nothing is tried elsewhere
	stopsEarly               // the hub is stopped while tasks run
)

// slowJournal takes its time to write, so that an end that is told too early shows.
type slowJournal struct{ journal.Journal }

// Append implements journal.Journal.
func (j slowJournal) Append(ctx context.Context, records ...journal.Record) error {
	time.Sleep(10 * time.Millisecond)
	return j.Journal.Append(ctx, records...)
}

// longest is more than any deadline of a crowd's task, with its grace. Peers stay for the first
// hour of it: their pings would take more of the fuzzer's time than the rest.
const longest = 2 * time.Hour

// crowd is the peers of one hub, and what the fuzzer knows of it.
type crowd struct {
	*player
	settings byte
	tasks    *taskList
	known    map[string][]string // texts that were received, by their keys
	told     map[string]map[toldCall]*toldTask
	requests int
	endless  map[string]bool // the requests whose answer has no end
}

// toldCall is a call of a native connection, toldTask what it was told of its task.
type (
	toldCall struct{ call, task string }
	toldTask struct {
		accepted bool
		last     uint64
		ends     int
	}
)

func newCrowd(t *testing.T, settings byte) *crowd {
	c := &crowd{settings: settings, tasks: newTaskList(), known: map[string][]string{}, told: map[string]map[toldCall]*toldTask{}, endless: map[string]bool{}}
	opts := hub.Options{Observer: c.tasks, Limits: hub.Limits{MaxDeadline: longest - 30*time.Minute}}
	if settings&fewFinished != 0 {
		opts.Limits.FinishedTasks = 1
	}
	if settings&recordedEnds != 0 {
		opts.Limits.JournalLag = -1
		opts.Journal = slowJournal{journal.NewMemory(journal.Retention{Age: 10 * longest})}
	}
	if settings&shortQueue != 0 {
		opts.Limits.QueueLength = 1
	}
	if settings&noRetries != 0 {
		opts.Limits.Retries = -1
	}
	c.player = newPlayer(t, opts)
	return c
}

// do lets a peer say a phrase.
func (c *crowd) do(number, choice, damage byte) {
	ph := phrases[int(number)%len(phrases)]
	switch dialect, _, _ := strings.Cut(ph.peer, " "); dialect {
	case "time":
		d, _ := time.ParseDuration(ph.text) // the table's
		time.Sleep(d)
	case "http":
		head, body, _ := strings.Cut(ph.text, "\n")
		method, path, _ := strings.Cut(c.fill(ph.peer, head, choice, url.PathEscape), " ")
		c.requests++
		name := fmt.Sprintf("%d: %s %s", c.requests, method, path)
		if err := c.startCall(name, method, path, spoil(c.fill(ph.peer, body, choice, nil), damage)); err != nil {
			c.t.Fatal(err)
		}
		c.endless[name] = strings.HasPrefix(path, "/v1/events") || strings.Contains(body, "subscriptions/listen") || method == http.MethodGet && path == "/acp"
	default:
		c.say(ph.peer, dialect, ph.text, spoil(c.fill(ph.peer, ph.text, choice, nil), damage))
	}
	synctest.Wait()
	c.hear()
}

// say lets a peer send a frame, or connect, leave and the like.
func (c *crowd) say(name, dialect, act, frame string) {
	peer := c.peers[name]
	switch {
	case act == connects && peer == nil:
		headers, _ := settings(peerHeaders[name]) // the table's
		end, serve, err := c.openConn(dialect, headers)
		if err != nil {
			c.t.Fatal(err)
		}
		peer = newPeer(end)
		c.peers[name], c.told[name] = peer, map[toldCall]*toldTask{}
		go func() { peer.setEnd(closeReason(dialect, serve())) }()
	case act == connects || peer == nil:
	case act == leaves, act == isCutOff:
		cause := link.Normal
		if act == isCutOff {
			cause = link.PeerGone
		}
		peer.leave(link.Reason{Cause: cause})
		delete(c.peers, name)
		delete(c.told, name)
	case act == stopsReading:
		peer.stop()
		<-peer.read
		delete(c.told, name)
	default:
		// A damaged frame is sent as it is. Coven has no such frames: gRPC refuses them.
		_ = c.deliver(func(ctx context.Context) error {
			if v, err := parseJSON([]byte(frame)); err == nil {
				return peer.end.send(ctx, v)
			}
			return peer.end.sendRaw(ctx, []byte(frame))
		}, frame)
	}
}

// spoil damages a frame: it cuts it off, or puts something into it.
func spoil(frame string, damage byte) string {
	if damage < 0x80 {
		return frame
	}
	at := int(damage&0x7e) * len(frame) / 0x80
	if damage&1 == 0 {
		return frame[:at]
	}
	return frame[:at] + "\x00\"" + frame[at:]
}

// variable matches what a choice fills in a phrase.
var variable = regexp.MustCompile(`\$[a-zA-Z_]+`)

// fill fills the variables of a phrase. $to is somebody to address, $task a task of the hub, the
// latest at first, and any other the value of a member that was received.
func (c *crowd) fill(peer, text string, choice byte, escape func(string) string) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		all, at := addressed, int(choice%8)
		switch name {
		case "$to":
		case "$task":
			all = nil
			for _, id := range c.tasks.all() {
				all = append(all, string(id))
			}
			at = len(all) - 1 - int(choice/8)
		default:
			if all = c.known[peer+" "+name[1:]]; len(all) == 0 {
				all = c.known[name[1:]]
			}
			at = len(all) - 1 - int(choice/8)
		}
		value := "unknown"
		if at >= 0 && at < len(all) {
			value = all[at]
		}
		if escape != nil {
			return escape(value)
		}
		return strings.Trim(quoteJSON(value), `"`)
	})
}

// hear collects what the peers have received.
func (c *crowd) hear() {
	for name, peer := range c.peers {
		for _, v := range peer.take() {
			c.learn(name, v)
			if c.told[name] != nil && strings.HasPrefix(name, "native ") {
				c.hearNative(name, v)
			}
		}
		if peer.getEnd() != nil { // the hub has closed it
			peer.leave(link.Reason{Cause: link.Normal})
			delete(c.peers, name)
			delete(c.told, name)
		}
	}
}

// learn keeps the texts that phrases use, for the peer and for those that have heard none.
func (c *crowd) learn(name string, v *jsonValue) {
	for i, item := range v.items {
		if i < len(v.keys) && item.open == '"' && slices.Contains(learned, v.keys[i]) {
			for _, key := range []string{v.keys[i], name + " " + v.keys[i]} {
				if !slices.Contains(c.known[key], item.text) {
					c.known[key] = append(c.known[key], item.text)
				}
			}
		}
		c.learn(name, item)
	}
}

// hearNative checks what a native peer is told of the tasks of its calls.
func (c *crowd) hearNative(name string, v *jsonValue) {
	text := func(v *jsonValue, key string) string {
		if m := v.member(key); m != nil {
			return m.text
		}
		return ""
	}
	if r := v.member("result"); r != nil && text(r, "task") != "" {
		c.toldOf(name, text(r, "id"), text(r, "task")).accepted = true
	}
	e := v.member("event")
	if e == nil || text(e, "role") != "requester" {
		return
	}
	told := c.toldOf(name, text(e, "call"), text(e, "task"))
	var seq uint64
	fmt.Sscan(text(e, "seq"), &seq)
	if seq <= told.last {
		c.t.Errorf("%s: got event %d of task %s after %d", name, seq, text(e, "task"), told.last)
	}
	if told.ends > 0 {
		c.t.Errorf("%s: got %s of task %s after its end", name, text(e, "kind"), text(e, "task"))
	}
	told.last = seq
	if slices.Contains([]string{"done", "failed", "cancelled"}, text(e, "kind")) {
		told.ends++
		if c.settings&recordedEnds != 0 && c.tasks.recordedUpTo(core.TaskID(text(e, "task"))) < seq {
			c.t.Errorf("%s: got the end of task %s before the journal had it", name, text(e, "task"))
		}
	}
}

func (c *crowd) toldOf(name, call, task string) *toldTask {
	key := toldCall{call, task}
	if c.told[name][key] == nil {
		c.told[name][key] = &toldTask{}
	}
	return c.told[name][key]
}

// settle waits until every deadline is over and checks what must then be so.
func (c *crowd) settle() {
	if c.settings&stopsEarly != 0 {
		ctx, cancel := context.WithTimeout(c.ctx, time.Minute)
		defer cancel()
		if err := c.hub.Close(ctx, "the hub is stopped"); err != nil {
			c.t.Errorf("stopping the hub: got %v, want no error", err)
		}
		c.wantNoneRunning()
		return
	}
	for range 4 {
		time.Sleep(15 * time.Minute)
		synctest.Wait()
		c.hear()
	}
	for name, tasks := range c.told {
		for key, told := range tasks {
			want := 1
			if c.tasks.end(core.TaskID(key.task)) == "" {
				want = 0
			}
			if told.accepted && told.ends != want {
				c.t.Errorf("%s: got %d ends of task %s, which it asked with call %q, want %d", name, told.ends, key.task, key.call, want)
			}
		}
	}
	for name, peer := range c.peers {
		peer.leave(link.Reason{Cause: link.PeerGone})
		delete(c.peers, name)
	}
	time.Sleep(longest)
	synctest.Wait()
	c.wantNoneRunning()
	for name, call := range c.calls {
		select {
		case <-call.done:
		default:
			if !c.endless[name] {
				c.t.Errorf("request %s has no answer after %s", name, longest)
			}
		}
	}
	for _, id := range c.tasks.all() {
		c.read(id)
	}
}

func (c *crowd) wantNoneRunning() {
	if n := c.hub.Running(); n > 0 {
		c.t.Errorf("got %d tasks that run, want none", n)
	}
}

// read wants a task to read over REST as it happened.
func (c *crowd) read(id core.TaskID) {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(c.ctx, http.MethodGet, "/v1/tasks/"+string(id)+"/events?follow=false", nil)
	r.Header.Set("Accept", "application/x-ndjson")
	c.router().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		c.t.Errorf("task %s: got %d %s, want its events", id, w.Code, w.Body)
		return
	}
	var kinds []string
	for line := range strings.Lines(w.Body.String()) {
		var e struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			c.t.Errorf("task %s: got %s: %v", id, line, err)
		}
		kinds = append(kinds, e.Kind)
	}
	if want := c.tasks.end(id); len(kinds) == 0 || kinds[len(kinds)-1] != want {
		c.t.Errorf("task %s: got the events %v, want %q at their end", id, kinds, want)
	}
}
