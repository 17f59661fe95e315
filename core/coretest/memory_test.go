package coretest_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/usage"
)

func TestALogInMemoryIsARecordLog(t *testing.T) {
	coretest.RecordLog(t, func(*testing.T) core.RecordLog { return &coretest.MemoryLog{} })
}

func TestUsageInMemoryIsAUsageStore(t *testing.T) {
	coretest.Usage(t, func(*testing.T) usage.Store { return &coretest.MemoryUsage{} })
}
