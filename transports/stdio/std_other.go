//go:build !unix

package stdio

import "os"

// Std returns a Conn over our own stdin and stdout, which Close closes. Nobody
// else may use them meanwhile.
func Std(opts Options) (*Conn, error) { return Files(os.Stdin, os.Stdout, opts), nil }
