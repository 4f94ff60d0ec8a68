// Package cron parses cron lines and computes when they fire, in UTC. A hit is a minute in which a line fires.
//
// In: a line of five columns, or @daily and the like; a time.
// Out: the next hit; whether a window is open, and when that changes. A window opens with each hit and has a fixed
// length.
// Never: a time zone other than UTC, a column for seconds, or an unbounded search.
package cron

import (
	"fmt"
	"strings"
	"time"
)

// Schedule is a parsed cron line. The zero value never fires.
type Schedule struct {
	minutes, hours, days, months, weekdays set
}

// Parse parses a cron line: minute, hour, day of the month, month, day of the week (0 is Sunday; 7 is invalid). Each
// column is a number, "*" or "?", a range "1-5", a step "*/15" or "5/15" (starting at 5), or a list separated by
// commas. Months and days of the week may be names of three letters. @yearly, @annually, @monthly, @weekly, @daily,
// @midnight and @hourly stand for a line. A line that never fires, such as 31 February, is an error.
//
// If both day columns are restricted, the line fires on days that match either, as in cron.
func Parse(line string) (Schedule, error) {
	columns := strings.Fields(line)
	if strings.HasPrefix(line, "@") {
		full, err := expandNickname(line)
		if err != nil {
			return Schedule{}, err
		}
		columns = strings.Fields(full)
	}
	if len(columns) > 0 && (strings.HasPrefix(columns[0], "TZ=") || strings.HasPrefix(columns[0], "CRON_TZ=")) {
		return Schedule{}, fmt.Errorf("schedule %q: the time zone is UTC and cannot be chosen", line)
	}
	if len(columns) != 5 {
		return Schedule{}, fmt.Errorf("schedule %q: it has %d columns, and needs 5: minute, hour, day of the month, month, day of the week", line, len(columns))
	}
	var sets [5]set
	for i, f := range fields() {
		var err error
		if sets[i], err = f.parse(columns[i]); err != nil {
			return Schedule{}, fmt.Errorf("schedule %q: %w", line, err)
		}
	}
	s := Schedule{sets[0], sets[1], sets[2], sets[3], sets[4]}
	if s.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Schedule{}, fmt.Errorf("schedule %q: there is no such date", line)
	}
	return s, nil
}

func expandNickname(word string) (string, error) {
	switch word {
	case "@yearly", "@annually":
		return "0 0 1 1 *", nil
	case "@monthly":
		return "0 0 1 * *", nil
	case "@weekly":
		return "0 0 * * 0", nil
	case "@daily", "@midnight":
		return "0 0 * * *", nil
	case "@hourly":
		return "0 * * * *", nil
	}
	return "", fmt.Errorf("schedule %q: use @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or five columns", word)
}

// maxDaysAhead is the maximum number of days to the next hit of any line that fires: 29 February is up to eight years
// away.
const maxDaysAhead = 8*366 + 1

// Next returns the first hit after t, to the minute and in UTC; zero if there is none.
func (s Schedule) Next(t time.Time) time.Time {
	t = t.UTC()
	year, month, day := t.Date()
	from := t.Hour()*60 + t.Minute() + 1
	for ahead := range maxDaysAhead {
		date := time.Date(year, month, day+ahead, 0, 0, 0, 0, time.UTC)
		if s.hitsOn(date) {
			if minute, ok := s.minuteOf(from); ok {
				return date.Add(time.Duration(minute) * time.Minute)
			}
		}
		from = 0
	}
	return time.Time{}
}

func (s Schedule) hitsOn(date time.Time) bool {
	if !s.months.has(int(date.Month())) {
		return false
	}
	day, weekday := s.days.has(date.Day()), s.weekdays.has(int(date.Weekday()))
	if s.days.isAny || s.weekdays.isAny {
		return day && weekday
	}
	return day || weekday
}

// minuteOf returns the first minute at which the schedule fires on a day with hits, at or after from; false if there is
// none. Both are minutes of the day.
func (s Schedule) minuteOf(from int) (int, bool) {
	for hour := from / 60; hour < 24; hour++ {
		if !s.hours.has(hour) {
			continue
		}
		first := 0
		if hour == from/60 {
			first = from % 60
		}
		for minute := first; minute < 60; minute++ {
			if s.minutes.has(minute) {
				return hour*60 + minute, true
			}
		}
	}
	return 0, false
}

// maxHits is the maximum number of hits that Active examines.
const maxHits = 200

// Active reports whether a window is open at now. A window opens with a hit and has the given length. until is when the
// result changes: if no window is open, when the next window opens; otherwise the end of the last window that follows
// without a gap. until is zero if the result never changes. If more than maxHits windows follow each other without a
// gap, until may be too early, but never too late.
func (s Schedule) Active(length time.Duration, now time.Time) (active bool, until time.Time) {
	if length <= 0 {
		return false, time.Time{}
	}
	hit := s.Next(now.Add(-length))
	if hit.IsZero() || hit.After(now) {
		return false, hit
	}
	for range maxHits {
		until = hit.Add(length)
		next := s.Next(hit)
		if next.IsZero() || next.After(until) {
			return true, until
		}
		hit = next
	}
	if s.IsAlways(length) {
		return true, time.Time{}
	}
	return true, until
}

// IsAlways reports whether windows of this length follow each other without a gap.
func (s Schedule) IsAlways(length time.Duration) bool {
	gap, ok := s.longestGap()
	return ok && gap <= length
}

// longestGap returns the longest time from one hit to the next; false if there are no hits.
func (s Schedule) longestGap() (time.Duration, bool) {
	first, ok := s.minuteOf(0)
	if !ok {
		return 0, false
	}
	longest, last := 0, first
	for minute, ok := first, true; ok; minute, ok = s.minuteOf(minute + 1) {
		longest, last = max(longest, minute-last), minute
	}
	const day = 24 * 60
	if s.days.isAny && s.weekdays.isAny && s.months.isAny { // every day
		return time.Duration(max(longest, day-last+first)) * time.Minute, true
	}
	before := -1 // the previous day with a hit, in days after 1 January 2000; -1: none yet
	// 2 * maxDaysAhead days have at least two hits.
	for ahead := range 2 * maxDaysAhead {
		if !s.hitsOn(time.Date(2000, 1, 1+ahead, 0, 0, 0, 0, time.UTC)) {
			continue
		}
		if before >= 0 {
			longest = max(longest, (ahead-before)*day-last+first)
		}
		before = ahead
	}
	return time.Duration(longest) * time.Minute, before >= 0
}
