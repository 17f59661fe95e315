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

// timeInDays matches a time that begins with days, a unit that the time package lacks.
var timeInDays = regexp.MustCompile(`^([0-9]{1,6})d(.*)$`)

// ParseTime parses a duration, which may have days: 30s, 1h30m, 7d, 1d12h.
func ParseTime(text string) (time.Duration, bool) {
	m := timeInDays.FindStringSubmatch(text)
	if m == nil {
		d, err := time.ParseDuration(text)
		return d, err == nil
	}
	n, _ := strconv.Atoi(m[1]) // the expression matches digits
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

// shortTime formats a duration without zero minutes and seconds: 168h.
func shortTime(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// sizeInUnits matches a number of bytes with a unit.
var sizeInUnits = regexp.MustCompile(`^([0-9]{1,18}) ?([kKMGT]?B|[KMGT]iB)$`)

// readSize parses a number of bytes with a unit: 64MiB, 1 GB.
func readSize(text string) (int64, bool) {
	m := sizeInUnits.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	n, _ := strconv.ParseInt(m[1], 10, 64) // the expression matches what fits
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

// ExpandHome replaces ~ at the beginning of a path by the home directory.
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

// TimeValue is a flag with a time for ParseTime.
type TimeValue time.Duration

// Set implements pflag.Value.
func (t *TimeValue) Set(text string) error {
	d, ok := ParseTime(text)
	if !ok {
		return errors.New("not a time")
	}
	*t = TimeValue(d)
	return nil
}

// Type implements pflag.Value.
func (*TimeValue) Type() string { return "duration" }

// String implements pflag.Value. A zero default is not shown.
func (t *TimeValue) String() string {
	if *t == 0 {
		return ""
	}
	return time.Duration(*t).String()
}

// Time is a duration in a list of objects.
type Time time.Duration

// MarshalText implements encoding.TextMarshaler.
func (t Time) MarshalText() ([]byte, error) { return []byte(shortTime(time.Duration(t))), nil }

// Size is a number of bytes in a list of objects.
type Size int64
