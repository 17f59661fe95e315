package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// playsFlooder is the variable that makes the test binary a client that floods a hub. Its value
// is a flood.
const playsFlooder = "TEST_PLAYS_FLOODER"

// credentialFlood is what a flooding client sends, as often as it can.
type credentialFlood struct {
	GRPC, HTTP string // address of the hub; one of them is set
	Header     http.Header
	AtOnce     int
	Taken      bool // the hub takes it
}

// flooder is a flooding client in a process of its own, with low priority.
type flooder struct {
	in  io.Writer
	out *bufio.Scanner
}

func startFlooder(b *testing.B, f credentialFlood) *flooder {
	b.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		b.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := niced(self)
	cmd.Env = append(os.Environ(), playsFlooder+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	startProcess(b, cmd)
	return &flooder{in, bufio.NewScanner(out)}
}

// during floods while a function runs, and returns how many calls the hub answered.
func (f *flooder) during(b *testing.B, run func()) (n int) {
	b.Helper()
	fmt.Fprintln(f.in, "go")
	run()
	fmt.Fprintln(f.in, "stop")
	if !f.out.Scan() {
		b.Fatal("the flooder ended")
	}
	if _, err := fmt.Sscan(f.out.Text(), &n); err != nil {
		b.Fatalf("the flooder: %s", f.out.Text())
	}
	return n
}

// playFlooder floods between the lines go and stop of its input, and writes how many calls were
// answered.
func playFlooder(text string) error {
	var f credentialFlood
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return err
	}
	call, end, err := f.connect()
	if err != nil {
		return err
	}
	defer end()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var n atomic.Int64
		var failed atomic.Pointer[error]
		var group sync.WaitGroup
		ctx, stop := context.WithCancel(context.Background())
		for range f.AtOnce {
			group.Go(func() {
				for ctx.Err() == nil && failed.Load() == nil {
					if err := call(context.Background()); err != nil {
						failed.Store(&err)
						return
					}
					n.Add(1)
				}
			})
		}
		lines.Scan() // stop
		stop()
		group.Wait()
		if err := failed.Load(); err != nil {
			return *err
		}
		fmt.Fprintln(os.Stdout, n.Load())
	}
	return nil
}

func (f *credentialFlood) connect() (call func(context.Context) error, end func(), err error) {
	if f.GRPC != "" {
		cc, err := grpcserver.Dial(context.Background(), f.GRPC, grpcserver.DialOptions{})
		if err != nil {
			return nil, nil, err
		}
		md := metadata.MD{}
		for name, values := range f.Header {
			md[strings.ToLower(name)] = values
		}
		calls := wire.NewClientServiceClient(cc)
		return func(ctx context.Context) error {
			_, err := calls.GetMe(metadata.NewOutgoingContext(ctx, md), nil)
			if (err == nil) != f.Taken {
				return fmt.Errorf("got %w, want it taken: %v", err, f.Taken)
			}
			return nil
		}, func() { cc.Close() }, nil
	}
	transport := &http.Transport{MaxIdleConnsPerHost: f.AtOnce}
	c := &http.Client{Transport: transport}
	return func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.HTTP+"/v1/agents", nil)
		if err != nil {
			return err
		}
		r.Header = f.Header.Clone()
		resp, err := c.Do(r)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if got := resp.StatusCode == http.StatusOK; got != f.Taken {
			err = errors.Join(err, fmt.Errorf("got %d, want it taken: %v", resp.StatusCode, f.Taken))
		}
		return errors.Join(err, resp.Body.Close())
	}, transport.CloseIdleConnections, nil
}

// waitIdle waits until a hub has done what a flood left.
const waitIdle = 50 * time.Millisecond
