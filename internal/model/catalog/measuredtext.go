package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Encode returns the measurements as text by image: a line for each type, sorted.
//
//	m5.large memory=7842048Ki disk=20Gi:20893676Ki pods=29:110 seen=2026-11-21
//
// memory has the real amount. disk and pods have the computed and the real amount, and are repeated for each
// correction. If the texts and the names of the images are longer than limit bytes, the lines with the earliest days
// are left out.
func (m Measurements) Encode(limit int) map[string]string {
	samples := slices.SortedFunc(maps.Keys(m), func(a, b Sample) int {
		return cmp.Or(cmp.Compare(m[b].Seen, m[a].Seen), cmp.Compare(a.Image, b.Image), cmp.Compare(a.Type, b.Type))
	})
	lines, size := map[string][]string{}, 0
	for _, sample := range samples {
		line := m[sample].line(sample.Type)
		if lines[sample.Image] == nil {
			size += len(sample.Image)
		}
		if size += len(line); size > limit {
			break
		}
		lines[sample.Image] = append(lines[sample.Image], line)
	}
	out := make(map[string]string, len(lines))
	for image, list := range lines {
		slices.Sort(list)
		out[image] = strings.Join(list, "")
	}
	return out
}

// line returns the line of a type, with its line end.
func (m Measured) line(typ string) string {
	var b strings.Builder
	b.WriteString(typ)
	if m.Memory > 0 {
		b.WriteString(" memory=" + resources.Format(resources.Memory, m.Memory))
	}
	for _, c := range m.Disk {
		b.WriteString(" disk=" + c.text(resources.EphemeralStorage))
	}
	for _, c := range m.Pods {
		b.WriteString(" pods=" + c.text(resources.Pods))
	}
	b.WriteString(" seen=" + m.Seen.String() + "\n")
	return b.String()
}

// text returns the computed and the real amount, separated by a colon.
func (c Correction) text(resource string) string {
	return resources.Format(resource, c.Computed) + ":" + resources.Format(resource, c.Real)
}

// DecodeMeasurements parses the output of Encode. The error names image and type of every line that cannot be read; the
// measurements of the other lines are returned with it.
func DecodeMeasurements(text map[string]string) (Measurements, error) {
	out := Measurements{}
	var errs []error
	for _, image := range slices.Sorted(maps.Keys(text)) {
		for line := range strings.Lines(text[image]) {
			words := strings.Fields(line)
			if len(words) == 0 {
				continue
			}
			m, err := readMeasured(words[1:])
			if err != nil {
				errs = append(errs, fmt.Errorf("read measurement of %s from %s: %w", words[0], image, err))
				continue
			}
			out[Sample{image, words[0]}] = m
		}
	}
	return out, errors.Join(errs...)
}

// readMeasured parses the words that follow the type in a line.
func readMeasured(words []string) (Measured, error) {
	var out Measured
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		var err error
		switch name {
		case "memory":
			out.Memory, err = parsePositive(resources.Memory, value)
		case "disk":
			out.Disk, err = readCorrection(out.Disk, resources.EphemeralStorage, value)
		case "pods":
			out.Pods, err = readCorrection(out.Pods, resources.Pods, value)
		case "seen":
			out.Seen, err = parseDay(value)
		default:
			err = fmt.Errorf("%q is none of memory=, disk=, pods=, seen=", word)
		}
		if err != nil {
			return Measured{}, err
		}
	}
	return out, nil
}

// readCorrection parses the output of Correction.text, and returns list with this correction added.
func readCorrection(list []Correction, resource, text string) ([]Correction, error) {
	computedText, realText, ok := strings.Cut(text, ":")
	if !ok {
		return nil, fmt.Errorf("%q: want the computed and the real amount, separated by a colon", text)
	}
	computed, err := parsePositive(resource, computedText)
	if err != nil {
		return nil, err
	}
	reported, err := parsePositive(resource, realText)
	if err != nil {
		return nil, err
	}
	return mergeCorrections(list, []Correction{{computed, reported}}), nil
}

func parsePositive(resource, text string) (int64, error) {
	n, err := resources.Parse(resource, text)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%q: want more than 0", text)
	}
	return n, err
}

const secondsPerDay = 24 * 60 * 60

// DayOf returns the day of t in UTC.
func DayOf(t time.Time) Day { return Day(t.Unix() / secondsPerDay) }

// String returns the day as "2026-11-21".
func (d Day) String() string { return time.Unix(int64(d)*secondsPerDay, 0).UTC().Format(time.DateOnly) }

func parseDay(text string) (Day, error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return 0, fmt.Errorf("%q: want a day, as in 2026-11-21", text)
	}
	return DayOf(t), nil
}
