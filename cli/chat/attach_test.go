package chat

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

func TestPathsOfImages(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	for text, want := range map[string]string{
		"/tmp/a.png":                  "/tmp/a.png",
		" /tmp/a.PNG\n":               "/tmp/a.PNG",
		"'/tmp/my shot.jpg'":          "/tmp/my shot.jpg",
		`"/tmp/my shot.webp"`:         "/tmp/my shot.webp",
		`/tmp/my\ shot.gif`:           "/tmp/my shot.gif",
		"file:///tmp/a.jpeg":          "/tmp/a.jpeg",
		"file:///tmp/my%20%C3%A4.png": "/tmp/my ä.png",
		"file://host/tmp/100%25.png":  "/tmp/100%.png",
		"~/a.png":                     "/home/me/a.png",
		"a.png":                       "",
		"/tmp/a.txt":                  "",
		"look at /tmp/a.png":          "",
		"/tmp/a.png\n/tmp/b.png":      "",
		"/tmp/a.png and much more":    "",
	} {
		got, ok := imagePath(text)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: got %q %t, want %q", text, got, ok, want)
		}
	}
}

// A picture waits, in sight, for the next words, and goes with them once.
func TestImagesGoAlong(t *testing.T) {
	d := newDesk(t)
	m, c, out := screened(t, d)
	paste := func(text string) {
		if _, cmd := m.Update(tea.PasteMsg{Content: text}); cmd != nil {
			m.gets(cmd())
		}
	}
	paste("/tmp/shot.png")
	if got := m.seen(); !strings.Contains(got, "[image: shot.png] goes along") || !m.ed.empty() {
		t.Fatalf("pasted:\n%s", got)
	}
	paste("/tmp/missing.png")
	if got := m.ed.String(); got != "/tmp/missing.png" || !strings.Contains(m.seen(), "not attached: not now") {
		t.Errorf("a file that is none: %q\n%s", got, m.seen())
	}
	m.ed.clear()
	m.types(t, "/image /tmp/b.png", "enter")
	c.when("attached", func(st state) bool { return !st.Busy })
	m.types(t, "what is this?", "enter")
	call := c.did("start what is this?")
	if !strings.Contains(call, `"images":["data:image/png;base64,aaaa","data:image/png;base64,aaaa"]`) {
		t.Errorf("sent: %s", call)
	}
	within(t, "quoted", func() bool {
		m.Update(wakeMsg{})
		return strings.Contains(out.String(), "› [image: shot.png] [image: b.png] what is this?")
	})
	c.when("sent", func(st state) bool { return !st.Busy })
	if got := m.seen(); strings.Contains(got, "goes along") || strings.Contains(got, "go along") {
		t.Errorf("it goes along again:\n%s", got)
	}
	m.types(t, "/image", "enter")
	c.when("refused", func(state) bool { return c.failure() != nil })
}
