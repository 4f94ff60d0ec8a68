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
	progressInterval = 250 * time.Millisecond // time between two updates
	progressDelay    = time.Second            // time before the first update
	slowAfter        = 3 * time.Second        // reading time after which a source gets its own line, without a terminal
	progressWidth    = 78                     // maximum number of characters of the line on a terminal
)

// Progress prints to w what is being read. On a terminal it updates one line, with the time since NewProgress;
// elsewhere it prints a line for each slow source. Its methods may be called concurrently.
type Progress struct {
	w          io.Writer
	isTerminal bool
	now        func() time.Time

	mu         sync.Mutex     // guards the fields below and the writes to w
	start      time.Time      // when NewProgress was called
	active     []activeSource // sources that are being read, in the order of their start
	lineLength int            // length of the line on the terminal
}

// activeSource is a source that is being read.
type activeSource struct {
	source    string
	start     time.Time
	isPrinted bool // its line was printed; false on a terminal
}

// NewProgress returns a progress display on w, with the clock now. Nothing is shown until Watch is called.
func NewProgress(w io.Writer, now func() time.Time) *Progress {
	file, ok := w.(*os.File)
	p := &Progress{w: w, now: now, start: now()}
	if ok {
		info, err := file.Stat()
		p.isTerminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// Note records that the reading of a source starts or, if isDone is true, ends. A nil progress does nothing.
func (p *Progress) Note(source string, isDone bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !isDone {
		p.active = append(p.active, activeSource{source: source, start: p.now()})
		return
	}
	for i, reading := range p.active {
		if reading.source != source {
			continue
		}
		p.active = append(p.active[:i:i], p.active[i+1:]...)
		if reading.isPrinted {
			fmt.Fprintf(p.w, "read %s after %s\n", message.OneLine(source), seconds(p.now().Sub(reading.start)))
		}
		return
	}
}

// show updates the line on the terminal, or prints a line for each source that has become slow.
func (p *Progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.isTerminal {
		if len(p.active) > 0 && now.Sub(p.start) >= progressDelay {
			text := fmt.Sprintf("reading %s (%s)", message.OneLine(p.active[0].source), seconds(now.Sub(p.start)))
			if more := len(p.active) - 1; more > 0 {
				text = fmt.Sprintf("reading %s and %d more (%s)", message.OneLine(p.active[0].source), more, seconds(now.Sub(p.start)))
			}
			p.replace(cutRunes(text, progressWidth))
		}
		return
	}
	for i := range p.active {
		if reading := &p.active[i]; !reading.isPrinted && now.Sub(reading.start) >= slowAfter {
			reading.isPrinted = true
			fmt.Fprintf(p.w, "still reading %s (%s)\n", message.OneLine(reading.source), seconds(now.Sub(reading.start)))
		}
	}
}

func (p *Progress) replace(text string) {
	length := len([]rune(text))
	fmt.Fprintf(p.w, "\r%s%s\r", text, strings.Repeat(" ", max(0, p.lineLength-length)))
	p.lineLength = length
}

// Watch shows the progress until the returned function is called, which clears the line. A nil progress does nothing.
func (p *Progress) Watch() (end func()) {
	if p == nil {
		return func() {}
	}
	ticker, done := time.NewTicker(progressInterval), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
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
		group.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.lineLength > 0 {
			p.replace("")
		}
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%d s", int(d.Seconds())) }

func cutRunes(text string, n int) string {
	all := []rune(text)
	if len(all) <= n {
		return text
	}
	return string(all[:n-1]) + "…"
}
