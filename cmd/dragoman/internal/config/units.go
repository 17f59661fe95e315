package config

import (
	"errors"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// timeInDays is a time that begins with days, which the time package has no unit for.
var timeInDays = regexp.MustCompile(`^([0-9]{1,6})d(.*)$`)

// ParseTime reads a time as people write it: 30s, 1h30m, 7d, 1d12h.
func ParseTime(text string) (time.Duration, bool) {
	m := timeInDays.FindStringSubmatch(text)
	if m == nil {
		d, err := time.ParseDuration(text)
		return d, err == nil
	}
	n, _ := strconv.Atoi(m[1]) // the expression leaves digits alone
	whole, rest := time.Duration(n)*24*time.Hour, time.Duration(0)
	if m[2] != "" {
		var err error
		if rest, err = time.ParseDuration(m[2]); err != nil || strings.HasPrefix(m[2], "-") || strings.HasPrefix(m[2], "+") {
			return 0, false
		}
	}
	if n > math.MaxInt64/int(24*time.Hour) || whole > math.MaxInt64-rest {
		return 0, false
	}
	return whole + rest, true
}

// inShort is a time without the minutes and seconds that are none: 168h.
func inShort(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// sizeInUnits is a number of bytes with a unit.
var sizeInUnits = regexp.MustCompile(`^([0-9]{1,18}) ?([kKMGT]?B|[KMGT]iB)$`)

// readSize reads a number of bytes as people write it: 64MiB, 1 GB.
func readSize(text string) (int64, bool) {
	m := sizeInUnits.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	n, _ := strconv.ParseInt(m[1], 10, 64) // the expression leaves what fits
	step := int64(1000)
	if strings.HasSuffix(m[2], "iB") {
		step = 1024
	}
	unit := int64(1)
	for range strings.Index("BKMGT", strings.ToUpper(m[2][:1])) {
		unit *= step
	}
	return n * unit, n <= math.MaxInt64/unit
}

// ExpandHome returns a path with the home directory for ~ at its beginning.
func ExpandHome(path string) (string, error) {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("nobody knows what ~ is here, since HOME is not set: write the whole path")
	}
	return home + path[1:], nil
}

// TimeValue is a flag with a time as people write it.
type TimeValue time.Duration

// Set implements pflag.Value.
func (t *TimeValue) Set(text string) error {
	d, ok := ParseTime(text)
	if !ok {
		return errors.New("no time")
	}
	*t = TimeValue(d)
	return nil
}

// Type implements pflag.Value.
func (*TimeValue) Type() string { return "duration" }

// String implements pflag.Value. A default of nothing is not shown.
func (t *TimeValue) String() string {
	if *t == 0 {
		return ""
	}
	return time.Duration(*t).String()
}
