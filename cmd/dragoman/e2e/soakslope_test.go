package e2e

import (
	"math"
	"testing"
)

// trend is a line through points.
type trend struct {
	slope, err float64 // by least squares, and its standard error
	mean       float64
	length     float64 // from the first to the last
}

// trendOf fits a line.
func trendOf(x, y []float64) (t trend) {
	n := float64(len(x))
	if n < 3 {
		return trend{}
	}
	var meanX float64
	for i := range x {
		meanX += x[i] / n
		t.mean += y[i] / n
	}
	var xx, xy float64
	for i := range x {
		xx += (x[i] - meanX) * (x[i] - meanX)
		xy += (x[i] - meanX) * (y[i] - t.mean)
	}
	t.slope = xy / xx
	var residual float64
	for i := range x {
		r := y[i] - t.mean - t.slope*(x[i]-meanX)
		residual += r * r
	}
	t.err = math.Sqrt(residual / (n - 2) / xx)
	t.length = x[len(x)-1] - x[0]
	return t
}

// grows reports whether the line rises by more than its noise, which is two standard errors, and a
// slack.
func (t trend) grows(slack float64) bool { return (t.slope-2*t.err)*t.length > slack }

// flat reports whether the line neither rises nor falls by more.
func (t trend) flat(slack float64) bool {
	return (math.Abs(t.slope)-2*t.err)*t.length <= slack
}

func TestATrendIsTheLineAndItsNoise(t *testing.T) {
	var hours, flat, rising, falling, leaking []float64
	for i := range 100 {
		noise := float64(i*7919%13) - 6 // of no direction
		hours = append(hours, float64(i)/100)
		flat = append(flat, 50+noise)
		rising = append(rising, 50+noise+20*hours[i])
		falling = append(falling, 50+noise-20*hours[i])
		leaking = append(leaking, 50+3*hours[i])
	}
	for _, tt := range []struct {
		name        string
		points      []float64
		slope       float64
		grows, flat bool
	}{
		{"flat", flat, 0, false, true},
		{"rising", rising, 20, true, false},
		{"falling", falling, -20, false, false},
		{"within the slack", leaking, 3, false, true},
	} {
		got := trendOf(hours, tt.points)
		if math.Abs(got.slope-tt.slope) > 2*got.err+1e-9 || got.grows(5) != tt.grows || got.flat(5) != tt.flat {
			t.Errorf("%s: got %+v, grows %v, flat %v, want the slope %v, %v and %v", tt.name, got, got.grows(5), got.flat(5), tt.slope, tt.grows, tt.flat)
		}
	}
	if got := trendOf(hours[:2], rising[:2]); got != (trend{}) {
		t.Errorf("two points: got %+v, want nothing said", got)
	}
}
