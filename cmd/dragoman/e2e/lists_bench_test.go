package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

// BenchmarkListOfTasks reads pages of 10,000 tasks over REST from a hub in a process of its own with a
// journal on disk, which has the latest 1,024 in memory: the time of a page, and the CPU time of the
// hub for it.
func BenchmarkListOfTasks(b *testing.B) {
	const tasks, askers = 10000, 8
	h := &asked{benchHub: startBenchHub(b, "", "limits: {history_bytes: 0, finished_tasks: 1024}\n")}
	h.join(b, "")
	var work sync.WaitGroup
	for range askers {
		ask := askREST(b, h)
		work.Go(func() {
			for range tasks / askers {
				if err := ask(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	c := &http.Client{Transport: &http.Transport{}}
	b.Cleanup(c.CloseIdleConnections)
	page := func(b *testing.B, query string) (before string, n, bytes int) {
		b.Helper()
		resp, err := c.Get("http://" + h.HTTP + "/v1/tasks?" + query)
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		var list struct {
			Tasks  []struct{ ID string }
			Before string
		}
		if err == nil {
			err = json.Unmarshal(text, &list)
		}
		if err != nil || resp.StatusCode != http.StatusOK {
			b.Fatalf("%s: got %s, %s and %v, want a page", query, resp.Status, text, err)
		}
		return list.Before, len(list.Tasks), len(text)
	}
	// The place of the oldest tasks, which only the journal has.
	all, last, deep := 0, "", ""
	for more := true; more; more = last != "" {
		before, n, _ := page(b, "limit=500&before="+last)
		if all += n; before != "" {
			deep = before
		}
		last = before
	}
	if all != tasks {
		b.Fatalf("got %d tasks in all pages, want %d", all, tasks)
	}
	for _, of := range []struct{ name, query string }{
		{"newest-50", "limit=50"},
		{"newest-500", "limit=500"},
		{"done-500", "limit=500&state=done"},
		{"oldest-50", "limit=50&before=" + deep},
		{"oldest-200", "limit=200&before=" + deep},
		{"none-failed", "state=failed"},
		{"none-from", "from=nobody"},
		{"none-caused", "cause=" + deep},
	} {
		b.Run(of.name, func(b *testing.B) {
			var took []time.Duration
			var n, bytes int
			_, _, _ = page(b, of.query)
			used := h.benchHub.cpu(b)
			for b.Loop() {
				began := time.Now()
				_, n, bytes = page(b, of.query)
				took = append(took, time.Since(began))
			}
			used = h.benchHub.cpu(b) - used
			b.ReportMetric(micros(percentile(took, .5)), "p50-µs")
			b.ReportMetric(micros(percentile(took, .99)), "p99-µs")
			b.ReportMetric(micros(used)/float64(len(took)), "cpu-µs")
			b.ReportMetric(float64(n), "tasks")
			b.ReportMetric(float64(bytes), "bytes")
			b.ReportMetric(0, "ns/op")
		})
	}
}
