package compare

import (
	"fmt"
	"strings"
)

// thousands formats 10000 as 10,000.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// seconds formats a duration in seconds, with more decimals the shorter it is.
func seconds(s float64) string {
	switch {
	case s < 0.01:
		return fmt.Sprintf("%.4f", s)
	case s < 1:
		return fmt.Sprintf("%.3f", s)
	case s < 10:
		return fmt.Sprintf("%.2f", s)
	}
	return fmt.Sprintf("%.1f", s)
}

// dollars formats an amount with two decimals; zero is "0".
func dollars(d float64) string {
	if d == 0 {
		return "0"
	}
	return fmt.Sprintf("%.2f", d)
}

// bytes formats a number of bytes in MiB, and in GiB from 10 GiB.
func bytes(n uint64) string {
	if n < 10<<30 {
		return thousands(int(n>>20)) + " MiB"
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// count formats a large number in millions.
func count(n uint64) string {
	if n < 1_000_000 {
		return fmt.Sprintf("%.2f M", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f M", float64(n)/1e6)
}

// plural returns "1 pod", "2,000 pods".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

// oneLine shortens an error text to one line of at most 300 characters, for a list item. It replaces | < >, which
// Markdown would take for a table or HTML.
func oneLine(text string) string {
	text = strings.TrimSuffix(strings.Join(strings.Fields(text), " "), ".")
	text = strings.NewReplacer("|", "/", "<", "‹", ">", "›").Replace(text)
	if r := []rune(text); len(r) > 300 {
		return string(r[:300]) + " …"
	}
	return text
}

// times formats a ratio; from 10 without decimals.
func times(ratio float64) string {
	if ratio < 10 {
		return fmt.Sprintf("%.1f", ratio)
	}
	return thousands(int(ratio))
}
