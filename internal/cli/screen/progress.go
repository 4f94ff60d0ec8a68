package screen

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/joiner-sh/joiner/internal/cli/message"
)

// Times of the progress display.
const (
	progressEvery = 250 * time.Millisecond // between two updates
	progressAfter = time.Second            // before the first update
	progressSlow  = 3 * time.Second        // before an item gets its own line, without a terminal
	progressWidth = 78
)

// Progress prints to stderr what is being read, and for how long. On a terminal it updates one line; elsewhere it
// prints a line for each slow item. Its methods may be called concurrently.
type Progress struct {
	w          io.Writer
	isTerminal bool
	now        func() time.Time

	mu     sync.Mutex
	begun  time.Time
	active []item // in the order in which they began
	shown  int    // length of the line on the terminal
}

// item is a source that is being read.
type item struct {
	source string
	begun  time.Time
	isTold bool
}

// NewProgress returns a progress line on w. It is shown only if w is a terminal.
func NewProgress(w io.Writer, now func() time.Time) *Progress {
	file, ok := w.(*os.File)
	p := &Progress{w: w, now: now, begun: now()}
	if ok {
		info, err := file.Stat()
		p.isTerminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// Note records that reading an item starts or is done. A nil progress does nothing.
func (p *Progress) Note(source string, isDone bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !isDone {
		p.active = append(p.active, item{source: source, begun: p.now()})
		return
	}
	for i, one := range p.active {
		if one.source != source {
			continue
		}
		p.active = append(p.active[:i:i], p.active[i+1:]...)
		if one.isTold {
			fmt.Fprintf(p.w, "read %s after %s\n", message.OneLine(source), seconds(p.now().Sub(one.begun)))
		}
		return
	}
}

// show updates the display.
func (p *Progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.isTerminal {
		if len(p.active) > 0 && now.Sub(p.begun) >= progressAfter {
			text := fmt.Sprintf("reading %s (%s)", message.OneLine(p.active[0].source), seconds(now.Sub(p.begun)))
			if more := len(p.active) - 1; more > 0 {
				text = fmt.Sprintf("reading %s and %d more (%s)", message.OneLine(p.active[0].source), more, seconds(now.Sub(p.begun)))
			}
			p.replace(cutRunes(text, progressWidth))
		}
		return
	}
	for i := range p.active {
		if one := &p.active[i]; !one.isTold && now.Sub(one.begun) >= progressSlow {
			one.isTold = true
			fmt.Fprintf(p.w, "still reading %s (%s)\n", message.OneLine(one.source), seconds(now.Sub(one.begun)))
		}
	}
}

// replace overwrites the line on the terminal.
func (p *Progress) replace(text string) {
	length := len([]rune(text))
	fmt.Fprintf(p.w, "\r%s%s\r", text, strings.Repeat(" ", max(0, p.shown-length)))
	p.shown = length
}

// Watch shows the progress until the returned function is called, which clears the line. A nil progress does nothing.
func (p *Progress) Watch() (end func()) {
	if p == nil {
		return func() {}
	}
	ticker, done := time.NewTicker(progressEvery), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-ticker.C:
				p.show()
			case <-done:
				return
			}
		}
	})
	return func() {
		ticker.Stop()
		close(done)
		all.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.shown > 0 {
			p.replace("")
		}
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%d s", int(d.Seconds())) }

// cutRunes shortens a text to at most n characters.
func cutRunes(text string, n int) string {
	all := []rune(text)
	if len(all) <= n {
		return text
	}
	return string(all[:n-1]) + "…"
}
