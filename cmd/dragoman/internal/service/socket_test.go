package service_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// Only the user of the hub can open the socket, and is an operator as on stdin.
func TestAClientOfTheUnixSocketIsAnOperator(t *testing.T) {
	c := config.Local()
	c.PiSocket = filepath.Join(t.TempDir(), "pi.sock")
	s, err := service.Start(t.Context(), c, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(t.Context(), "the test is over"); err != nil {
			t.Error(err)
		}
	}()
	conn, err := net.Dial("unix", c.PiSocket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintln(conn, `{"id":"1","type":"get_metrics"}`)
	for lines := bufio.NewReader(conn); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("got %v, want a response", err)
		}
		var f struct{ ID, Type string }
		if json.Unmarshal([]byte(line), &f) != nil || f.ID != "1" || f.Type != "response" {
			continue
		}
		if !strings.Contains(line, `"journalPath"`) || strings.Contains(line, "[redacted]") {
			t.Errorf("got %s, want where the journal is", line)
		}
		break
	}
}
