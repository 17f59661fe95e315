package e2e

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// covenStream is a stream of a plain gRPC client.
type covenStream = grpc.BidiStreamingClient[wire.AgentMessage, wire.ServerMessage]

// openCoven opens a stream to a hub. It ends with the test.
func openCoven(t *testing.T, addr string) covenStream {
	t.Helper()
	cc, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	t.Cleanup(cancel)
	stream, err := wire.NewCovenControlClient(cc).AgentStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// registerCoven registers on a stream and returns the first answer.
func registerCoven(t *testing.T, stream covenStream, id string, features ...string) (*wire.ServerMessage, error) {
	t.Helper()
	register := &wire.RegisterAgent{AgentId: id, ProtocolFeatures: features}
	if err := stream.Send(&wire.AgentMessage{Payload: &wire.AgentMessage_Register{Register: register}}); err != nil {
		t.Fatal(err)
	}
	return stream.Recv()
}

func TestACovenStreamSendsHeadersBeforeRegistration(t *testing.T) {
	h := newTestHub(t, nil)
	open := func() covenStream {
		stream := openCoven(t, h.service.Addresses().GRPC)
		if _, err := stream.Header(); err != nil {
			t.Fatalf("headers: got %v, want them before registration", err)
		}
		return stream
	}
	if first, err := registerCoven(t, open(), "one"); first.GetWelcome() == nil {
		t.Fatalf("got %v, %v; want Welcome", first, err)
	}
	_, err := registerCoven(t, open(), "one")
	if got := status.Convert(err); got.Code() != codes.AlreadyExists || got.Message() != "agent one already registered" {
		t.Errorf("the same id again: got %v, want ALREADY_EXISTS behind the headers", err)
	}
}

func TestTheServerIDSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	var names, instances []string
	for range 2 {
		t.Run("start", func(t *testing.T) {
			h := newTestHub(t, func(c *config.Config) { c.DataDir = dir })
			first, err := registerCoven(t, openCoven(t, h.service.Addresses().GRPC), "a")
			if err != nil {
				t.Fatal(err)
			}
			names, instances = append(names, first.GetWelcome().GetServerId()), append(instances, first.GetWelcome().GetInstanceId())
		})
	}
	if names[0] == "" || names[0] != names[1] {
		t.Errorf("server_id: got %q, want twice the same", names)
	}
	if instances[0] == instances[1] {
		t.Errorf("instance_id: got %q, want a new one on every connection", instances)
	}
}

func TestASecretIsSentOnlyToItsAgent(t *testing.T) {
	const own, shared = "sk-own-4711", "sk-shared-0815"
	path := filepath.Join(t.TempDir(), "secrets.yaml")
	text := "\"*\":\n  TOKEN: " + shared + "\n  KEY: " + shared + "\nfold:\n  KEY: " + own + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config := config.Local()
	config.Coven.Secrets = path
	var log bytes.Buffer
	service, err := service.Start(t.Context(), config, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), nil)
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			if err := service.Stop(context.WithoutCancel(t.Context()), "the test is over"); err != nil {
				t.Error(err)
			}
		}
	}
	defer stop()
	for id, want := range map[string]map[string]string{
		"fold":  {"TOKEN": shared, "KEY": own},
		"other": {"TOKEN": shared, "KEY": shared},
	} {
		first, err := registerCoven(t, openCoven(t, service.Addresses().GRPC), id)
		if err != nil {
			t.Fatal(err)
		}
		got := first.GetWelcome().GetSecrets()
		if len(got) != len(want) || got["TOKEN"] != want["TOKEN"] || got["KEY"] != want["KEY"] {
			t.Errorf("%s: got %v, want %v", id, got, want)
		}
	}
	shown := map[string]string{}
	for _, path := range []string{"/v1/agents", "/v1/agents/fold", "/v1/hub"} {
		resp, err := http.Get("http://" + service.Addresses().HTTP + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		shown[path] = string(body)
	}
	t.Setenv("DRAGOMAN_COVEN_SECRETS", path)
	code, settings, stderr := run(t, "check", "--all")
	if code != command.ExitDone || !strings.Contains(settings, path) {
		t.Errorf("check: got %d, %s and %q, want %d and the path of the file", code, settings, stderr, command.ExitDone)
	}
	stop()
	shown["the settings"], shown["the log"] = settings+stderr, log.String()
	for where, text := range shown {
		if strings.Contains(text, "sk-") {
			t.Errorf("%s: got a secret in it, want none:\n%s", where, text)
		}
	}
	if !strings.Contains(shown["the log"], "fold") {
		t.Error("the log does not name fold, want who joined")
	}
}
