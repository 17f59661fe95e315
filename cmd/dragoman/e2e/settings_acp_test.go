package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestACPKeepIDsIsASetting(t *testing.T) {
	const ping = `{"v":1,"id":"p1","from":"kit","kind":"ping"}`
	for keep, want := range map[time.Duration]int{time.Hour: http.StatusConflict, time.Nanosecond: http.StatusOK} {
		h := newTestHub(t, func(c *config.Config) { c.ACP.KeepIDs = keep })
		for i, want := range []int{http.StatusOK, want} {
			if status, answer := post(t, h.service.Addresses().HTTP, "/acp", ping, nil); status != want {
				t.Errorf("acp.keep_ids %s, %d: got %d %s, want %d", keep, i, status, answer, want)
			}
		}
	}
}
