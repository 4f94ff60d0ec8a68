package resources

import (
	"slices"
	"testing"
)

// TestVector: what is not asked for always fits, and what is taken off can be put back.
func TestVector(t *testing.T) {
	t.Parallel()
	room := Vector{4, 8, -1}
	for _, c := range []struct {
		ask     Vector
		times   int
		lacking int
	}{
		{Vector{1, 2, 0}, 4, -1},
		{Vector{0, 3, 0}, 2, -1},
		{Vector{5, 0, 0}, 0, 0},
		{Vector{1, 9, 0}, 0, 1},
		{Vector{0, 0, 1}, 0, 2},
		{Vector{0, 0, 0}, 7, -1},
		{Vector{-2, 0, 0}, 7, -1},
	} {
		if got := c.ask.Times(room, 7); got != c.times {
			t.Errorf("%v fits %d times into %v, want %d", c.ask, got, room, c.times)
		}
		if got := c.ask.Lacking(room); got != c.lacking {
			t.Errorf("%v lacks %d in %v, want %d", c.ask, got, room, c.lacking)
		}
		if got, want := c.ask.Fits(room), c.lacking < 0; got != want {
			t.Errorf("%v fits into %v: %t, want %t", c.ask, room, got, want)
		}
		left := room.Clone()
		left.Take(c.ask, 3)
		left.Take(c.ask, -3)
		if !slices.Equal(left, room) {
			t.Errorf("%v taken and put back makes %v of %v", c.ask, left, room)
		}
	}
}

// TestLeft: a CSI driver without a limit on the node attaches any number of volumes.
func TestLeft(t *testing.T) {
	t.Parallel()
	const ebs, other = AttachableVolumes + "ebs.csi.aws.com", AttachableVolumes + "other"
	d := Dimensions{CPU, ebs, other}
	all := Amounts{CPU: 4000, Extended: []Extended{{Name: ebs, Value: 25}}}
	used := Amounts{CPU: 1000, Extended: []Extended{{Name: ebs, Value: 20}, {Name: other, Value: 9}}}
	got := make(Vector, len(d))
	d.Left(got, all, used)
	if want := (Vector{3000, 5, Plenty}); !slices.Equal(got, want) {
		t.Errorf("left is %v, want %v", got, want)
	}
}

// TestVectorsIn: vectors side by side do not run into one another.
func TestVectorsIn(t *testing.T) {
	t.Parallel()
	cells := []int64{1, 2, 3, 4, 5, 6}
	vectors := VectorsIn(cells, 3)
	_ = append(vectors[0], 9)
	vectors[1][0] = 7
	if want := []int64{1, 2, 7, 4, 5, 6}; !slices.Equal(cells, want) {
		t.Errorf("cells are %v, want %v", cells, want)
	}
	if got := VectorsIn(nil, 0); len(got) != 0 {
		t.Errorf("no vectors are %v", got)
	}
}
