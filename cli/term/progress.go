package term

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	progressAfter = time.Second            // quicker work shows nothing
	progressEvery = 100 * time.Millisecond // between two pictures
	progressTrust = 3 * time.Second        // before that, a guess of the time left is none
	progressWidth = 24                     // of the bar, in columns
)

// Progress is one line at the bottom of a terminal that shows how much of some work is done. It appears after a
// second, is rewritten at most ten times a second, and disappears when the work is done. Its methods may be called
// from several goroutines. Call Clear before anything else is written.
type Progress struct {
	w     io.Writer
	width int
	now   func() time.Time

	mu          sync.Mutex
	begun, next time.Time
	what        string
	shown, done bool
}

// NewProgress begins a piece of work. width is the terminal's, 0 when it is not known.
func NewProgress(w io.Writer, width int, now func() time.Time) *Progress {
	begun := now()
	return &Progress{w: w, width: width, now: now, begun: begun, next: begun.Add(progressAfter)}
}

// Show reports how much is done, and of how much; of is 0 while that is not known. text is the same in words.
func (p *Progress) Show(what string, done, of int, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if what != p.what { // the speed of one piece of work does not predict another
		p.what, p.begun = what, now
	}
	if p.done || now.Before(p.next) {
		return
	}
	p.next = now.Add(progressEvery)
	line := OneLine(strings.TrimSpace(what + " " + text))
	if of > 0 {
		line = Bar(done, of, progressWidth) + " " + line
		if left := remaining(now.Sub(p.begun), done, of); left != "" {
			line += ", " + left + " left"
		}
	}
	if p.width > 1 {
		line = Cut(line, p.width-1) // a full line would wrap, and stay
	}
	_, err := io.WriteString(p.w, "\r"+line+"\x1b[K")
	p.shown = p.shown || err == nil
}

// Clear takes the line away. Nothing is shown afterwards.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown && !p.done {
		_, _ = io.WriteString(p.w, "\r\x1b[K") // it was only for looking at
	}
	p.done = true
}

// Bar is a bar of so many columns between brackets.
func Bar(done, of, width int) string {
	full := 0
	if of > 0 {
		full = int(int64(width) * int64(min(max(done, 0), of)) / int64(of))
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}

// remaining is how long the rest takes at the present speed; "" when that cannot be estimated yet.
func remaining(spent time.Duration, done, of int) string {
	if spent < progressTrust || done <= 0 || done >= of {
		return ""
	}
	left := time.Duration(float64(spent) / float64(done) * float64(of-done))
	switch {
	case left < time.Minute:
		return fmt.Sprintf("%d s", max(1, int(left.Round(time.Second).Seconds())))
	case left < time.Hour:
		return fmt.Sprintf("%d min", int(left.Round(time.Minute).Minutes()))
	}
	return fmt.Sprintf("%.1f h", left.Hours())
}
