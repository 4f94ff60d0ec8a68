package cron

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const layout = "2006-01-02 15:04:05"

func at(t *testing.T, text string) time.Time {
	t.Helper()
	out, err := time.Parse(layout, text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, after, want string }{
		{"* * * * *", "2026-03-01 12:00:00", "2026-03-01 12:01:00"},
		{"* * * * *", "2026-03-01 12:00:59", "2026-03-01 12:01:00"},
		{"*/15 * * * *", "2026-03-01 12:45:00", "2026-03-01 13:00:00"},
		{"5/20 * * * *", "2026-03-01 12:00:00", "2026-03-01 12:05:00"},
		{"5/20 * * * *", "2026-03-01 12:45:00", "2026-03-01 13:05:00"},
		{"0 9 * * mon-fri", "2026-02-27 09:00:00", "2026-03-02 09:00:00"}, // a Friday; then Monday
		{"0 9 * * MON-fri/2", "2026-03-02 09:00:00", "2026-03-04 09:00:00"},
		{"30 22 1,15 * ?", "2026-03-01 22:30:00", "2026-03-15 22:30:00"},
		{"0 0 13 * fri", "2026-03-01 00:00:00", "2026-03-06 00:00:00"}, // either day suffices
		{"0 0 */2 * 1", "2026-03-01 00:00:00", "2026-03-02 00:00:00"},  // a step restricts the day
		{"0 0 29 2 *", "2026-03-01 00:00:00", "2028-02-29 00:00:00"},
		{"0 0 29 feb *", "2096-03-01 00:00:00", "2104-02-29 00:00:00"}, // 2100 is not a leap year
		{"0 0 31 2,4,6,dec *", "2026-03-01 00:00:00", "2026-12-31 00:00:00"},
		{"59 23 31 12 *", "2026-12-31 23:59:00", "2027-12-31 23:59:00"},
		{"@yearly", "2026-01-01 00:00:00", "2027-01-01 00:00:00"},
		{"@annually", "2026-03-01 00:00:00", "2027-01-01 00:00:00"},
		{"@monthly", "2026-03-01 00:00:00", "2026-04-01 00:00:00"},
		{"@weekly", "2026-03-02 00:00:00", "2026-03-08 00:00:00"},
		{"@daily", "2026-03-01 12:00:00", "2026-03-02 00:00:00"},
		{"@midnight", "2026-03-01 12:00:00", "2026-03-02 00:00:00"},
		{"@hourly", "2026-03-01 12:00:00", "2026-03-01 13:00:00"},
	} {
		s, err := Parse(c.line)
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		if got := s.Next(at(t, c.after)); got.Format(layout) != c.want {
			t.Errorf("%s after %s hits at %s, want %s", c.line, c.after, got.Format(layout), c.want)
		}
	}
}

func TestZonesDoNotMatter(t *testing.T) {
	t.Parallel()
	s, err := Parse("0 9 * * *")
	if err != nil {
		t.Fatal(err)
	}
	now := at(t, "2026-03-01 08:30:00").In(time.FixedZone("elsewhere", -11*3600))
	if got := s.Next(now).Format(layout + " MST"); got != "2026-03-01 09:00:00 UTC" {
		t.Errorf("hits at %s, want 09:00 UTC", got)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                     "0 columns",
		"* * * *":              "4 columns",
		"0 * * * * *":          "6 columns",
		"@every 1h":            "use @yearly",
		"@dailyish":            "use @yearly",
		"TZ=UTC 0 * * * *":     "time zone",
		"CRON_TZ=UTC @daily":   "time zone",
		"60 * * * *":           "minute \"60\": 60 is not from 0 to 59",
		"* 24 * * *":           "hour",
		"* * 0 * *":            "day of the month \"0\": 0 is not from 1 to 31",
		"* * * 13 *":           "month",
		"* * * * 7":            "day of the week \"7\": 7 is not from 0 to 6",
		"* * * * someday":      "\"someday\" is not a number",
		"* * mon * *":          "\"mon\" is not a number",
		"30-10 * * * *":        "30-10 begins after its end",
		"*/0 * * * *":          "step \"0\"",
		"*/-5 * * * *":         "step \"-5\"",
		"1-2-3 * * * *":        "\"2-3\" is not a number",
		"1/2/3 * * * *":        "step \"2/3\"",
		"- * * * *":            "is not a number",
		", * * * *":            "the list is empty",
		"0 0 31 2 *":           "there is no such date",
		"0 0 30,31 feb *":      "there is no such date",
		"0 0 31 4,6,9,11 *":    "there is no such date",
		"99999999999999999999": "1 columns",
	} {
		_, err := Parse(line)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", line, err, want)
		}
	}
}

