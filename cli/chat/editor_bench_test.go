package chat

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/roost-dev/roost/cli/term"
)

// benched is a screen of 120 columns that draws for nobody.
func benched(b *testing.B) *model {
	s := New(b.Context(), newDesk(&testing.T{}), Options{Ask: true, Display: term.Options{Size: func() int { return 120 }}})
	b.Cleanup(s.Close)
	return &model{
		s: s, crew: term.NewCrew(b.Context()), ed: newEditor(&History{}), paint: painter{w: io.Discard}, now: time.Now,
		size: func() (int, int) { return 120, 35 }, ticking: true,
	}
}

// BenchmarkPaste is a paste of 5,000 lines, and a key behind it.
func BenchmarkPaste(b *testing.B) {
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "line %d of a file that somebody pastes into the chat, as long as such lines are\n", i)
	}
	m := benched(b)
	for b.Loop() {
		m.ed.clear()
		m.Update(tea.PasteMsg{Content: text.String()})
		m.Update(tea.KeyPressMsg{Text: "x"})
	}
}

// BenchmarkKey is a key while a model streams: the tail grows by a token with each.
func BenchmarkKey(b *testing.B) {
	m := benched(b)
	for i := 0; b.Loop(); i++ {
		token := "token "
		if i%20 == 0 {
			token = "end\n"
		}
		_, _ = io.WriteString(m.s.out, token) // it never fails
		m.Update(wakeMsg{})
		if i%100 == 0 {
			m.ed.clear()
		}
		m.Update(tea.KeyPressMsg{Text: "k"})
	}
}
