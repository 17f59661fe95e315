//go:build !unix

package stdio

import "os"

// Std returns a Conn over stdin and stdout of this process, which Close closes. Nothing else
// may use them meanwhile.
func Std(opts Options) (*Conn, error) { return Files(os.Stdin, os.Stdout, opts), nil }
