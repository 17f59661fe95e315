package stdio_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/transports/stdio"
)

func TestAUnixSocketIsRefusedWithWhatToUseInstead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	if _, err := stdio.Listen(path, stdio.Options{}); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("got %v, want an error with the path and the address to use instead", err)
	}
}