func TestActive(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line      string
		length    time.Duration
		now       string
		want      bool
		wantUntil string
	}{
		{"0 9 * * *", 8 * time.Hour, "2026-03-01 08:59:59", false, "2026-03-01 09:00:00"},
		{"0 9 * * *", 8 * time.Hour, "2026-03-01 09:00:00", true, "2026-03-01 17:00:00"},
		{"0 9 * * *", 8 * time.Hour, "2026-03-01 16:59:59", true, "2026-03-01 17:00:00"},
		{"0 9 * * *", 8 * time.Hour, "2026-03-01 17:00:00", false, "2026-03-02 09:00:00"},
		{"0 22 * * 5", 60 * time.Hour, "2026-03-01 12:00:00", true, "2026-03-02 10:00:00"},  // over a weekend
		{"0 9,12 * * *", 4 * time.Hour, "2026-03-01 10:00:00", true, "2026-03-01 16:00:00"}, // overlapping windows
		{"0 9,13 * * *", 4 * time.Hour, "2026-03-01 10:00:00", true, "2026-03-01 17:00:00"}, // adjacent windows
		{"0 0 29 2 *", time.Hour, "2026-03-01 10:00:00", false, "2028-02-29 00:00:00"},
	} {
		s, err := Parse(c.line)
		if err != nil {
			t.Fatal(err)
		}
		active, until := s.Active(c.length, at(t, c.now))
		if active != c.want || until.Format(layout) != c.wantUntil {
			t.Errorf("%s for %s at %s: %v until %s, want %v until %s", c.line, c.length, c.now, active, until.Format(layout),
				c.want, c.wantUntil)
		}
	}
	never, _ := Schedule{}.Active(time.Hour, at(t, "2026-03-01 00:00:00"))
	every, err := Parse("* * * * *")
	if err != nil {
		t.Fatal(err)
	}
	always, until := every.Active(48*time.Hour, at(t, "2026-03-01 00:00:00"))
	if never || !always || !until.IsZero() {
		t.Errorf("the zero schedule is active: %v, want false; a schedule without gaps is active: %v until %s, want true without an end", never, always, until)
	}
}

// TestActiveAroundTheClock: windows without gaps are always active, and until is zero.
func TestActiveAroundTheClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line   string
		length time.Duration
		always bool
	}{
		{"0 0 * * *", 24 * time.Hour, true},
		{"0 0 * * *", 24*time.Hour - time.Minute, false},
		{"@daily", 24 * time.Hour, true},
		{"@hourly", time.Hour, true},
		{"* * * * *", time.Minute, true},
		{"0 0 * * 1", 7 * 24 * time.Hour, true},
		{"0 0 * * 1", 6 * 24 * time.Hour, false},
		{"0 0 * * 1-5", 24 * time.Hour, false},
		{"0 0 * * 1-5", 72 * time.Hour, true},
		{"0 0,12 * * *", 12 * time.Hour, true},
		{"0 0,9 * * *", 12 * time.Hour, false},
		{"0 0 1 * *", 31 * 24 * time.Hour, true},
		{"0 0 1 * *", 30 * 24 * time.Hour, false},
	} {
		s, err := Parse(c.line)
		if err != nil {
			t.Fatal(err)
		}
		active, until := s.Active(c.length, at(t, "2026-03-04 13:00:00"))
		if got := active && until.IsZero(); got != c.always {
			t.Errorf("%s for %s: active %v until %s, want always %v", c.line, c.length, active, until, c.always)
		}
	}
}

