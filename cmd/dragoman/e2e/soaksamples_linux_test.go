package e2e

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const mebi = 1 << 20

// soakFigures are what is sampled: its name, its unit, and how much it may differ by, over what is
// judged, beside its noise.
var soakFigures = []struct {
	name, unit string
	size       float64 // of the unit
	slack      float64
	bounded    bool // whether it may not grow
}{
	{"rss", "MiB", mebi, 8 * mebi, true},
	{"anonymous", "MiB", mebi, 8 * mebi, true},
	{"heap", "MiB", mebi, 4 * mebi, true},
	{"goroutines", "", 1, 20, true},
	{"files", "", 1, 10, true},
	{"threads", "", 1, 3, true},
	{"data", "MiB", mebi, 32 * mebi, true}, // it comes and goes in blocks
	{"cpu", "s", 1, 0, false},
	{"burst", "", 1, 0, false}, // 1 within a burst, and until its memory is returned
}

// soakSample is what the hub has at a moment.
type soakSample struct {
	slice  int
	at     float64 // seconds since the beginning of the first slice, without the time between slices
	values map[string]float64
}

// sample looks at the process of the hub from outside.
func (s *soak) sample() (one soakSample, err error) {
	s.hub.mu.Lock()
	pid := s.hub.cmd.Process.Pid
	s.hub.mu.Unlock()
	proc := fmt.Sprintf("/proc/%d/", pid)
	v := map[string]float64{}
	one.values = v
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		return one, err
	}
	v["rss"], v["threads"] = procField(status, "VmRSS:")*1024, procField(status, "Threads:")
	rollup, err := os.ReadFile(proc + "smaps_rollup")
	if err != nil {
		return one, err
	}
	v["anonymous"] = procField(rollup, "Anonymous:") * 1024
	files, err := os.ReadDir(proc + "fd")
	if err != nil {
		return one, err
	}
	v["files"] = float64(len(files))
	stat, err := os.ReadFile(proc + "stat")
	if err != nil {
		return one, err
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	const user, system, ticks = 11, 12, 100
	fields := strings.Fields(after)
	for _, i := range []int{user, system} {
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return one, err
		}
		v["cpu"] += n / ticks
	}
	err = filepath.WalkDir(s.hub.data(), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // it may just have been removed
		}
		if info, err := d.Info(); err == nil {
			v["data"] += float64(info.Size())
		}
		return nil
	})
	if err != nil {
		return one, err
	}
	resp, err := s.hub.HTTP.Get(s.hub.URL + "/metrics")
	if err != nil {
		return one, err
	}
	defer resp.Body.Close()
	metrics, err := io.ReadAll(resp.Body)
	if err != nil {
		return one, err
	}
	if s.bursting.Load() {
		v["burst"] = 1
	}
	v["goroutines"] = procField(metrics, "go_goroutines")
	// What was live at the last collection: the next one waits for that and so many percent more.
	v["heap"] = procField(metrics, "go_memstats_next_gc_bytes") / (1 + procField(metrics, "go_gc_gogc_percent")/100)
	return one, nil
}

// procField returns the number behind a word that begins a line; 0 if there is none.
func procField(text []byte, name string) float64 {
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			n, _ := strconv.ParseFloat(words[1], 64)
			return n
		}
	}
	return 0
}

// soakSamples are the samples of all slices, in a file.
type soakSamples struct {
	file  *os.File
	all   []soakSample
	slice int
	began time.Time
	from  float64 // where the slice began
}

// openSamples reads the samples of the slices before.
func openSamples(path string) (*soakSamples, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	s := &soakSamples{file: f}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Split(lines.Text(), ",")
		if words[0] == "slice" {
			continue
		}
		one := soakSample{values: map[string]float64{}}
		if len(words) != 2+len(soakFigures) {
			continue // the machine went down in the middle of it
		}
		one.slice, _ = strconv.Atoi(words[0])
		one.at, _ = strconv.ParseFloat(words[1], 64)
		for i, f := range soakFigures {
			one.values[f.name], _ = strconv.ParseFloat(words[2+i], 64)
		}
		s.all = append(s.all, one)
	}
	if n := len(s.all); n > 0 {
		s.slice, s.from = s.all[n-1].slice, s.all[n-1].at
		return s, nil
	}
	names := "slice,seconds"
	for _, f := range soakFigures {
		names += "," + f.name
	}
	_, err = fmt.Fprintln(f, names)
	return s, err
}

func (s *soakSamples) close() { _ = s.file.Close() }

// last is the number of the last slice; 0 if there was none.
func (s *soakSamples) last() int { return s.slice }

// elapsed is how long all slices took.
func (s *soakSamples) elapsed() time.Duration {
	if len(s.all) == 0 {
		return 0
	}
	return time.Duration(s.all[len(s.all)-1].at * float64(time.Second))
}

// begin begins a slice.
func (s *soakSamples) begin() {
	s.slice++
	s.began = time.Now()
}

// add stores a sample of now.
func (s *soakSamples) add(one soakSample) {
	one.slice, one.at = s.slice, s.from+time.Since(s.began).Seconds()
	line := fmt.Sprintf("%d,%.1f", one.slice, one.at)
	for _, f := range soakFigures {
		line += "," + strconv.FormatFloat(one.values[f.name], 'f', -1, 64)
	}
	_, _ = fmt.Fprintln(s.file, line)
	s.all = append(s.all, one)
}
