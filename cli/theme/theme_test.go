package theme

import (
	"math"
	"testing"

	"github.com/charmbracelet/colorprofile"
)

// Black, white, and the greys close to them that terminals use by default, of the 256 colours.
const (
	black, white = 16, 231
	almostBlack  = 236 // #303030
	almostWhite  = 255 // #eeeeee
)

// luminance is the relative luminance of WCAG 2.1.
func luminance(n int) float64 {
	part := func(c int) float64 {
		v := float64(c) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	r, g, b := rgb(n)
	return 0.2126*part(r) + 0.7152*part(g) + 0.0722*part(b)
}

func contrast(a, b int) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// Black on white is 21:1, and #767676 is the lightest grey with 4.5:1 on white.
func TestContrastIsThatOfWCAG(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b int
		want float64
	}{{black, white, 21}, {243, white, 4.54}, {black, black, 1}} {
		if got := contrast(c.a, c.b); math.Abs(got-c.want) > 0.01 {
			t.Errorf("contrast of %d and %d: got %.2f, want %.2f", c.a, c.b, got, c.want)
		}
	}
}

// Each role of each theme can be read on the backgrounds that the theme is meant for. A role with the terminal's own
// colour is as readable as the user's terminal.
func TestEachRoleCanBeRead(t *testing.T) {
	t.Parallel()
	for _, p := range []struct {
		palette
		backgrounds []int // the ends of the range
		contrast    float64
	}{
		{dark, []int{black, almostBlack}, 4.5}, {light, []int{white, almostWhite}, 4.5}, {either, []int{black, white}, 4.5},
		{highDark, []int{black, almostBlack}, 7}, {highLight, []int{white, almostWhite}, 7},
	} {
		painted := 0
		for r, l := range p.looks {
			if l.colour == own {
				continue
			}
			painted++
			for _, bg := range p.backgrounds {
				if got := contrast(l.colour, bg); got < p.contrast {
					t.Errorf("%s, role %d on %d: contrast %.2f, want %.1f or more", p.name, r, bg, got, p.contrast)
				}
			}
			if l.attr&Faint != 0 {
				t.Errorf("%s, role %d: faint text has less contrast than its colour", p.name, r)
			}
		}
		if want := int(roleCount) - 2; painted != want { // text and model are the terminal's own
			t.Errorf("%s paints %d roles, want %d", p.name, painted, want)
		}
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		setting, term, colorterm, fgbg, want string
		depth                                colorprofile.Profile
	}{
		{"auto", "xterm-256color", "", "", "either", colorprofile.ANSI256},
		{"", "xterm-256color", "truecolor", "15;0", "dark", colorprofile.TrueColor},
		{"auto", "xterm-256color", "", "0;default;15", "light", colorprofile.ANSI256},
		{"auto", "xterm-256color", "", "0;99", "either", colorprofile.ANSI256},
		{"dark", "xterm-256color", "", "0;15", "dark", colorprofile.ANSI256},
		{"light", "xterm-256color", "", "", "light", colorprofile.ANSI256},
		{"high-contrast", "xterm-256color", "", "", "high-contrast", colorprofile.ANSI256},
		{"dark", "xterm", "", "", "basic", colorprofile.ANSI},
		{"none", "xterm-256color", "", "15;0", "", colorprofile.Unknown},
		{"dark", "dumb", "", "", "", colorprofile.Unknown},
	} {
		env := map[string]string{"TERM": c.term, "COLORTERM": c.colorterm, "COLORFGBG": c.fgbg}
		got := Of(c.setting, func(name string) string { return env[name] })
		if got.Name != c.want || got.depth != c.depth || got.On() != (c.want != "") {
			t.Errorf("%+v: got %q in %v", c, got.Name, got.depth)
		}
	}
	light := Of("high-contrast", func(name string) string {
		return map[string]string{"TERM": "xterm-256color", "COLORFGBG": "0;15"}[name]
	})
	if light.looks != &highLight.looks {
		t.Error("high-contrast on a light background has the colours for a dark one")
	}
}

func TestPaint(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ got, want string }{
		"none":        {Theme{}.Paint(Failure, "x"), "x"},
		"no text":     {Basic().Paint(Failure, ""), ""},
		"own colours": {Basic().Paint(Text, "x"), "x"},
		"named":       {Basic().Paint(Failure, "x"), "\x1b[31mx\x1b[0m"},
		"attributes":  {Basic().With(Failure, Bold|Strike, "x"), "\x1b[1;9;31mx\x1b[0m"},
		"one of 256":  {Theme{"", &dark.looks, colorprofile.ANSI256}.Paint(Dim, "x"), "\x1b[38;5;248mx\x1b[0m"},
		"true colour": {Theme{"", &dark.looks, colorprofile.TrueColor}.Paint(Dim, "x"), "\x1b[38;2;168;168;168mx\x1b[0m"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", name, c.got, c.want)
		}
	}
}
