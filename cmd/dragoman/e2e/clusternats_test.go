package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// playsNATS is the variable that makes the test binary a NATS server.
const playsNATS = "TEST_PLAYS_NATS"

// playNATS is a NATS server with the flags of one, until it is interrupted.
func playNATS(args []string) error {
	opts, err := server.ConfigureOptions(flag.NewFlagSet("nats-server", flag.ContinueOnError), args, nil, nil, nil)
	if err != nil {
		return err
	}
	opts.NoSigs = true
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	go func() {
		<-interrupted
		s.Shutdown()
	}()
	s.ConfigureLogger()
	s.Start()
	s.WaitForShutdown()
	return nil
}

// natsServer is a NATS server in a process of its own.
type natsServer struct {
	t    testing.TB
	addr string
	file string
	cmd  *exec.Cmd
}

// startNATS starts NATS servers that are one cluster, and returns them once JetStream can be used.
func startNATS(t testing.TB, n int) (all []*natsServer) {
	t.Helper()
	var routes []string
	for range n {
		routes = append(routes, "nats://"+fixedAddr(t))
	}
	for i, route := range routes {
		dir := t.TempDir()
		s := &natsServer{t: t, addr: fixedAddr(t), file: filepath.Join(dir, "nats.conf")}
		text := fmt.Sprintf("server_name: n%d\nlisten: %q\njetstream { store_dir: %q }\n", i, s.addr, filepath.Join(dir, "store"))
		if n > 1 {
			text += fmt.Sprintf("cluster { name: nats, listen: %q, pool_size: -1, routes: [%s] }\n", strings.TrimPrefix(route, "nats://"), strings.Join(routes, ", "))
		}
		if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.kill)
		s.start()
		all = append(all, s)
	}
	for _, s := range all {
		s.untilUsable()
	}
	return all
}

// natsURL returns the address of all servers for journal.nats_url.
func natsURL(all []*natsServer) string {
	var urls []string
	for _, s := range all {
		urls = append(urls, "nats://"+s.addr)
	}
	return strings.Join(urls, ",")
}

func (s *natsServer) start() {
	s.t.Helper()
	s.cmd = program(s.t, "-c", s.file, "-l", filepath.Join(filepath.Dir(s.file), "log"))
	s.cmd.Env = append(s.cmd.Env, playsNATS+"=1")
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *natsServer) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	_ = s.cmd.Wait()
}

// untilUsable waits until JetStream answers by the server.
func (s *natsServer) untilUsable() {
	s.t.Helper()
	var err error
	for late := time.Now().Add(watchdog); time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
		var c *nats.Conn
		if c, err = nats.Connect("nats://" + s.addr); err != nil {
			continue
		}
		var answer *nats.Msg
		answer, err = c.Request("$JS.API.INFO", nil, time.Second)
		c.Close()
		if err == nil && !strings.Contains(string(answer.Data), `"error"`) {
			return
		}
	}
	s.t.Fatalf("the NATS server at %s: %v", s.addr, err)
}

// startHubsOn starts hubs that meet at NATS servers.
func startHubsOn(t testing.TB, servers []*natsServer, n int) hubCluster {
	t.Helper()
	c := newHubs(t, n, "--nats-url", natsURL(servers))
	c.start()
	return c
}

func TestThreeHubsAndTheirThreeNATSServersAreKilled(t *testing.T) {
	tier.Full(t, "it runs three servers of NATS")
	t.Parallel()
	servers := startNATS(t, 3)
	hubs := startHubsOn(t, servers, 3)
	load := startLoad(hubs)
	t.Cleanup(func() { load.stop() })
	hubs.untilAgents(t)

	servers[0].kill()
	load.untilTold(t, 30)
	servers[0].start()
	servers[0].untilUsable()
	hubs.untilAllUp()
	hubs.untilAgents(t)

	took := hubs.strike(t, hubs[1], os.Kill)
	t.Logf("hub b was killed: %+v", took)
	hubs.untilAllUp()
	load.untilTold(t, 10)
	load.settle(t)
}

func TestTwoHubsMeetAtOneNATSServer(t *testing.T) {
	t.Parallel()
	servers := startNATS(t, 1)
	hubs := startHubsOn(t, servers, 2)
	load := startLoad(hubs)
	t.Cleanup(func() { load.stop() })
	hubs.untilAgents(t)
	load.untilTold(t, 10)
	hubs[1].kill()
	hubs[0].untilHubs("a has taken b over", func(all []cluster.Hub) bool { return stateOf(all, "b").TakenBy != nil })
	load.untilTold(t, 10)
	hubs[1].start()
	hubs.untilAllUp()
	load.settle(t)
}

// The hubs hear each other by the one server that is left, which stores nothing: they take nothing, as they
// say. What they took before they knew is stored once they can.
func TestHubsOfANATSServerInTheMinorityTakeNothing(t *testing.T) {
	tier.Full(t, "it waits until a server of NATS has lost the others")
	t.Parallel()
	servers := startNATS(t, 3)
	hubs := newHubs(t, 2, "--nats-url", natsURL(servers[:1]))
	hubs.start()
	h := hubs[0]
	startKeeper(t, h.grpc)
	ask := func() (id core.TaskID, err error) {
		var taken struct{ ID core.TaskID }
		err = h.Post(t.Context(), "/v1/tasks", map[string]string{"to": "keeper", "content": "x"}, &taken)
		return taken.ID, err
	}
	if _, err := ask(); err != nil {
		t.Fatal(err)
	}

	servers[1].kill()
	servers[2].kill()
	begin := time.Now()
	var early []core.TaskID
	h.until("a takes nothing", func() error {
		id, err := ask()
		if err == nil {
			early = append(early, id)
			return errors.New("it has taken a task")
		}
		wantUnrecordable(t, err)
		return nil
	})
	t.Logf("%d tasks were taken within %s", len(early), time.Since(begin))
	for range 50 {
		if h.ready() {
			t.Error("/readyz: got 200, want 503 while requests are refused")
		}
		if id, err := ask(); err == nil {
			t.Errorf("got task %s taken while /readyz is 503", id)
		} else {
			wantUnrecordable(t, err)
		}
	}
	hubs[1].until("b, which nobody asks, knows it too", func() error { return notYet(!hubs[1].ready(), "it is ready") })

	servers[1].start()
	servers[2].start()
	hubs.untilAllUp()
	h.until("a takes tasks again", func() error { _, err := ask(); return err })
	if err := h.Post(t.Context(), "/v1/tasks", map[string]string{"to": "keeper", "content": "x", "receipt": "recorded"}, &struct{}{}); err != nil {
		t.Errorf("a task to be recorded, after those taken before: got %v, want it recorded", err)
	}
	h.kill()
	h.start()
	hubs.untilAllUp()
	for _, id := range early {
		var task struct{ State string }
		if err := h.Get(t.Context(), "/v1/tasks/"+string(id), &task); err != nil || task.State != "done" {
			t.Errorf("task %s, which was taken before a knew: got %+v and %v, want it done", id, task, err)
		}
	}
}
