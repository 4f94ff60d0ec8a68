package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Pair is two faults that are played at the same time.
type Pair struct {
	One, Other Fault // in the order of injection

	Both  bool          // doctor found both
	After time.Duration // from the injection of both faults until doctor found both
	Err   error         // why not both faults were found; nil if both were found
}

// Pairs selects n random pairs of faults that can be played in parallel: they have different checks and the same
// authentication mode, and neither is Alone or Slow. The same seed selects the same pairs. The result can have fewer
// than n pairs, and both orders of a pair.
func Pairs(faults []Fault, n int, seed uint64) []Pair {
	draw := rand.New(rand.NewPCG(seed, 0))
	candidates := slices.DeleteFunc(slices.Clone(faults), func(f Fault) bool { return f.Alone || f.Slow })
	var out []Pair
	for range 20 * n { // most attempts succeed
		if len(out) == n || len(candidates) < 2 {
			break
		}
		a, b := candidates[draw.IntN(len(candidates))], candidates[draw.IntN(len(candidates))]
		known := slices.ContainsFunc(out, func(p Pair) bool { return p.One.Name == a.Name && p.Other.Name == b.Name })
		if a.Check != b.Check && a.AuthMode == b.AuthMode && !known {
			out = append(out, Pair{One: a, Other: b})
		}
	}
	return out
}

// PlayPair plays both faults at the same time, runs doctor until it finds both, and cleans up.
func (s *Stage) PlayPair(ctx context.Context, p Pair) Pair {
	s.played++
	scenes := []*Scene{NewScene(s.Lab, nameOf(s.played)), NewScene(s.Lab, nameOf(s.played)+"-b")}
	p.Err = s.playPair(ctx, scenes, &p)
	tidy := context.WithoutCancel(ctx)
	for _, scene := range scenes {
		p.Err = errors.Join(p.Err, scene.undone(tidy), scene.remove(tidy))
	}
	for _, scene := range scenes {
		p.Err = errors.Join(p.Err, scene.gone(tidy))
	}
	return p
}

// playPair plays each fault in its scene, and sets Both and After.
func (s *Stage) playPair(ctx context.Context, scenes []*Scene, p *Pair) error {
	for i, f := range []Fault{p.One, p.Other} {
		if err := s.Break(ctx, scenes[i], f, f.After); err != nil {
			return err
		}
	}
	started := time.Now()
	err := scenes[0].until(ctx, Limit, "both faults to be found", func(ctx context.Context) (bool, error) {
		all, err := s.ask(ctx)
		if err != nil {
			return false, err
		}
		for _, f := range []Fault{p.One, p.Other} {
			if !slices.ContainsFunc(all, f.is) {
				return false, fmt.Errorf("%s is not among the findings; the first finding is %s", f.Name, firstOf(all))
			}
		}
		return true, nil
	})
	p.Both, p.After = err == nil, time.Since(started)
	return err
}
