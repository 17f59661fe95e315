package cluster_test

import (
	"time"

	"github.com/dragoman-hub/dragoman/core/coretest"
)

// lossy loses one message in ten, and delays and repeats others.
var lossy = coretest.Weather{Least: time.Millisecond, Most: 40 * time.Millisecond, Lost: 100, Twice: 50}
