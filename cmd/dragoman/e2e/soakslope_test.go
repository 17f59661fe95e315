package e2e

import (
	"math"
	"testing"
)

// trend is a line through points.
type trend struct {
	slope, err float64 // by least squares, and its standard error
	length     float64 // from the first to the last of each group, in all
}

// trendOf fits lines through groups of points: one slope, but each group has a height of its own.
func trendOf(x, y [][]float64) (t trend) {
	var awayX, awayY []float64 // from the means of their group
	free := -1.                // degrees of freedom
	for i := range x {
		n := len(x[i])
		if n == 0 {
			continue
		}
		free += float64(n - 1)
		t.length += x[i][n-1] - x[i][0]
		meanX, meanY := average(x[i]), average(y[i])
		for j := range x[i] {
			awayX, awayY = append(awayX, x[i][j]-meanX), append(awayY, y[i][j]-meanY)
		}
	}
	var xx, xy, residual float64
	for i := range awayX {
		xx += awayX[i] * awayX[i]
		xy += awayX[i] * awayY[i]
	}
	if free < 1 || xx == 0 {
		return trend{}
	}
	t.slope = xy / xx
	for i := range awayX {
		r := awayY[i] - t.slope*awayX[i]
		residual += r * r
	}
	t.err = math.Sqrt(residual / free / xx)
	return t
}

func average(values []float64) (mean float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return mean
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
		got := trendOf([][]float64{hours}, [][]float64{tt.points})
		if math.Abs(got.slope-tt.slope) > 2*got.err+1e-9 || got.grows(5) != tt.grows || got.flat(5) != tt.flat {
			t.Errorf("%s: got %+v, grows %v, flat %v, want the slope %v, %v and %v", tt.name, got, got.grows(5), got.flat(5), tt.slope, tt.grows, tt.flat)
		}
	}
	if got := trendOf([][]float64{hours[:2]}, [][]float64{rising[:2]}); got != (trend{}) {
		t.Errorf("two points: got %+v, want nothing said", got)
	}
	x, y := [][]float64{{0, 1, 2}, {}, {10, 11, 12}}, [][]float64{{5, 7, 9}, {}, {1, 3, 5}}
	if got, want := trendOf(x, y), (trend{slope: 2, length: 4}); got != want {
		t.Errorf("two groups that rise alike from different heights: got %+v, want %+v", got, want)
	}
}
