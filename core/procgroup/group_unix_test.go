//go:build unix

package procgroup_test

import (
	"bufio"
	"io"
	"os/exec"
	"testing"

	"github.com/dragoman-hub/dragoman/core/procgroup"
)

func TestTheGroupEndsWithItsLeader(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 1000 & echo started; exit")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	procgroup.Lead(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := procgroup.Kill(cmd.Process); err != nil {
		t.Errorf("got %v, want the group ended", err)
	}
	if _, err := io.Copy(io.Discard, lines); err != nil { // it ends when nobody holds it open
		t.Error(err)
	}
	_ = cmd.Wait() // the leader may have ended by itself
}
