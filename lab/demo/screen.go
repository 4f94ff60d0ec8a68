package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// screen prints the demo: event lines and, on a terminal, a status line below them.
type screen struct {
	out   io.Writer
	live  bool // out is a terminal
	color bool

	mu     sync.Mutex
	since  time.Time // start of the current part
	status string    // current status line
	err    error     // error of the first failed write
}

// Styles and colors, as parameters of the terminal's escape sequence SGR.
const (
	dim    = "2"
	bold   = "1"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

const clearLine = "\r\x1b[K"

func (s *screen) paint(color, text string) string {
	if !s.color || color == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// title prints the title of a part and starts its clock.
func (s *screen) title(text string) {
	s.mu.Lock()
	s.since = time.Now()
	s.mu.Unlock()
	s.print("\n" + s.paint(bold, text) + "\n\n")
}

// step shows a step in progress. The returned function prints the step with the time that it took.
func (s *screen) step(text string) (done func()) {
	started := time.Now()
	if s.live {
		s.setStatus("  … " + text)
	}
	return func() {
		s.setStatus("")
		s.print(fmt.Sprintf("  %s %-74s %s\n", s.paint(green, "✓"), text, s.paint(dim, fmt.Sprintf("%5.1f s", time.Since(started).Seconds()))))
	}
}

func (s *screen) event(color, stage, text string) {
	s.mu.Lock()
	at := time.Since(s.since).Seconds()
	s.mu.Unlock()
	s.print(fmt.Sprintf("  %s  %s  %s\n", s.paint(dim, fmt.Sprintf("%5.1f s", at)), s.paint(color, fmt.Sprintf("%-8s", stage)), text))
}

// print prints text above the status line.
func (s *screen) print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status != "" {
		text = clearLine + text + s.status
	}
	s.write(text)
}

// write writes text, and keeps the first error. The caller holds mu.
func (s *screen) write(text string) {
	if _, err := io.WriteString(s.out, text); err != nil && s.err == nil {
		s.err = fmt.Errorf("print the demo: %w", err)
	}
}

func (s *screen) writeError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// setStatus replaces the status line. Without a terminal it does nothing.
func (s *screen) setStatus(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live || text == s.status {
		return
	}
	s.write(clearLine + text)
	s.status = text
}

func (s *screen) table(rows [][2]string) {
	for _, row := range rows {
		s.print(fmt.Sprintf("  %s %s\n", s.paint(dim, row[0]+strings.Repeat(" ", max(1, 28-len([]rune(row[0]))))), row[1]))
	}
}
