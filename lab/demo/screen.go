package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// screen prints the story: lines that stay, and below them, on a terminal, one
// line that tells how things stand.
type screen struct {
	out   io.Writer
	live  bool // out is a terminal
	color bool

	mu     sync.Mutex
	since  time.Time
	status string
	err    error // of the first write that failed
}

// The colours of the stages, of a terminal's basic eight.
const (
	dim    = "2"
	bold   = "1"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	red    = "31"
)

func (s *screen) paint(color, text string) string {
	if !s.color || color == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// title begins a part of the story and its clock.
func (s *screen) title(text string) {
	s.mu.Lock()
	s.since = time.Now()
	s.mu.Unlock()
	s.print("\n" + s.paint(bold, text) + "\n\n")
}

// step says what is being done, and done when it returns says how long it took.
func (s *screen) step(text string) (done func()) {
	begun := time.Now()
	if s.live {
		s.tell("  … " + text)
	}
	return func() {
		s.tell("")
		s.print(fmt.Sprintf("  %s %-74s %s\n", s.paint(green, "✓"), text, s.paint(dim, fmt.Sprintf("%5.1f s", time.Since(begun).Seconds()))))
	}
}

// event prints one thing that happened, with the time since the part began.
func (s *screen) event(color, stage, text string) {
	s.mu.Lock()
	at := time.Since(s.since).Seconds()
	s.mu.Unlock()
	s.print(fmt.Sprintf("  %s  %s  %s\n", s.paint(dim, fmt.Sprintf("%5.1f s", at)), s.paint(color, fmt.Sprintf("%-7s", stage)), text))
}

// print prints text that stays.
func (s *screen) print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status != "" {
		text = "\r\x1b[K" + text + s.status
	}
	s.write(text)
}

// write writes text, and notes when that fails. The caller holds mu.
func (s *screen) write(text string) {
	if _, err := io.WriteString(s.out, text); err != nil && s.err == nil {
		s.err = fmt.Errorf("print the demo: %w", err)
	}
}

// failed says why nobody reads all of the story; nil: somebody does.
func (s *screen) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// tell replaces the line that tells how things stand. Without a terminal there is none.
func (s *screen) tell(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live || text == s.status {
		return
	}
	s.write("\r\x1b[K" + text)
	s.status = text
}

// table prints rows of two columns.
func (s *screen) table(rows [][2]string) {
	for _, row := range rows {
		s.print(fmt.Sprintf("  %s %s\n", s.paint(dim, row[0]+strings.Repeat(" ", max(1, 28-len([]rune(row[0]))))), row[1]))
	}
}