// TestAgainstEveryMinute compares Next with a check of every minute, with independently parsed columns.
func TestAgainstEveryMinute(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"7 3 * * *", "*/25 1-3 * 2-5 *", "0 0 1 * 0", "13,14 */9 10-20/3 * 2,4", "0 12 28 * *", "59 23 * feb sat"} {
		s, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Date(2026, 2, 18, 0, 0, 0, 0, time.UTC)
		next := s.Next(begin.Add(-time.Minute))
		for m := begin; m.Before(begin.AddDate(0, 0, 16)); m = m.Add(time.Minute) {
			if isHit := hits(t, line, m); isHit != m.Equal(next) {
				t.Fatalf("%s hits at %s: %v, but Next returns %s", line, m, isHit, next)
			}
			if m.Equal(next) {
				next = s.Next(m)
			}
		}
	}
}

// hits reports whether the line fires in the minute m. It parses the line without the code under test.
func hits(t *testing.T, line string, m time.Time) bool {
	t.Helper()
	words := strings.NewReplacer("feb", "2", "sat", "6").Replace(line)
	columns := strings.Fields(words)
	values := []int{m.Minute(), m.Hour(), m.Day(), int(m.Month()), int(m.Weekday())}
	var match [5]bool
	for i, column := range columns {
		for part := range strings.SplitSeq(column, ",") {
			span, stride := part, 1
			if before, after, ok := strings.Cut(part, "/"); ok {
				span = before
				if _, err := fmt.Sscan(after, &stride); err != nil {
					t.Fatal(err)
				}
			}
			// * is 0-99, but 1-99 for the day of the month and the month.
			first, last := map[bool]int{true: 1}[i == 2 || i == 3], 99
			if span != "*" {
				if n, _ := fmt.Sscanf(span, "%d-%d", &first, &last); n == 1 {
					last = first
				}
			}
			match[i] = match[i] || values[i] >= first && values[i] <= last && (values[i]-first)%stride == 0
		}
	}
	day := match[2] && match[4]
	if columns[2] != "*" && columns[4] != "*" {
		day = match[2] || match[4]
	}
	return match[0] && match[1] && match[3] && day
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"* * * * *", "0 0 31 2 *", "@daily", "5/20 1-3,4 ? jan-dec/2 mon", "*/99999999999 * * * *", "1,,2 * * * *"} {
		f.Add(seed, int64(1772366400), uint16(90)) // 1 March 2026, 12:00 UTC
	}
	f.Fuzz(func(t *testing.T, line string, unix int64, minutes uint16) {
		s, err := Parse(line)
		if err != nil {
			return
		}
		now := time.Unix(unix%(1<<36), 0)
		next := s.Next(now)
		if !next.After(now) || next.Second() != 0 {
			t.Fatalf("%q after %s hits at %s, want a full minute after that time", line, now, next)
		}
		if again := s.Next(next.Add(-time.Minute)); !again.Equal(next) {
			t.Fatalf("%q: Next returns %s, but %s when called for a minute earlier", line, next, again)
		}
		length := time.Duration(minutes) * time.Minute
		active, until := s.Active(length, now)
		isForever := until.IsZero() && s.IsAlways(length)
		if active && !isForever && (!until.After(now) || until.Sub(now) > length+maxHits*length) {
			t.Fatalf("%q is active at %s until %s, want a later end within maxHits windows", line, now, until)
		}
		if !active && length > 0 && !until.Equal(next) {
			t.Fatalf("%q is not active until %s, want until the next hit, %s", line, until, next)
		}
	})
}
